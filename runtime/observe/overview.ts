/**
 * Overview of the whole cluster as one site sees it, for `GET /_sojourn/admin/cluster` (docs/observing.md).
 *
 * Life: idle → asked once, or followed: one round of questions a second (fewer where there are hundreds of sites),
 * shared by all readers at this site → the last reader leaves: idle.
 *
 * O1  A site that does not answer within {@link ANSWER_MS} is `reachable: false`, with its last answer and its age.
 * O2  No site is asked, and no timer runs, while nobody reads.
 * O3  At most {@link ASKED_AT_ONCE} sites are asked at once.
 * O4  An alert is shown at the site it is about, once, whichever site noticed it; only alerts of sites that answer are
 *     shown.
 */
import { z } from "zod";
import type { MovedSessions, Rates, TrafficSnapshot } from "./traffic.ts";
import { ndjsonLine, pulledBody } from "./ndjson.ts";
import { pause } from "./pause.ts";

/**
 * Milliseconds between two rounds, at least; with many sites, milliseconds for each: what a round costs them all is
 * bounded.
 */
const ROUND_MS = 1_000;
const ROUND_MS_PER_SITE = 2;
/** Questions under way at once: below what a link takes (`requestsMax`), all of which may go over one. */
const ASKED_AT_ONCE = 256;
/**
 * Milliseconds in which a site answers: below a round, and above the round trip of every link that one would put a
 * person behind.
 */
const ANSWER_MS = 800;

/** Rates and counts that a site tells of itself beside its status. */
export interface SiteRates {
  readonly all: Rates;
  readonly apps: TrafficSnapshot["apps"];
  /** Sessions since start, by how they came. */
  readonly arrivals: Readonly<Record<string, number>>;
  /** Sessions that came from other sites, since start; the site is null where its incarnation has gone. */
  readonly moved: readonly (Omit<MovedSessions, "replica"> & { readonly from: string | null })[];
  readonly process: {
    readonly upMs: number;
    readonly rssBytes: number;
    /** Part of one core that was used since the last answer. */
    readonly cpu: number;
  };
}

/** Schema of a site's own answer: its status is passed on as it came. */
const answerSchema = z.object({
  status: z.looseObject({
    site: z.string(),
    lagMs: z.number().nullish(),
    alerts: z.array(z.object({ code: z.string(), site: z.string().optional(), detail: z.string() })).default(
      [],
    ),
    children: z.array(z.looseObject({ id: z.string(), stableLagMs: z.number().nullish() })).default([]),
    watched: z.array(z.looseObject({ site: z.string(), standing: z.string(), silentMs: z.number() })).default(
      [],
    ),
  }),
  rates: z.looseObject({}),
});
type SiteAnswer = z.infer<typeof answerSchema>;

/** Alert about a site. */
export interface SiteAlert {
  readonly code: string;
  readonly detail: string;
  /** Id of the site that noticed. */
  readonly by: string;
}

/** A site in the overview. */
export interface SiteView {
  readonly id: string;
  readonly parent: string | null;
  readonly tier: string;
  readonly url: string;
  readonly reachable: boolean;
  /** Age of `status` and `rates`; null where there was never an answer. */
  readonly ageMs: number | null;
  /**
   * Milliseconds for which nothing of the site came, as the site that heard of it last knows; null where no site knows.
   */
  readonly silentMs: number | null;
  /** Alerts about the site (O4). */
  readonly alerts: readonly SiteAlert[];
  /**
   * Milliseconds by which the site may be behind the root, at most: the sum of the lags of the sites on the way, as far
   * as known.
   */
  readonly lagMs: number | null;
  readonly status: SiteAnswer["status"] | null;
  readonly rates: SiteAnswer["rates"] | null;
}

/** Overview of one round: an object of the stream. */
export interface ClusterView {
  readonly atMs: number;
  /** Id of the site that collected it. */
  readonly by: string;
  readonly sites: readonly SiteView[];
}

/** Services of the site that an overview uses. */
export interface OverviewSources {
  readonly site: string;
  readonly sites: () => readonly Pick<SiteView, "id" | "parent" | "tier" | "url">[];
  /** Asks a site for its own part. */
  readonly ask: (site: string, signal: AbortSignal) => Promise<Response>;
  readonly nowMs: () => number;
}

/** Collects the overview. */
export class Overview {
  readonly #sources: OverviewSources;
  readonly #last = new Map<string, { answer: SiteAnswer; atMs: number }>();
  #round: Promise<ClusterView> | null = null;
  #roundBegunMs = -Infinity;
  #roundMs = ROUND_MS;
  #readers = 0;

  constructor(sources: OverviewSources) {
    this.#sources = sources;
  }

  /** Number of readers that follow now. */
  get readers(): number {
    return this.#readers;
  }

