/**
 * A checkpoint that a session goes on from without the log that came after it: an operator takes that back.
 *
 * TB1  No number that the log may have given is given again, drawn ones neither: all counters, and the place in
 *      `Math.random`'s stream, go on far beyond it. (`crypto`'s begins anew with the next epoch.)
 * TB2  Who was attached has seen what is taken back: each is to attach anew. What it was sent before the checkpoint and
 *      has not acknowledged is not sent any more.
 */
import { decodeCheckpoint, encodeCheckpoint } from "./checkpoint.ts";
import type { Effect, Output, TimerChange } from "./commit.ts";
import { Program } from "./program.ts";

/** More than any log has room for. */
const JUMP = 2 ** 32;

/** What a checkpoint says beside the app's state. */
export interface CheckpointHead {
  readonly epoch: number;
  readonly code: string;
  /** The clock as it was read last. */
  readonly clockMs: number;
  readonly timers: readonly TimerChange[];
  readonly peers: readonly {
    readonly kind: string;
    readonly id: string;
    readonly sent: number;
    readonly received: number;
  }[];
  /** Not acknowledged. */
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly next: { readonly call: number; readonly local: number; readonly effect: number };
}

const blank = (): Program =>
  new Program({ make: () => ({}), envOf: () => null, aside: (_, work) => work() }, "", "");

/** @throws CodecError */
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

/** The same checkpoint, for a session whose log after it is taken back. @throws CodecError */
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
