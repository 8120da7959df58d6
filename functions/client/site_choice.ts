/**
 * The choice of a client's site: what the client knows of each site, and when it moves. Pure: time is passed in.
 *
 * Life of a site here: listed (unknown) → measured, passively by requests or by probes → dead (failed), away (it said
 * so), and measured again.
 *
 * C1  A client stays where it is unless its site is dead, away, or another is clearly nearer (hysteresis): a round trip
 *     is the least of two windows, so that one slow answer moves no client, and a client that has moved for a better
 *     one stays for a while.
 * C2  A dead site is tried again, later each time; with nothing else left, the one that is due first.
 * C3  Only sites without a round trip of this window are probed: in the first window all, then the nearest, and all
 *     again when the order of those or one of their round trips changed.
 * C4  A site that lives and reaches no other is left for one that does: data that it takes may be there alone.
 */
import * as limits from "./limits.ts";

/** Site as the list names it. */
export interface ListedSite {
  /** Id of the site; null until it has told it. */
  readonly id: string | null;
  /** Address of the app at this site, without a slash at its end. */
  readonly url: string;
  /** Tier of the site; null: not known. */
  readonly tier: "edge" | "core" | "root" | null;
}

/** Site as the client knows it. */
export interface KnownSite extends ListedSite {
  /** Round trip in milliseconds; null: not measured. */
  readonly rttMs: number | null;
  /**
   * State of the site when it was last asked: `up` answered, `dead` did not, `away` said that it serves no clients now.
   */
  readonly state: "unknown" | "up" | "dead" | "away";
}

/** Reason for which a client moved; `stuck`: the site that it was at lives, and could not do what others may. */
export type MoveReason = "dead" | "away" | "stuck" | "nearer";

class Entry {
  id: string | null;
  url: string;
  tier: ListedSite["tier"];
  state: KnownSite["state"] = "unknown";
  failures = 0;
  /** Time before which the site is not tried. */
  dueMs = 0;
  /** True where the site was probed in this window. */
  isProbed = false;
  /** True where the site lives, and reaches no other site. */
  isCutOff = false;
  /** Least round trip of this window and of each of the two before; Infinity: none. */
  windows: [number, number, number] = [Infinity, Infinity, Infinity];

  constructor(site: ListedSite) {
    this.id = site.id;
    this.url = site.url;
    this.tier = site.tier;
  }

  get rttMs(): number | null {
    const least = Math.min(...this.windows);
    return least === Infinity ? null : least;
  }

  get costMs(): number {
    const aloneMs = this.isCutOff ? limits.CUT_OFF_MS : 0;
    return (this.rttMs ?? limits.UNKNOWN_MS) + limits.TIER_MS[this.tier ?? "core"] + aloneMs;
  }
}

/** Chooser of a client's site. */
export class SiteChoice {
  readonly #sites = new Map<string, Entry>();
  #current: Entry;
  #windowMs: number;
  #stayMs = 0;
  #probesAll = true;
  #nearest: { url: string; rttMs: number }[] = [];

  /** Begins with a list of sites. @param sites at least one; the first is where the client begins. */
  constructor(sites: readonly ListedSite[], nowMs: number) {
    this.#windowMs = nowMs;
    const [first] = this.list(sites);
    if (first === undefined) throw new Error("a client has at least one site");
    this.#current = first;
  }

  get current(): KnownSite {
    return this.#current;
  }

