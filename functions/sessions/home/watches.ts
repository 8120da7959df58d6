/**
 * Watches of a site over others for homes: over those whose timers it would look after, and, at the arbiter, over those
 * that others want to take over from.
 *
 * W1  A site is gone for the arbiter when nothing was heard of it for as long as makes it suspected, or it has left the
 *     tree. Being wrong costs that home its sessions, never their state: it is fenced by their owners.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Standing } from "../../../store/presence/detector.ts";

export interface WatchesPorts {
  isKnown(site: SiteId): boolean;
  standing(site: SiteId): Standing;
  watch(site: SiteId): () => void;
  look(site: SiteId): void;
}

/** Time for which a site that was asked about is watched: asked about again, it need not be found alive anew. */
const ASKED_MS = 60_000;

export class Watches {
  readonly #fellows: WatchesPorts;
  readonly #self: SiteId;
  readonly #nowMs: () => number;
  /** Site whose timers a log has, by log. */
  readonly #homes = new Map<string, SiteId>();
  readonly #counts = new Map<SiteId, { count: number; readonly unwatch: () => void }>();
  readonly #asked = new Map<SiteId, { untilMs: number; readonly unwatch: () => void }>();

  constructor(fellows: WatchesPorts, self: SiteId, nowMs: () => number) {
    this.#fellows = fellows;
    this.#self = self;
    this.#nowMs = nowMs;
  }

  isLost(site: SiteId): boolean {
    if (site === this.#self) return false;
    if (!this.#fellows.isKnown(site)) return true;
    const standing = this.#fellows.standing(site);
    return standing === "suspected" || standing === "dead";
  }

  /** Reports whether a site is gone for the arbiter (W1). */
  gone(site: SiteId): "gone" | "here" | "unsure" {
    if (site === this.#self) return "here";
    if (!this.#fellows.isKnown(site)) return "gone";
    const untilMs = this.#nowMs() + ASKED_MS;
    const asked = this.#asked.get(site);
    if (asked === undefined) this.#asked.set(site, { untilMs, unwatch: this.#fellows.watch(site) });
    else asked.untilMs = untilMs;
    if (this.isLost(site)) return "gone";
    this.#fellows.look(site); // who asks, asks again
    return this.#fellows.standing(site) === "alive" ? "here" : "unsure";
  }

  /** Watches the home of a log that has timers; null: the log has none any more. */
  ofHome(key: string, site: SiteId | null): void {
    const before = this.#homes.get(key) ?? null;
    if (before === site) return;
    if (site === null) this.#homes.delete(key);
    else this.#homes.set(key, site);
    if (site !== null && site !== this.#self) {
      const entry = this.#counts.get(site) ?? { count: 0, unwatch: this.#fellows.watch(site) };
      entry.count++;
      this.#counts.set(site, entry);
    }
    const left = before === null ? undefined : this.#counts.get(before);
    if (before === null || left === undefined || --left.count > 0) return;
    left.unwatch();
    this.#counts.delete(before);
  }

  tick(): void {
    const nowMs = this.#nowMs();
    for (const [site, { untilMs, unwatch }] of this.#asked) {
      if (untilMs > nowMs) continue;
      unwatch();
      this.#asked.delete(site);
    }
  }

  close(): void {
    for (const { unwatch } of [...this.#counts.values(), ...this.#asked.values()]) unwatch();
    this.#counts.clear();
    this.#asked.clear();
  }
}
