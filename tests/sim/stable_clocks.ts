/**
 * A checker of what has to go on for ever: when all faults are over, the stable clock of each site above another one and,
 * behind these, the root's watermark go past what the root's clock said when the checker began. Where a stable clock
 * stands still, a session whose site has lost its disk is refused for ever; where the watermark does, no deletion is
 * collected.
 *
 * Feeds tell both: the lag that a site reports counts from the time that the site goes by, which may be far behind what
 * others have dated. The checker begins when all others have what they judge by, and then lets time pass, so that it
 * changes no run.
 */
import { type ClockValue, unixMs } from "../../store/model/row.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { decodeMessage, type Feed } from "../../store/wire/message.ts";
import type { Cluster } from "./cluster.ts";
import type { Violation } from "./history.ts";
import { ABOVE_TAG } from "./network.ts";
import type { SimSite } from "./site.ts";

/**
 * Virtual time within which all goes on: marks come each 250 ms; who is refused for its clock is asked again each second,
 * and a root that doubts its own clock hears others for five.
 */
const GO_ON_MS_MAX = 30_000;
/**
 * Milliseconds by which what a root has dated may be ahead of the time that it goes by: others' clocks may be a minute ahead
 * (store/model/limits.ts CLOCK_AHEAD_MS_MAX), with some seconds of drift.
 */
const APART_MS_MAX = 65_000;
/**
 * Time in which a site has looked again what it keeps for others: it does so with each collection (store/model/limits.ts
 * COLLECTIONS_PER_HORIZON), and the watermark waits for that.
 */
const COLLECT_MS = 40_000;

/** Parts that the checker looks at beside the stable clocks. */
interface Looks {
  /** True: the watermark, for which all clocks jump by as long as deletions are kept, and more. */
  readonly watermark: boolean;
}

/** Lets a cluster in which all has ended go on; the result is what does not. */
export async function checkStableClocks(cluster: Cluster, { watermark }: Looks): Promise<Violation[]> {
  const heard = new Heard(cluster.root);
  cluster.overhear((from, to, message) => heard.message(from, to, message));
  const below = cluster.present().filter(({ parent }) => parent !== null);
  if (below.length === 0) return [];
  const behind = async (isBehind: (site: SimSite) => boolean): Promise<SimSite[]> => {
    const left = () => below.filter(isBehind);
    await cluster.peace(null, () => heard.begun > 0 && left().length === 0, GO_ON_MS_MAX);
    return left();
  };
  const isStopped = (site: SimSite) => !isJoined(site) || heard.stable(site.plan.id) <= heard.begun;
  // Who is so far ahead that others refuse it holds the clocks above it until that time has come.
  if ((await behind(isStopped)).length > 0) cluster.letPass(heard.aheadMs);
  const stopped = await behind(isStopped);
  const { nowMs } = cluster.world;
  if (stopped.length > 0) return stopped.map((site) => violation(site, "a stable clock", nowMs));
  if (!watermark) return [];
  const isKept = ({ plan: { id } }: SimSite) => heard.watermark(id) <= heard.begun;
  cluster.letPass(2 * cluster.plan.horizonMs + APART_MS_MAX);
  if ((await behind(isKept)).length > 0) cluster.letPass(COLLECT_MS);
  const kept = await behind(isKept);
  return kept.map((site) => violation(site, "the watermark", cluster.world.nowMs));
}

function violation({ plan: { id }, process }: SimSite, what: string, atMs: number): Violation {
  const { stableLagMs, parent, children, clocksAhead, clockDoubt, adopting } = process?.replica.status() ??
    {};
  const status = JSON.stringify({ stableLagMs, parent, children, clocksAhead, clockDoubt, adopting });
  return { checker: "stable clocks", message: `${what} that ${id} hears of stands still: ${status}`, atMs };
}

/** Reports whether a site hears its parent, and refuses nobody. */
function isJoined({ process }: SimSite): boolean {
  const { parent, clocksAhead = [] } = process?.replica.status() ?? {};
  return parent?.connected === true && clocksAhead.length === 0;
}

/** Record of what messages have said since the checker began. */
class Heard {
  readonly #root: SiteId;
  readonly #feeds = new Map<SiteId, Feed>();
  #newest: ClockValue = 0;
  #rootNow: ClockValue = 0;
  /** The root's clock, as it said first; 0: it has not yet. */
  begun: ClockValue = 0;

  constructor(root: SiteId) {
    this.#root = root;
  }

  message(from: SiteId, to: SiteId, bytes: Uint8Array): void {
    if (bytes[0] === ABOVE_TAG) return;
    const message = decodeMessage(bytes);
    if (message.kind !== "hello" && message.kind !== "push" && message.kind !== "feed") return;
    this.#newest = Math.max(this.#newest, message.clock);
    if (message.kind !== "feed") return;
    this.#feeds.set(to, message);
    if (from !== this.#root) return;
    this.#rootNow = message.clock;
    if (this.begun === 0) this.begun = message.clock;
  }

  /** The least of the stable clocks of the sites above one. */
  stable(site: SiteId): ClockValue {
    return Math.min(...this.#feeds.get(site)?.stable ?? [0]);
  }

  watermark(site: SiteId): ClockValue {
    return this.#feeds.get(site)?.watermark ?? 0;
  }

  /** Milliseconds by which the clock that is furthest ahead is ahead of the root's. */
  get aheadMs(): number {
    return Math.max(0, unixMs(this.#newest) - unixMs(this.#rootNow));
  }
}
