/**
 * The versions of the app that the sites of a run serve: a new one comes to each site in its time, and stays there
 * whichever process runs. All of them have the same classes.
 */
import type { LiveVersion } from "../../runtime/deploy/mod.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { CLASSES } from "./program.ts";

/** As the rows of tests/sim/keyspace.ts are named. */
export const APP = "sim";

const manifest = {
  sessions: Object.fromEntries(
    Object.entries(CLASSES).map(([name, made]) => [name, {
      methods: null,
      durability: "durability" in made ? made.durability : "owners",
    }]),
  ),
} as unknown as LiveVersion["manifest"];

const textOf = (number: number): string => `v${number}`;

/** See the file's header. */
export class Deployed {
  readonly #versions = new Map<string, LiveVersion>();
  readonly #numbers = new Map<SiteId, number>();
  readonly #listeners = new Map<SiteId, Set<() => void>>();
  #newest = 1;

  /** The one object that there is of a version. */
  version(version: string): LiveVersion {
    const known = this.#versions.get(version);
    if (known !== undefined) return known;
    const made: LiveVersion = {
      ...{ app: APP, version, manifest, tierOf: () => "edge" },
      bundle: () => Promise.resolve(new Uint8Array()),
    };
    this.#versions.set(version, made);
    return made;
  }

  /** What serves at a site. */
  at(site: SiteId): LiveVersion {
    return this.version(textOf(this.#numbers.get(site) ?? 1));
  }

  onChange(site: SiteId, listener: () => void): () => void {
    const listeners = this.#listeners.get(site) ?? new Set();
    this.#listeners.set(site, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /** Another one is deployed; its number. */
  deploy(): number {
    return ++this.#newest;
  }

  /** It has come to a site, unless a newer one has. */
  comes(site: SiteId, number = this.#newest): void {
    if (number <= (this.#numbers.get(site) ?? 1)) return;
    this.#numbers.set(site, number);
    for (const listener of [...this.#listeners.get(site) ?? []]) listener();
  }
}
