/**
 * Traffic of a site: requests, errors and latencies per version of an app over the last seconds, and the sites from
 * which its sessions came. Written on every request, read a few times a second at most. The metrics for scrapers
 * (runtime/gateway/request_metrics.ts), which run since the start, are of other requests (those that clients sent here,
 * calls of functions without their sessions and files) and in coarser buckets, so neither can be derived from the
 * other; the ways in which sessions arrived are counted there alone.
 *
 * A request costs a few additions: arrays are made once a version, nothing is allocated after that.
 *
 * T2  Rates and latencies are of the last {@link WINDOW_S} seconds; totals since the site started.
 */
import type { AttachedSession } from "../../store/api/api.ts";

/**
 * Seconds of the window: short enough to see a change, long enough that a percentile of ten requests a second says
 * something.
 */
const WINDOW_S = 5;
/** Slots of the window: one more than its seconds, as the second that runs is not whole. */
const SLOTS = WINDOW_S + 1;
/** Buckets of latency a power of two: a percentile is off by at most 9 %. */
const PER_OCTAVE = 4;
/** Upper bound of the first bucket, 1/16 ms: below that it is the clock that is measured. */
const FIRST_MS = 1 / 16;
/** Number of buckets: up to 65 s, past the longest wall time by default. */
const BUCKETS = 20 * PER_OCTAVE + 1;
const REQUESTS = 0, ERRORS = 1, FIRST_BUCKET = 2;
const SLOT_LENGTH = FIRST_BUCKET + BUCKETS;
/** Seconds after which an app without requests is forgotten: it may have been deleted. */
const FORGET_S = 600;
/** Incarnations of sites that sessions came from; each restart with a new disk makes one. */
const SOURCES_MAX = 4_096;

/** Rates of one app, or of all. */
export interface Rates {
  readonly requestsPerS: number;
  readonly errorsPerS: number;
  /** Percentiles of latency; null without requests. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly requests: number;
  readonly errors: number;
}

/** Sessions that came from other sites, since start. */
export interface MovedSessions {
  /** Number of the incarnation that they came from. */
  readonly replica: number;
  readonly nothing: number;
  readonly carry: number;
  readonly wait: number;
}

/** Rates of an app, and of each version that ran. */
export interface AppRates extends Rates {
  readonly app: string;
  readonly versions: readonly ({ readonly version: string } & Rates)[];
}

/** Counts of a site. */
export interface TrafficSnapshot {
  readonly all: Rates;
  readonly apps: readonly AppRates[];
  readonly moved: readonly MovedSessions[];
}

/** Counts of one version. */
class VersionTraffic {
  /** Counts per slot: requests, errors, latencies by bucket. */
  readonly slots = new Uint32Array(SLOTS * SLOT_LENGTH);
  /** Second that each slot is of. */
  readonly seconds = new Float64Array(SLOTS).fill(-1);
  requests = 0;
  errors = 0;
  lastSecond = 0;
}

/** Counts a site's traffic. */
export class Traffic {
  readonly #nowMs: () => number;
  readonly #begunMs: number;
  readonly #apps = new Map<string, Map<string, VersionTraffic>>();
  readonly #moved = new Map<number, { nothing: number; carry: number; wait: number }>();

  /** @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#begunMs = nowMs();
  }

  /** Counts a session that was attached, where its token comes from another incarnation, `replica`. */
  arrived(how: AttachedSession["how"], replica: number | undefined): void {
    if (how === "same" || how === "new" || replica === undefined) return;
    let moved = this.#moved.get(replica);
    if (moved === undefined) {
      if (this.#moved.size >= SOURCES_MAX) return;
      this.#moved.set(replica, moved = { nothing: 0, carry: 0, wait: 0 });
    }
    moved[how]++;
  }

  /** Counts a request that began at a time, by the clock of this object, and has its answer's head. */
  answered({ app, version }: { app: string; version: string }, begunMs: number, failed: boolean): void {
    const nowMs = this.#nowMs();
    const traffic = this.#apps.get(app)?.get(version) ?? this.#begin(app, version);
    const second = Math.floor(nowMs / 1000);
    const slot = second % SLOTS;
    const at = slot * SLOT_LENGTH;
    const { slots, seconds } = traffic;
    if (seconds[slot] !== second) {
      slots.fill(0, at, at + SLOT_LENGTH);
      seconds[slot] = second;
    }
    const bucket = at + FIRST_BUCKET + bucketOf(nowMs - begunMs);
    slots[at + REQUESTS] = (slots[at + REQUESTS] ?? 0) + 1;
    slots[bucket] = (slots[bucket] ?? 0) + 1;
    traffic.requests++;
    traffic.lastSecond = second;
    if (!failed) return;
    slots[at + ERRORS] = (slots[at + ERRORS] ?? 0) + 1;
    traffic.errors++;
  }

  #begin(app: string, version: string): VersionTraffic {
    let versions = this.#apps.get(app);
    if (versions === undefined) this.#apps.set(app, versions = new Map());
    const traffic = new VersionTraffic();
    versions.set(version, traffic);
    return traffic;
  }

