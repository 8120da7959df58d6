/** Where sessions move in the handoff benchmark: always from edge-1. */
import { RTT_MS } from "../tree.ts";

/** One move. */
export interface Move {
  readonly name: string;
  readonly to: string;
  /** Whom to stop, so that nothing is acknowledged by the common ancestor. */
  readonly ancestor: string;
  /** Who answers with the rows. */
  readonly answers: string;
  /** From the destination to the source and back, by way of those who answer. */
  readonly rttMs: number;
}

/** To a sibling under the same core, and to a cousin under the other. */
export const MOVES: readonly Move[] = [
  { name: "edge-1 → edge-2", to: "edge-2", ancestor: "core-1", answers: "edge-1", rttMs: RTT_MS.sibling },
  { name: "edge-1 → edge-3", to: "edge-3", ancestor: "cloud", answers: "core-1", rttMs: RTT_MS.cousin },
];

/** Longer than the marks of idle links are apart, over three links. */
export const MARKS_MS = 900;
