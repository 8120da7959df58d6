/**
 * The watch over the sites, which keeps what is known of them true: it asks sites for a sign of life that no request
 * has gone to, and a site that is silent whether it lives. It runs along with what the client does; a client that does
 * nothing asks no site.
 *
 * A probe is `/_sojourn/readyz`: it says how far a site is, and whether it serves.
 *
 * W2  One list at a time, one probe of a site at a time.
 */
import { platformUrl } from "./address.ts";
import * as limits from "./limits.ts";
import type { ClientHost } from "./ports.ts";
import type { ListedSite, SiteChoice } from "./site_choice.ts";
import { within } from "./within.ts";

/** Parts that the watch works with. */
export interface WatchParts {
  readonly host: ClientHost;
  readonly choice: SiteChoice;
  /** Asks a site for the list of sites; null where the program named them all. */
  readonly list: ((from: string, signal: AbortSignal) => Promise<readonly ListedSite[]>) | null;
  readonly listed: (sites: readonly ListedSite[]) => void;
  /** Reports that more is known of a site: it may be time to move. */
  readonly looked: () => void;
}

/** Watch over the sites. */
export class SiteWatch {
  readonly #parts: WatchParts;
  readonly #over = new AbortController();
  readonly #probing = new Map<string, Promise<boolean>>();
  #listedMs: number;
  #isListing = false;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#listedMs = parts.host.nowMs();
  }

  close(): void {
    this.#over.abort();
  }

  /**
   * Asks the sites that are due, as the client does something.
   *
   * @param asked a site that is asked for something already.
   */
  tick(asked: string | null = null): void {
    if (this.#over.signal.aborted) return;
    const { host, choice } = this.#parts;
    for (const url of choice.probes(host.nowMs(), asked)) void this.isAlive(url);
  }

  /** Asks for the list of sites anew, as one failed: there may be others than those that are known. */
  lost(): void {
    const { host, choice, list, listed } = this.#parts;
    const nowMs = host.nowMs();
    if (list === null || this.#isListing || nowMs - this.#listedMs < limits.SITES_EVERY_MS) return;
    this.#isListing = true;
    this.#listedMs = nowMs;
    const from = choice.choose(nowMs).site.url;
    this.#within((signal) => list(from, signal)).then((sites) => {
      if (sites.length === 0 || this.#over.signal.aborted) return;
      choice.list(sites);
      listed(sites);
    }, () => {}).finally(() => this.#isListing = false);
  }

  /** Asks a site for a sign of life, and notes what it says. */
  isAlive(url: string): Promise<boolean> {
    const known = this.#probing.get(url);
    if (known !== undefined) return known;
    const probe = this.#probe(url).finally(() => {
      this.#probing.delete(url);
      if (!this.#over.signal.aborted) this.#parts.looked();
    });
    this.#probing.set(url, probe);
    return probe;
  }

  async #probe(url: string): Promise<boolean> {
    const { host, choice } = this.#parts;
    const begunMs = host.nowMs();
    const at = platformUrl(url, "readyz");
    try {
      const answer = await this.#within(async (signal) => {
        const answer = await host.fetch(at, { signal, cache: "no-store", credentials: "omit" });
        return { status: answer.status, body: await answer.text() };
      });
      if (answer.status !== 200) choice.away(url, host.nowMs());
      else {
        const { site, parent } = readiness(answer.body);
        choice.answered(url, host.nowMs() - begunMs, site);
        choice.said(url, parent === "unreachable");
      }
      return true;
    } catch {
      if (!this.#over.signal.aborted) choice.failed(url, host.nowMs());
      return false;
    }
  }

  #within<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return within(this.#parts.host, { ms: limits.PROBE_ANSWER_MS, over: this.#over.signal }, run);
  }
}

/** Returns what `readyz` says of its site. */
function readiness(body: string): { readonly site: string | null; readonly parent: unknown } {
  try {
    const { site, parent } = JSON.parse(body) as { site?: unknown; parent?: unknown };
    return { site: typeof site === "string" ? site : null, parent };
  } catch {
    return { site: null, parent: null };
  }
}