  /** Returns the counts. */
  snapshot(): TrafficSnapshot {
    const nowMs = this.#nowMs();
    const second = Math.floor(nowMs / 1000);
    // Whole seconds and the part of the one that runs, but not from before the start.
    const spanS = Math.max(Math.min(WINDOW_S + nowMs / 1000 - second, (nowMs - this.#begunMs) / 1000), 0.001);
    const all = new Sums();
    const apps: AppRates[] = [];
    for (const [app, byVersion] of this.#apps) {
      const sums = new Sums();
      const versions: AppRates["versions"][number][] = [];
      for (const [version, traffic] of byVersion) {
        if (second - traffic.lastSecond > FORGET_S) {
          byVersion.delete(version);
          continue;
        }
        const own = new Sums();
        own.add(traffic, second);
        sums.join(own);
        versions.push({ version, ...own.rates(spanS) });
      }
      if (byVersion.size === 0) this.#apps.delete(app);
      else apps.push({ app, ...sums.rates(spanS), versions });
      all.join(sums);
    }
    return {
      all: all.rates(spanS),
      apps: apps.sort((a, b) => (a.app < b.app ? -1 : 1)),
      moved: [...this.#moved].map(([replica, kinds]) => ({ replica, ...kinds })),
    };
  }
}

/** Counts of a window, added up. */
class Sums {
  readonly #counts = new Float64Array(SLOT_LENGTH);
  #requests = 0;
  #errors = 0;

  /** Adds the seconds of the window that ends with a second. */
  add(traffic: VersionTraffic, second: number): void {
    this.#requests += traffic.requests;
    this.#errors += traffic.errors;
    for (let slot = 0; slot < SLOTS; slot++) {
      if (second - (traffic.seconds[slot] ?? -1) > WINDOW_S) continue;
      for (let i = 0; i < SLOT_LENGTH; i++) {
        this.#counts[i] = (this.#counts[i] ?? 0) + (traffic.slots[slot * SLOT_LENGTH + i] ?? 0);
      }
    }
  }

  join(other: Sums): void {
    this.#requests += other.#requests;
    this.#errors += other.#errors;
    other.#counts.forEach((value, i) => this.#counts[i] = (this.#counts[i] ?? 0) + value);
  }

  rates(spanS: number): Rates {
    const counts = this.#counts;
    const count = counts[REQUESTS] ?? 0;
    return {
      requestsPerS: round(count / spanS),
      errorsPerS: round((counts[ERRORS] ?? 0) / spanS),
      p50Ms: percentile(counts, count, 0.5),
      p99Ms: percentile(counts, count, 0.99),
      requests: this.#requests,
      errors: this.#errors,
    };
  }
}

function bucketOf(ms: number): number {
  const bucket = Math.ceil(Math.log2(ms / FIRST_MS) * PER_OCTAVE);
  return bucket > 0 ? Math.min(bucket, BUCKETS - 1) : 0; // a NaN is 0 too
}

/** Returns the middle of the bucket in which the request of that rank lies. */
function percentile(sums: Float64Array, count: number, part: number): number | null {
  if (count === 0) return null;
  const rank = Math.ceil(count * part);
  let seen = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    seen += sums[FIRST_BUCKET + bucket] ?? 0;
    if (seen >= rank) return round(FIRST_MS * 2 ** ((bucket - 0.5) / PER_OCTAVE));
  }
  return null;
}

const round = (value: number): number => Math.round(value * 100) / 100;
