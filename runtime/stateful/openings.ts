/**
 * How homes are opened for the stateful sessions of a site: why one could not be, for operators to see, and without the
 * clients that hold its log and do not come back, when an operator says so (functions/homes/host_owners.ts, HO8).
 */
import { HomeError, type Homes, type Opened, type StatefulName } from "../../functions/homes/mod.ts";

/** The latest ones, at some 300 bytes each. */
const UNOPENED_MAX = 1_000;

/** See the file's header. */
export class Openings {
  readonly #homes: Pick<Homes, "open">;
  readonly #forced = new Set<string>();
  readonly #unopened = new Map<string, string>();

  constructor(homes: Pick<Homes, "open">) {
    this.#homes = homes;
  }

  /** @throws HomeError as `Homes.open` */
  async open(name: StatefulName, version: string): Promise<Opened> {
    const key = keyOf(name);
    try {
      const home = await this.#homes.open(name, version, this.#forced.delete(key));
      this.#unopened.delete(key);
      return home;
    } catch (error) {
      if (error instanceof HomeError && error.code === "stateful_unreachable") {
        this.#failed(key, error.message);
      }
      throw error;
    }
  }

  /** Why it could not be opened here; null: it could, or nobody has tried. */
  why(name: StatefulName): string | null {
    return this.#unopened.get(keyOf(name)) ?? null;
  }

  /** The next opening of it, which `ensure` brings about, waits for no clients. */
  async forced<T>(name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    const key = keyOf(name);
    this.#forced.add(key);
    try {
      return await ensure().catch((error) => {
        if (!this.#forced.has(key)) throw error;
        return ensure(); // that was one that had begun before, and waited for them
      });
    } finally {
      this.#forced.delete(key);
    }
  }

  #failed(key: string, why: string): void {
    this.#unopened.delete(key);
    this.#unopened.set(key, why);
    const [oldest] = this.#unopened.keys();
    if (this.#unopened.size > UNOPENED_MAX && oldest !== undefined) this.#unopened.delete(oldest);
  }
}

const keyOf = ({ app, class: className, id }: StatefulName): string => JSON.stringify([app, className, id]);
