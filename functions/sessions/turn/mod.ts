/**
 * The executor of stateful sessions: runs instances of Session classes inside an isolate, one turn an event, and
 * records what it takes to run them again (docs/protocol/turns.md). After CESSNA (Y. Harchol et al., "CESSNA:
 * Resilient Edge-Computing", 2018).
 *
 * Nothing here knows sockets, clocks or Deno: events come in as event.ts has them, what leaves is in commit.ts, and
 * both go through the ports of sink.ts.
 */
export { chainName } from "./event.ts";
export type {
  BegunEvent,
  CallOutcome,
  HandledEvent,
  KeptCheckpoint,
  OpenSession,
  Peer,
  SessionEvent,
} from "./event.ts";
export type { Promotion } from "./following_session.ts";
export { type PeerOutput, peerOutput } from "./peers.ts";
export type {
  Acknowledged,
  Call,
  CallKind,
  Checkpoint,
  Commit,
  Effect,
  EffectMutation,
  EffectSend,
  OpenedPeer,
  OpenedProgram,
  Output,
  Parked,
  Rejection,
  TimerChange,
} from "./commit.ts";
export { isMergeEffect, leavesMarks } from "./commit.ts";
export { resultsIn } from "./log_entry.ts";
export { writerOf } from "./recovery.ts";
export type { SessionSink } from "./sink.ts";
export {
  type CallToSession,
  decodeCallToSession,
  decodeGet,
  decodeList,
  decodeOutside,
  decodeStoreCommit,
  encodeCommitResult,
  encodeOutsideAnswer,
  encodePage,
  encodeRows,
  type OutsideAnswer,
  type OutsideRequest,
} from "./call_bytes.ts";
export { TIMERS_MAX } from "./timers.ts";
export { sendsTooMuch } from "./sends.ts";
export { shownCall, shownOutput, shownSend, shownTimer, shownWrite } from "./shown.ts";
export type { Act } from "./trace.ts";
