/** What a seed does: drawn, and biased by who wants something in particular. */
import { Draws } from "../../sim/random.ts";
import type { ClassName, Op } from "./program.ts";
import type { WirePlan } from "./wire.ts";

export interface WholePlan extends WirePlan {
  readonly n: number;
  readonly f: number;
  readonly classes: readonly ClassName[];
  readonly devices: number;
  readonly plain: number;
  readonly callers: number;
  /** Of each device, at most. */
  readonly messages: number;
  readonly requests: number;
  readonly safetyMs: number;
  readonly crashes: number;
  readonly wipes: number;
  readonly stops: number;
  readonly partitions: number;
  readonly kills: number;
  /** Processes that stand still, and wall clocks that are set. */
  readonly stands: number;
  readonly sets: number;
  /** Other versions of the app. */
  readonly deploys: number;
  readonly moves: number;
  /** That a session is moved as soon as it was opened somewhere. */
  readonly moveAtOnce: number;
  readonly roams: number;
  readonly cuts: number;
  readonly originBreaks: number;
  readonly originLeaves: number;
  readonly deaths: number;
  readonly closes: number;
  readonly lateChance: number;
  readonly echoChance: number;
  readonly mistakes: number;
  readonly hasStandbys: boolean;
  /** That a session is made anew while its epoch is asked for. */
  readonly isAhead: boolean;
  readonly idleMs: number;
  readonly commitMs: readonly [number, number];
  readonly delaysMs: readonly number[];
  readonly ops: readonly Op[];
}

const OPS: readonly Op[] = [
  ...["echo", "echo", "all", "all", "origin", "origin", "quiet"] as const,
  ...["slow", "tick", "jolt", "put", "put", "swap", "post", "post", "balk"] as const,
];

/** Draws what a seed does. */
export function drawWholePlan(seed: number): WholePlan {
  const draws = new Draws(`whole plan ${seed}`);
  const n = draws.integer(2, 4);
  const f = Math.min(n - 1, draws.pick([0, 1, 1, 1, 1, 2]));
  const some = (chance: number, most: number) => draws.chance(chance) ? draws.integer(1, most) : 0;
  const classes: readonly ClassName[] = ["whole", "whole", "retrying", "parking"];
  return {
    ...{ n, f, classes: Array.from({ length: draws.integer(1, 3) }, () => draws.pick(classes)) },
    ...{ devices: draws.integer(1, 3), plain: draws.integer(0, 1), callers: draws.integer(0, 2) },
    ...{
      messages: draws.integer(3, 25),
      requests: draws.integer(1, 8),
      safetyMs: draws.integer(1_500, 5_000),
    },
    ...{ crashes: some(0.7, 4), wipes: draws.chance(0.3) ? draws.integer(0, f) : 0, stops: some(0.2, 1) },
    ...{ partitions: some(0.3, 3), kills: some(0.4, 3), stands: some(0.2, 2), sets: some(0.3, 3) },
    ...{ moves: some(0.5, 5), moveAtOnce: draws.pick([0, 0, 0.3]) },
    ...{ roams: some(0.5, 6), cuts: some(0.5, 6), originBreaks: draws.pick([0, 0.01, 0.05]) },
    ...{ originLeaves: some(0.2, 2), deaths: draws.pick([0, 0, 0.3]), closes: draws.pick([0, 0, 0.3]) },
    ...{ lateChance: draws.pick([0, 0.5]), echoChance: draws.pick([0, 0.02, 0.1]) },
    ...{ mistakes: draws.pick([0, 0, 0.3]), hasStandbys: draws.chance(0.6) },
    isAhead: draws.fork("ahead").chance(0.7),
    idleMs: draws.pick([100, 1_000, 60_000]),
    commitMs: draws.pick([[0.1, 0.4], [1, 4], [5, 30]] as const),
    delaysMs: Array.from({ length: n }, () => draws.pick([0.2, 1, 5, 15])),
    ...{
      delayMs: draws.integer(0, 20),
      breaks: draws.pick([0, 0.01, 0.04]),
      garbles: draws.pick([0, 0, 0.03]),
    },
    ops: [
      ...OPS,
      ...(draws.chance(0.4) ? ["throw" as const] : []),
      ...(draws.chance(0.1) ? ["kick" as const] : []),
      ...(draws.chance(0.3) ? ["soon" as const, "soon" as const] : []),
      ...(draws.chance(0.3) ? ["call" as const, "call" as const, "long" as const] : []),
    ],
    deploys: some(0.3, 3),
  };
}
