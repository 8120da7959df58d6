/** What a seed does. */
import { Draws } from "../../sim/random.ts";
import type { Lie } from "./client.ts";

export interface HostsPlan {
  readonly sites: number;
  readonly f: number;
  readonly clients: number;
  /** Of them, the first ones: they hold no log. */
  readonly plain: number;
  readonly messages: number;
  readonly bytes: number;
  readonly requests: number;
  readonly safetyMs: number;
  readonly crashes: number;
  /** Of them, with the disk; the root keeps its own. */
  readonly wipes: number;
  readonly partitions: number;
  readonly breaks: number;
  readonly late: number;
  /** Isolates that are lost, and what an idle session is let go of after. */
  readonly kills: number;
  readonly idleMs: number;
  readonly moves: number;
  /** Programs of clients that end and go on; of them without the log that they held. */
  readonly restarts: number;
  readonly forgets: number;
  /** Clients that leave, and clients that stay away for a while. */
  readonly leaves: number;
  readonly aways: number;
  /** Other versions of the app: hosts of the second one hold no log. */
  readonly deploys: number;
  /** An operator does not wait for who is away. */
  readonly forces: number;
  /** Who says to be a peer and has no key. */
  readonly strangers: number;
  /** Chance that the session says once more that all is done. */
  readonly idleCommits: number;
  readonly commitMs: readonly [number, number];
  /** What the last client makes of its log when it is asked for it. */
  readonly lie: Lie;
  /** Times that `f` is another: 0 and 1 by turns. */
  readonly refits: number;
  /** Clients that stay away for so long that homes come and go meanwhile. */
  readonly absences: number;
  /** Clients that begin again with what they had stored a while before. */
  readonly relapses: number;
  /** The last client's channels take up to so long for a frame. */
  readonly slowMs: number;
  /** Of every second twenty entries' checkpoints: what they are longer by. */
  readonly stateBytes: number;
  /** Sites whose clocks are set. */
  readonly jumps: number;
}

/** None of what only hard plans have. */
const PLAIN = { refits: 0, absences: 0, relapses: 0, slowMs: 0, stateBytes: 0, jumps: 0 };

export const LIES = [
  "nothing",
  "an older one",
  "a changed one",
  "another's",
  "one without its middle",
] as const;

export function drawHostsPlan(seed: number): HostsPlan {
  const draws = new Draws(`hosts plan ${seed}`);
  const some = (chance: number, most: number) => draws.chance(chance) ? draws.integer(1, most) : 0;
  const f = draws.pick([0, 0, 1]), crashes = draws.integer(0, 4), hosts = draws.integer(1, 3);
  const plain = draws.pick([0, 1, 1]);
  const plan: HostsPlan = {
    ...{ sites: draws.integer(3, 4), f, clients: plain + hosts, plain },
    messages: draws.integer(5, 60),
    bytes: draws.pick([0, 0, 100, 20_000]),
    requests: draws.pick([0, 3, 20]),
    safetyMs: draws.integer(2_000, 6_000),
    crashes,
    // With a client on record from the beginning f = 0 bears the loss of the disk, too.
    wipes: draws.chance(0.5) && crashes > 0 ? draws.integer(0, f === 0 ? crashes : 1) : 0,
    partitions: draws.pick([0, 0, 2, 5]),
    breaks: draws.pick([0, 2, 8]),
    late: draws.pick([0, 0.5]),
    kills: some(0.4, 4),
    idleMs: draws.pick([100, 1e6, 1e6]),
    moves: some(0.4, 3),
    restarts: some(0.4, 3),
    forgets: some(0.3, 2),
    leaves: some(0.2, 1),
    aways: some(0.3, 3),
    deploys: some(0.3, 3),
    forces: some(0.15, 2),
    strangers: some(0.3, 10),
    idleCommits: draws.pick([0, 0.3]),
    commitMs: draws.pick([[0.1, 0.4], [5, 30], [40, 120]] as const),
    lie: "none" as const,
    ...PLAIN,
  };
  // Where the only disk is lost a client's log is all there is of what it knows.
  if (f === 0 && plan.wipes > 0) return { ...plan, forgets: 0 };
  if (!new Draws(`hosts lie ${seed}`).chance(0.3)) return plan;
  // One that holds back the end is believed where nobody else can know it: with the only disk lost.
  const lie = new Draws(`hosts lie of ${seed}`).pick(LIES);
  const clients = Math.max(plain + 2, plan.clients);
  return { ...plan, lie, clients, forgets: 0, ...(f === 0 ? { wipes: 0 } : {}) };
}
