/**
 * One run: a tree of real replicas in virtual time, clients and faults, then peace, then the checkers.
 *
 * Stages: start (in drawn order) → safety phase (clients and faults) → healing → liveness phase (everything ends,
 * everything is pushed, all that sites cover is the root's) → last looks by every session → checks → stable clocks
 * go on (stable_clocks.ts).
 */
import type { OpenReplica } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { checkHistory } from "./checks.ts";
import { Cluster } from "./cluster.ts";
import type { Crossing } from "./crash_points.ts";
import type { History, Violation } from "./history.ts";
import { checkStableClocks } from "./stable_clocks.ts";
import { drawPlan, type Plan } from "./topology.ts";

/** What a run may be told. */
export interface RunOptions {
  readonly seed: number;
  readonly open: OpenReplica;
  /** So many sites instead of the few that a seed draws. */
  readonly sites?: number;
  /** Replaces parts of the plan that the seed draws. */
  readonly change?: (plan: Plan) => Plan;
  /** Hears every message as it leaves. */
  readonly trace?: (atMs: number, from: SiteId, to: SiteId, message: Uint8Array) => void;
  /** False: the checker of stable clocks looks at no watermark. */
  readonly watermark?: boolean;
  /** Hears of every place where a crash could hit, as a site passes it. */
  readonly survey?: (crossing: Crossing) => void;
}

/** What a run gives. */
export interface RunResult {
  readonly seed: number;
  readonly plan: Plan;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly probes: Record<string, number>;
  readonly events: number;
  /** The names of all faults that were drawn, for `plan.only`. */
  readonly faults: readonly string[];
}

/** Clocks may be so wrong that what was said then is dated up to so much ahead. */
export const HEAL_MS_MAX = 300_000;

/** Runs a seed. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const { seed, open, trace, survey, watermark = true } = options;
  const plan = (options.change ?? ((same) => same))(drawPlan(seed, options.sites));
  const cluster = new Cluster(plan, { name: `run ${seed}`, open, trace, survey });
  cluster.schedule();
  await cluster.world.run(plan.safetyMs);
  let healed = false;
  void cluster.faults.end().then(() => healed = true);
  await cluster.peace("faults end", () => healed, HEAL_MS_MAX);
  await cluster.peace("requests end", () => cluster.isIdle());
  await cluster.peace("pushes drain", () => cluster.isPushed());
  const draws = cluster.draws.fork("looks"), present = cluster.present();
  for (const client of cluster.clients) {
    for (let looks = 0; looks < 2; looks++) client.look(draws.pick(present).plan.id);
  }
  await cluster.peace("last looks end", () => cluster.isIdle());
  await cluster.settle();
  cluster.finish();
  // Time goes on below, and the history does not.
  const history = cluster.history([...cluster.events]);
  const excused = (what: string) => cluster.probes.count(`excused ${what}`);
  const found = checkHistory(history, excused);
  const probes = cluster.probes.all(), { events } = cluster.world;
  const stopped = await checkStableClocks(cluster, { watermark });
  return {
    seed,
    plan,
    history,
    violations: [...cluster.stuck(), ...found, ...stopped].sort((a, b) => a.atMs - b.atMs),
    probes,
    events,
    faults: cluster.faults.names,
  };
}