  /** Returns the cluster's state now; calls during one round share it. */
  look(): Promise<ClusterView> {
    if (this.#round !== null) return this.#round;
    this.#roundBegunMs = performance.now();
    return this.#round = this.#collect().finally(() => this.#round = null);
  }

  /** Returns a stream of one object a round. A slow reader gets the newest when it comes back. */
  follow(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const gone = new AbortController();
    let isBegun = false; // a body that nobody reads (HEAD) is no reader
    return pulledBody(async () => {
      if (isBegun) await pause(this.#roundBegunMs + this.#roundMs - performance.now(), gone.signal);
      else this.#readers++;
      isBegun = true;
      return gone.signal.aborted ? null : ndjsonLine(await this.look());
    }, () => {
      if (gone.signal.aborted) return;
      gone.abort();
      if (isBegun) this.#readers--;
    });
  }

  async #collect(): Promise<ClusterView> {
    const { sites, nowMs, site: by } = this.#sources;
    const known = sites(), ids = new Set(known.map(({ id }) => id));
    this.#roundMs = Math.max(ROUND_MS, ROUND_MS_PER_SITE * known.length);
    const answers = new Map<string, SiteAnswer | null>();
    const waiting = ids.values();
    const ask = async () => {
      for (const id of waiting) answers.set(id, await this.#answerOf(id));
    };
    await Promise.all(Array.from({ length: Math.min(ASKED_AT_ONCE, known.length) }, ask));
    for (const id of this.#last.keys()) if (!ids.has(id)) this.#last.delete(id);
    const present = [...answers.values()].flatMap((answer) => answer === null ? [] : [answer.status]);
    const alerts = alertsBySite(present, ids), silences = silenceBySite(present);
    const views = known.map(({ id, parent, tier, url }) => {
      const last = this.#last.get(id);
      const ageMs = last === undefined ? null : Math.max(0, Math.round(performance.now() - last.atMs));
      const heardMs = [ageMs, silences.get(id) ?? null].filter((ms) => ms !== null);
      return {
        id,
        parent,
        tier,
        url,
        reachable: (answers.get(id) ?? null) !== null,
        ageMs,
        silentMs: heardMs.length === 0 ? null : Math.min(...heardMs),
        alerts: alerts.get(id) ?? [],
        status: last?.answer.status ?? null,
        rates: last?.answer.rates ?? null,
      };
    });
    const byId = new Map(views.map((view) => [view.id, view]));
    return { atMs: nowMs(), by, sites: views.map((view) => ({ ...view, lagMs: lagOf(view.id, byId) })) };
  }

  /** Asks a site; null where it does not answer in time (O1). */
  async #answerOf(id: string): Promise<SiteAnswer | null> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), ANSWER_MS);
    try {
      const asked = this.#sources.ask(id, late.signal).then(async (answer) => {
        const text = await answer.text();
        return answer.ok ? answerSchema.parse(JSON.parse(text)) : null;
      });
      asked.catch(() => {}); // its answer may come too late
      const answer = await Promise.race([asked, aborted(late.signal)]);
      if (answer !== null) this.#last.set(id, { answer, atMs: performance.now() });
      return answer;
    } catch {
      return null; // whatever the reason, the site is not reachable
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Returns the alerts by the site they are about (O4); an alert about a site that the tree does not have (any more) is
 * shown at the site that reports it.
 */
function alertsBySite(
  statuses: readonly SiteAnswer["status"][],
  known: ReadonlySet<string>,
): Map<string, SiteAlert[]> {
  const found = new Map<string, SiteAlert[]>();
  for (const { site: by, alerts } of statuses) {
    for (const { code, detail, site = by } of alerts) {
      const at = known.has(site) ? site : by;
      const there = found.get(at) ?? [];
      found.set(at, there);
      if (at === by || !there.some((alert) => alert.code === code)) there.push({ code, detail, by });
    }
  }
  return found;
}

/** Returns the milliseconds for which each site has been silent, as its neighbours know. */
function silenceBySite(statuses: readonly SiteAnswer["status"][]): Map<string, number> {
  const silences = new Map<string, number>();
  const heard = (site: string, ms: number) => silences.set(site, Math.min(ms, silences.get(site) ?? ms));
  for (const { children, watched } of statuses) {
    for (const { id, stableLagMs } of children) if (typeof stableLagMs === "number") heard(id, stableLagMs);
    for (const { site, standing, silentMs } of watched) if (standing !== "unknown") heard(site, silentMs);
  }
  return silences;
}

/** Returns a site's lag behind the root; null where a site on the way never answered. */
function lagOf(id: string, byId: ReadonlyMap<string, Pick<SiteView, "parent" | "status">>): number | null {
  let lagMs = 0;
  let next: string | null = id;
  for (let hops = 0; next !== null; hops++) {
    const site = byId.get(next);
    const own = site?.status?.lagMs ?? null;
    if (site === undefined || own === null || hops > byId.size) return null;
    lagMs += own;
    next = site.parent;
  }
  return lagMs;
}

const aborted = (signal: AbortSignal): Promise<null> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(null), { once: true }));
