/**
 * A checkpoint from which a session goes on without the log that came after it: an operator takes that log back.
 *
 * TB1  No number that the log may have given is given again, and no draw repeated: all counters, and the place in
 *      `Math.random`'s stream, go on far beyond it. (`crypto`'s begins anew with the next epoch.)
 * TB2  Attached peers have seen what is taken back: each is to attach anew. What a peer was sent before the checkpoint
 *      and has not acknowledged is not sent any more.
 */
import { decodeCheckpoint, encodeCheckpoint } from "./checkpoint.ts";
import type { Effect, Output, TimerChange } from "./commit.ts";
import { Program } from "./program.ts";

/** Step by which all counters go on: more than any log has room for. */
const JUMP = 2 ** 32;

/** Contents of a checkpoint beside the app's state. */
export interface CheckpointHead {
  readonly epoch: number;
  readonly code: string;
  /** Clock as it was read last. */
  readonly clockMs: number;
  readonly timers: readonly TimerChange[];
  readonly peers: readonly {
    readonly kind: string;
    readonly id: string;
    readonly sent: number;
    readonly received: number;
  }[];
  /** Outputs and effects that were not acknowledged. */
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly next: { readonly call: number; readonly local: number; readonly effect: number };
}

const blank = (): Program =>
  new Program({ make: () => ({}), envOf: () => null, aside: (_, work) => work() }, "", "");

/** Reads a checkpoint without its state. @throws CodecError */
export function checkpointHead(bytes: Uint8Array): CheckpointHead {
  const program = blank();
  const { outputs, effects } = decodeCheckpoint(bytes, program);
  return {
    ...{ epoch: program.epoch, code: program.code, clockMs: program.clockMs, outputs, effects },
    timers: [...program.timers].map(([name, dueMs]) => ({ name, dueMs })),
    peers: [...program.peers.values()].map(({ peer, sent, received }) => ({ ...peer, sent, received })),
    next: { call: program.nextCall, local: program.nextLocal, effect: program.nextEffect },
  };
}

/** Returns the same checkpoint for a session whose log after it is taken back. @throws CodecError */
export function withoutLog(bytes: Uint8Array): Uint8Array {
  const program = blank();
  const parts = decodeCheckpoint(bytes, program);
  program.nextCall += JUMP; // TB1
  program.nextLocal += JUMP;
  program.nextEffect += JUMP;
  program.math.position += JUMP; // TB1
  const peers = new Set<string>();
  for (const state of [...program.peers.values()]) {
    peers.add(state.peer.id);
    program.peers.restore({ ...state, sent: state.sent + JUMP, received: state.received + JUMP }); // TB1
  }
  // TB2
  return encodeCheckpoint(program, { ...parts, outputs: parts.outputs.filter(({ to }) => !peers.has(to)) });
}
