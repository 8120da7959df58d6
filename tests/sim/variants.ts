/**
 * The store broken on purpose, each variant in one rule of the protocol. A variant wraps the production code from
 * outside (its ports, its messages, its sessions) and changes nothing in it; a checker that reads the history
 * must catch it, or the checkers are worth nothing.
 */
import {
  carriesAtOnce,
  carriesCovered,
  carriesFootprint,
  carriesPart,
  carriesSourceOnly,
  keepsClock,
  takesForSuccessor,
  trustsPositions,
} from "./broken/handoff.ts";
import {
  acknowledgesPushes,
  answersOutOfStream,
  cutsBatches,
  evictsCovered,
  forgetsEnds,
  losesDeletions,
  removesWithoutEnd,
  sharesNumbers,
  skipsFeed,
  skipsPush,
  stableAlone,
} from "./broken/stream.ts";
import { blankHasPushed, dropsWhenFull, forgetsChildren, hidesFloors } from "./broken/losses.ts";
import {
  acknowledgesEarly,
  goesOnFromOlder,
  leavesOutDamaged,
  losesLastCommit,
  missesAreAbsent,
} from "./broken/disk.ts";
import {
  adoptsAlone,
  hearsNoEnd,
  readsOldPaths,
  settlesAtOnce,
  speaksFirst,
  speaksForItself,
} from "./broken/moving.ts";
import { EXCUSED_VARIANTS } from "./broken/excused.ts";
import { believesLeaps, confirmsWrongly, tellsNoTime } from "./broken/clocks.ts";
import { forgetsPast } from "./broken/past.ts";
import { closesTokens } from "./broken/open.ts";
import { comparesBehind, comparesKeys, servesStale } from "./broken/resync.ts";
import type { Variant } from "./broken/hooks.ts";
import {
  keepsFormerChild,
  neverAcknowledges,
  neverConverges,
  neverFetches,
  neverRises,
} from "./broken/liveness.ts";
import {
  answersBehind,
  dropsPending,
  resyncsAlone,
  settlesEarly,
  standsInAtOnce,
  standsInForSourceOnly,
  takesGaps,
  tellsEarly,
} from "./broken/wards.ts";
import type { OpenReplica } from "../../store/api/api.ts";
import { openReplica } from "../../store/replica.ts";
import { simulate } from "./simulation.ts";
import type { Plan } from "./topology.ts";

/** What caught a variant. */
export interface Caught {
  readonly seed: number;
  readonly checker: string;
  readonly message: string;
}

/** Checkers that read the history; an assert, a crash or a request that hangs does not count as caught. */
const READS_HISTORY = new Set([
  "read-your-writes",
  "monotonic reads",
  "monotonic writes",
  "writes follow reads",
  "causality",
  "integrity",
  "site closure",
  "convergence",
  "durability",
]);

/** Only variants of moves ask for moves, and of rot for rot: what a rare schedule catches is not to be lost to others. */
const staying = (plan: Plan): Plan => ({ ...plan, faults: { ...plan.faults, move: 0, adopt: 0, rot: 0 } });

/**
 * Runs seeds of a broken variant until a checker of guarantees reports one, of which the store as it is shows nothing
 * under the same plan: what that one gets wrong, too, is no fault of the variant.
 */
export async function hunt(variant: Variant, seeds: number): Promise<Caught | null> {
  const { change = (same: Plan) => same, from = 0 } = variant;
  const run = async (seed: number, open: OpenReplica) => {
    const { violations } = await simulate({ seed, open, change: (plan) => change(staying(plan)) });
    return violations;
  };
  for (let seed = from; seed < from + seeds; seed++) {
    const violations = await run(seed, variant.make());
    const found = violations.find(({ checker, message }) =>
      READS_HISTORY.has(checker) ||
      // What the simulator itself waited for in vain is no checker's word.
      (variant.checkers?.includes(checker) === true && !message.startsWith("stuck: "))
    );
    if (found === undefined || (await run(seed, openReplica)).length > 0) continue;
    return { seed, checker: found.checker, message: found.message };
  }
  return null;
}

/** All of them. */
export const VARIANTS: readonly Variant[] = [
  acknowledgesEarly,
  losesLastCommit,
  goesOnFromOlder,
  missesAreAbsent,
  leavesOutDamaged,
  carriesFootprint,
  carriesCovered,
  carriesAtOnce,
  carriesSourceOnly,
  carriesPart,
  trustsPositions,
  takesForSuccessor,
  keepsClock,
  cutsBatches,
  answersOutOfStream,
  evictsCovered,
  forgetsEnds,
  stableAlone,
  acknowledgesPushes,
  losesDeletions,
  skipsFeed,
  skipsPush,
  sharesNumbers,
  removesWithoutEnd,
  blankHasPushed,
  forgetsChildren,
  hidesFloors,
  neverAcknowledges,
  neverFetches,
  neverConverges,
  keepsFormerChild,
  neverRises,
  believesLeaps,
  tellsNoTime,
  confirmsWrongly,
  forgetsPast,
  settlesAtOnce,
  dropsWhenFull,
  tellsEarly,
  settlesEarly,
  dropsPending,
  takesGaps,
  answersBehind,
  resyncsAlone,
  standsInAtOnce,
  standsInForSourceOnly,
  hearsNoEnd,
  speaksFirst,
  adoptsAlone,
  speaksForItself,
  closesTokens,
  comparesKeys,
  comparesBehind,
  servesStale,
  readsOldPaths,
  ...EXCUSED_VARIANTS,
];
