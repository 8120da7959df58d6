/**
 * The whole cluster as one site sees it: what `GET /_sojourn/admin/cluster` says (docs/observing.md).
 *
 * Life: idle → asked once, or followed: one round of questions a second (fewer where there are hundreds of
 * sites), shared by all who follow at this site → the last reader leaves: idle.
 *
 * O1  A site that does not answer within {@link ANSWER_MS} is `reachable: false`, with its last answer and its age.
 * O2  Nothing is asked, and no timer runs, while nobody looks.
 * O3  At most {@link ASKED_AT_ONCE} sites are asked at once.
 * O4  An alert is shown at the site it is about, once, whoever noticed it; only alerts of sites that answer are shown.
 */
import { z } from "zod";
import type { MovedSessions, Rates, TrafficSnapshot } from "./traffic.ts";
import { ndjsonLine, pulledBody } from "./ndjson.ts";
import { pause } from "./pause.ts";

/** Between two rounds, at least; of many sites, so much for each: what looking costs them all is bounded. */
const ROUND_MS = 1_000;
const ROUND_MS_PER_SITE = 2;
/** Questions under way at once: below what a link takes (`requestsMax`), all of which may go over one. */
const ASKED_AT_ONCE = 256;
/** Below a round, and above every link that one would put a person behind. */
const ANSWER_MS = 800;

/** What a site says of itself beside its status. */
export interface SiteRates {
  readonly all: Rates;
  readonly apps: TrafficSnapshot["apps"];
  /** Sessions by how they came, since start. */
  readonly arrivals: Readonly<Record<string, number>>;
  /** Sessions that came from other sites, since start; the site is null where its incarnation has gone. */
  readonly moved: readonly (Omit<MovedSessions, "replica"> & { readonly from: string | null })[];
  readonly process: {
    readonly upMs: number;
    readonly rssBytes: number;
    /** Of one core, since it was asked before. */
    readonly cpu: number;
  };
}

/** A site's own answer: its status is passed on as it came. */
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

/** What is to be looked at at a site. */
export interface SiteAlert {
  readonly code: string;
  readonly detail: string;
  /** The site that noticed. */
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
  /** For how long nothing of it came, as the site that heard of it last knows; null where no site knows. */
  readonly silentMs: number | null;
  /** O4 */
  readonly alerts: readonly SiteAlert[];
  /** For how long, at most, it may not have what the root has: what each site on the way lags, as far as known. */
  readonly lagMs: number | null;
  readonly status: SiteAnswer["status"] | null;
  readonly rates: SiteAnswer["rates"] | null;
}

/** One object of the stream. */
export interface ClusterView {
  readonly atMs: number;
  /** The site that collected it. */
  readonly by: string;
  readonly sites: readonly SiteView[];
}

/** What an overview needs of its site. */
export interface OverviewSources {
  readonly site: string;
  readonly sites: () => readonly Pick<SiteView, "id" | "parent" | "tier" | "url">[];
  /** Asks a site for its own part. */
  readonly ask: (site: string, signal: AbortSignal) => Promise<Response>;
  readonly nowMs: () => number;
}

/** Collects. */
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

  /** Who follows now. */
  get readers(): number {
    return this.#readers;
  }

  /** The cluster now; those who ask during one round share it. */
  look(): Promise<ClusterView> {
    if (this.#round !== null) return this.#round;
    this.#roundBegunMs = performance.now();
    return this.#round = this.#collect().finally(() => this.#round = null);
  }

  /** One object a round. A reader that is slow gets the newest when it comes back. */
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

  /** O1 */
  async #answerOf(id: string): Promise<SiteAnswer | null> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), ANSWER_MS);
    try {
      const asked = this.#sources.ask(id, late.signal).then(async (answer) => {
        const text = await answer.text();
        return answer.ok ? answerSchema.parse(JSON.parse(text)) : null;
      });
      asked.catch(() => {}); // it may come after its time
      const answer = await Promise.race([asked, aborted(late.signal)]);
      if (answer !== null) this.#last.set(id, { answer, atMs: performance.now() });
      return answer;
    } catch {
      return null; // whatever stands between, the site is not reachable
    } finally {
      clearTimeout(timer);
    }
  }
}

/** O4; what is said of a site that the tree does not have (any more) is shown at who says it. */
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

/** For how long each site has been silent, as its neighbours know. */
function silenceBySite(statuses: readonly SiteAnswer["status"][]): Map<string, number> {
  const silences = new Map<string, number>();
  const heard = (site: string, ms: number) => silences.set(site, Math.min(ms, silences.get(site) ?? ms));
  for (const { children, watched } of statuses) {
    for (const { id, stableLagMs } of children) if (typeof stableLagMs === "number") heard(id, stableLagMs);
    for (const { site, standing, silentMs } of watched) if (standing !== "unknown") heard(site, silentMs);
  }
  return silences;
}

/** null where a site on the way never answered. */
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