  get sites(): readonly KnownSite[] {
    return [...this.#sites.values()];
  }

  /** Takes another list of sites. The client's own site stays, listed or not. */
  list(sites: readonly ListedSite[]): readonly Entry[] {
    const entries = sites.slice(0, limits.SITES_MAX).map((site) => {
      const known = this.#sites.get(site.url);
      if (known === undefined) return new Entry(site);
      known.id = site.id ?? known.id;
      known.tier = site.tier ?? known.tier;
      return known;
    });
    const current = this.#sites.size === 0 ? [] : [this.#current];
    this.#sites.clear();
    for (const entry of [...entries, ...current]) this.#sites.set(entry.url, entry);
    this.#probesAll = true;
    return entries;
  }

  /** Notes that a site answered. @param rttMs null: it answered, in a time that says nothing of the way. */
  answered(url: string, rttMs: number | null, id: string | null = null): void {
    const site = this.#sites.get(url);
    if (site === undefined) return;
    site.id = id ?? site.id;
    site.state = "up";
    site.failures = 0;
    site.dueMs = 0;
    if (rttMs !== null) site.windows[0] = Math.min(site.windows[0], Math.max(0, rttMs));
  }

  /** Notes whether a site says that it reaches no other (C4). */
  said(url: string, isCutOff: boolean): void {
    const site = this.#sites.get(url);
    if (site !== undefined) site.isCutOff = isCutOff;
  }

  /** Reports whether a site reaches no other, while there is one that does. */
  isCutOff(url: string, nowMs: number): boolean {
    if (this.#sites.get(url)?.isCutOff !== true) return false;
    return [...this.#sites.values()].some((site) =>
      !site.isCutOff && site.dueMs <= nowMs && site.rttMs !== null
    );
  }

  /** Notes that a site did not answer. */
  failed(url: string, nowMs: number): void {
    const site = this.#sites.get(url);
    if (site === undefined) return;
    site.state = "dead";
    site.dueMs = nowMs + Math.min(limits.FAILED_SITE_MS * 2 ** site.failures, limits.DEAD_MS_MAX);
    site.failures++;
    site.windows = [Infinity, Infinity, Infinity];
  }

  /** Notes that a site said that it serves no clients now. */
  away(url: string, nowMs: number): void {
    const site = this.#sites.get(url);
    if (site === undefined) return;
    site.state = "away";
    site.dueMs = nowMs + limits.AWAY_MS;
  }

  /**
   * Returns the site for what is done now, with the reason where it is another than before.
   *
   * @param without sites that were tried already
   */
  choose(nowMs: number, without: ReadonlySet<string> = NONE): { site: KnownSite; moved: MoveReason | null } {
    this.#turn(nowMs);
    const isUsable = (site: Entry) => site.dueMs <= nowMs && !without.has(site.url);
    const best = this.#best((site) => isUsable(site));
    if (best === null) return this.#move(this.#soonest(without));
    const isAlone = !best.isCutOff && this.isCutOff(this.#current.url, nowMs);
    if (isAlone || !isUsable(this.#current)) return this.#move(best);
    if (nowMs < this.#stayMs || !isNearer(best, this.#current)) return { site: this.#current, moved: null };
    this.#stayMs = nowMs + limits.STAY_MS;
    this.#current = best;
    return { site: best, moved: "nearer" };
  }

  /** Returns the milliseconds until a site may be tried; 0: now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.min(...[...this.#sites.values()].map(({ dueMs }) => dueMs)) - nowMs);
  }

  /**
   * Returns the sites to probe for a sign of life now (C3); they are not named again in this window.
   *
   * @param without a site that is asked for something already.
   */
  probes(nowMs: number, without: string | null = null): readonly string[] {
    this.#turn(nowMs);
    const nearest = new Set(this.#nearest.map(({ url }) => url));
    const asked = [...this.#sites.values()].filter((site) =>
      site.url !== without && site.windows[0] === Infinity && !site.isProbed && site.dueMs <= nowMs &&
      (this.#probesAll || nearest.has(site.url) || site.state !== "up" || site.isCutOff)
    );
    this.#probesAll = false;
    for (const site of asked) site.isProbed = true;
    return asked.map(({ url }) => url);
  }

  #best(isUsable: (site: Entry) => boolean): Entry | null {
    let best: Entry | null = null;
    for (const site of this.#sites.values()) {
      if (isUsable(site) && (best === null || site.costMs < best.costMs)) best = site;
    }
    return best;
  }

  /** Returns the site that may be tried first (C2). */
  #soonest(without: ReadonlySet<string>): Entry {
    const all = [...this.#sites.values()];
    const left = all.filter((site) => !without.has(site.url));
    return (left.length === 0 ? all : left).reduce((a, b) => a.dueMs <= b.dueMs ? a : b);
  }

  #move(to: Entry): { site: KnownSite; moved: MoveReason | null } {
    const from = this.#current;
    if (to === from) return { site: to, moved: null };
    this.#current = to;
    return { site: to, moved: from.state === "dead" || from.state === "away" ? from.state : "stuck" };
  }

  /** Ends the windows that are over. */
  #turn(nowMs: number): void {
    const passed = Math.floor((nowMs - this.#windowMs) / limits.WINDOW_MS);
    if (passed <= 0) return;
    this.#windowMs += passed * limits.WINDOW_MS;
    const nearest = [...this.#sites.values()].flatMap(({ url, rttMs }) =>
      rttMs === null ? [] : [{ url, rttMs }]
    )
      .sort((a, b) => a.rttMs - b.rttMs).slice(0, limits.NEAREST);
    this.#probesAll ||= hasChanged(this.#nearest, nearest);
    this.#nearest = nearest;
    for (const site of this.#sites.values()) {
      const [now, last] = site.windows;
      site.isProbed = false;
      // A window without a round trip says nothing: the round trip that is known stays until there is one.
      if (now !== Infinity) site.windows = [Infinity, now, last];
    }
  }
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Reports whether a site is clearly nearer than another (C1). Round trips of the first window were measured while
 * connections were made, and don't count.
 */
const isNearer = (a: Entry, b: Entry): boolean =>
  a !== b && b.windows[1] !== Infinity && a.rttMs !== null && b.rttMs !== null &&
  a.costMs < b.costMs * limits.NEARER_RATIO &&
  a.costMs < b.costMs - limits.NEARER_MS;

type Measured = readonly { readonly url: string; readonly rttMs: number }[];

function hasChanged(before: Measured, after: Measured): boolean {
  if (before.length !== after.length) return true;
  return before.some(({ url, rttMs }, at) => {
    const now = after[at];
    return now === undefined || now.url !== url ||
      Math.abs(now.rttMs - rttMs) > Math.max(1, limits.CHANGE_RATIO * rttMs);
  });
}
