/** Homes of stateful sessions as this site has heard: hints, as many as ROUTES_MAX, the oldest forgotten. */
import type { SiteId } from "../../../store/model/ports.ts";
import { ROUTES_MAX } from "../log/limits.ts";

export class Routes {
  /** Home by session; null: what is known otherwise is wrong. */
  readonly #sites = new Map<string, SiteId | null>();

  get(key: string, otherwise: SiteId | null): SiteId | null {
    const site = this.#sites.get(key);
    return site === undefined ? otherwise : site;
  }

  set(key: string, site: SiteId | null): void {
    this.#sites.delete(key);
    this.#sites.set(key, site);
    for (const oldest of this.#sites.keys()) {
      if (this.#sites.size <= ROUTES_MAX) break;
      this.#sites.delete(oldest);
    }
  }

  forget(key: string): void {
    this.#sites.delete(key);
  }
}
