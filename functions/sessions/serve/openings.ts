/**
 * Openings of homes for the stateful sessions of a site. They note why a home could not be opened, for operators to
 * see, and open one without the clients that hold its log and do not come back, when an operator says so
 * (functions/sessions/log/host_owners.ts, HO8).
 */
import { HomeError, type Homes, type OpenedSession, type StatefulName } from "../home/mod.ts";
import { mapKey } from "./session_name.ts";

/** Number of failed openings that are noted, the latest ones, at some 300 bytes each. */
const UNOPENED_MAX = 1_000;

/** See the file's header. */
export class Openings {
  readonly #homes: Pick<Homes, "open">;
  readonly #asked = new Map<string, "forced" | "here">();
  readonly #unopened = new Map<string, string>();

  constructor(homes: Pick<Homes, "open">) {
    this.#homes = homes;
  }

  /** Opens a home. @throws HomeError as `Homes.open` */
  async open(name: StatefulName, version: string): Promise<OpenedSession> {
    const key = mapKey(name);
    try {
      const asked = this.#asked.get(key);
      this.#asked.delete(key);
      const home = await this.#homes.open(name, version, asked === "forced", asked !== undefined);
      this.#unopened.delete(key);
      return home;
    } catch (error) {
      if (error instanceof HomeError && error.code === "stateful_unreachable") {
        this.#failed(key, error.message);
      }
      throw error;
    }
  }

  /** Returns why a session could not be opened here; null: it could, or nobody has tried. */
  why(name: StatefulName): string | null {
    return this.#unopened.get(mapKey(name)) ?? null;
  }

  /** Has `ensure` open the session without waiting for clients. */
  forced<T>(name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    return this.#as("forced", name, ensure);
  }

  /**
   * Has `ensure` open the session at this site, whichever site would be its place (functions/sessions/home/seats.ts).
   */
  here<T>(name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    return this.#as("here", name, ensure);
  }

  async #as<T>(how: "forced" | "here", name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    const key = mapKey(name);
    this.#asked.set(key, how);
    try {
      return await ensure().catch((error) => {
        if (!this.#asked.has(key)) throw error;
        return ensure(); // that opening had begun before, and was not as asked
      });
    } finally {
      this.#asked.delete(key);
    }
  }

  #failed(key: string, why: string): void {
    this.#unopened.delete(key);
    this.#unopened.set(key, why);
    const [oldest] = this.#unopened.keys();
    if (this.#unopened.size > UNOPENED_MAX && oldest !== undefined) this.#unopened.delete(oldest);
  }
}
