/**
 * Values that a stateful session gives out: commits (increments of its log and what leaves with them), calls,
 * checkpoints.
 *
 * CM1  A site appends a commit's entries at the keepers, and only when that is durable lets out its outputs, applies
 *      its effects, sets its timers and makes its calls, in that order; commits of one session in order.
 * CM2  A commit with `isPoint: false` is made while a handler runs, because a call with an effect waits for its intent
 *      to be recorded: it has entries and calls, no outputs, effects or timers. Should the handler throw later, a
 *      `rejected` entry voids those entries; the log is append-only.
 * CM3  Outputs to one receiver are numbered 1, 2, 3 …, effects and calls of a session too, over all epochs. A replay
 *      gives the same number to the same thing: number and content name it for ever, so that whoever has seen a number
 *      drops it.
 * CM5  Where the log that a session was opened with leaves merges or writes with checks to be done (`leavesMarks`), the
 *      first commit comes at once: with the entry of its epoch, if the log has none, so that the home can have that
 *      entry at the keepers before it makes those writes again.
 * CM4  An output or effect is kept here, in checkpoints too, until it is acknowledged (Acknowledged).
 */

import type { KeptCheckpoint, Peer } from "./event.ts";
import type { Subject } from "../../class/subject.ts";
import type { QueuedMessage } from "../../vocabulary/queue_sender.ts";

/**
 * Bytes for a receiver: the id of a request (bytes that encodeAnswer makes) or of a peer (peers.ts, `peerOutput`: first
 * byte 0 text or 1 bytes, a message; 2 a close code and reason, the peer is sent away).
 */
export interface Output {
  readonly to: string;
  /** Number among the outputs to this receiver (CM3). */
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** One write of a turn, with the fields that functions/vocabulary/store_client.ts gives it. */
export type EffectMutation =
  | {
    readonly kind: "set";
    readonly key: string;
    readonly value: Uint8Array;
    readonly expireInMs?: number;
  }
  | { readonly kind: "delete"; readonly key: string }
  | { readonly kind: "sum" | "min" | "max"; readonly key: string; readonly value: Uint8Array };

/** A message of a turn to a queue. Its times count from the `atMs` of its effect. */
export type EffectSend = QueuedMessage;

/**
 * Writes of one turn to the store: applied together, with this version and no other, by whoever applies them, however
 * often. (session, effect) is their idempotent key; with its place in `sends` it is that of a message to a queue.
 */
export interface Effect {
  /** Number among the effects of the session (CM3). */
  readonly effect: number;
  /** Version of the rows, from the log: clock and replica number of the turn and epoch that wrote them. */
  readonly clock: number;
  readonly replica: number;
  /** Milliseconds since 1970 from which `expireInMs` counts. */
  readonly atMs: number;
  readonly mutations: readonly EffectMutation[];
  /** Messages to queues, in the order in which they were sent; left out: there are none. */
  readonly sends?: readonly EffectSend[];
}

/** Change of a named timer: set, or cleared (null). */
export interface TimerChange {
  readonly name: string;
  /** Time at which the timer is due, in milliseconds since 1970; null: it was cleared. */
  readonly dueMs: number | null;
}

/** Kind of thing that a call asks for; call_bytes.ts has the bytes of each. */
export type CallKind =
  /** `get` and `list` of the store, under the session's own token, after all effects of earlier commits. */
  | "get"
  | "list"
  /** A `commit` of the store with checks: applied when it is called, not at the handler's end. Has an effect. */
  | "commit"
  /** A request to a server outside. Has an effect unless it is GET or HEAD. */
  | "fetch"
  /** A request to another stateful session. Has an effect. */
  | "session";

/** A call of the session: the site answers it with the event `result`. */
export interface Call {
  /** Number among the calls of the session (CM3). */
  readonly call: number;
  readonly kind: CallKind;
  readonly bytes: Uint8Array;
  /**
   * Number of the effect of a call that has one: with the session's name it is the call's idempotent key. After a
   * recovery whose log has no result the call is made again, with the same number and bytes; whoever receives it does
   * it once. null: the call has no effect.
   */
  readonly effect: number | null;
}

/** Rejection of a handler that threw or was killed: what the handler was for. Nothing that it did has happened. */
export interface Rejection {
  /** Subject of the handler; null: a closure timer threw. */
  readonly subject: Subject | null;
  /** Number of attempts so far, where the subject is tried again; 0: it is not. */
  readonly attempt: number;
  readonly code: string;
  readonly message: string;
}

/** One increment of a session's log and what leaves with it (CM1, CM2). */
export interface Commit {
  /** Number of its first entry; entries are numbered from 1 over all epochs. */
  readonly first: number;
  readonly count: number;
  readonly entries: Uint8Array;
  /** Number up to which all events are done: handled, rejected or ignored. */
  readonly through: number;
  /** True at a commit point, false while a handler runs (CM2). */
  readonly isPoint: boolean;
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly timers: readonly TimerChange[];
  /** Calls of the session that have an effect; others are made at once (SessionSink.call). */
  readonly calls: readonly Call[];
  /** Rejection of a handler that was undone: where it is not tried again, the handler of the event number `through`. */
  readonly rejected: Rejection | null;
  /** True while no handler, call or closure timer is open: a checkpoint could be taken. */
  readonly isQuiescent: boolean;
  /** True once the session has called `end()`: nothing is delivered any more, its state and log can go. */
  readonly isEnded: boolean;
}

/** A checkpoint as it leaves the isolate. */
export interface Checkpoint extends KeptCheckpoint {
  /** Entry of the checkpoint that left before, behind whose state `state` goes; null: `state` is all there is. */
  readonly on: number | null;
}

/** An attached peer, with what the log says of it. */
export interface OpenedPeer extends Peer {
  /** Number of outputs that the peer was given; the last of them is its closing where `isClosed`. */
  readonly sent: number;
  /** Number of messages of the peer that are in the log, also those whose handlers were undone. */
  readonly received: number;
  readonly isClosed: boolean;
}

/** Report of a session that has been opened: what may not have left yet, and what it waits for. */
export interface OpenedProgram {
  /** Number of the last entry of the log that the session was opened with. */
  readonly sequence: number;
  readonly peers: readonly OpenedPeer[];
  /**
   * Outputs and effects that are not known to be out, applied or acknowledged. Sites drop what they have done before
   * (CM3).
   */
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  /** All named timers that are set. */
  readonly timers: readonly TimerChange[];
  /** Calls without a result in the log, to be made (again). Their intents are in the log. */
  readonly calls: readonly Call[];
  /**
   * Id of the request whose handler the log has begun and that goes on: not to be delivered again; null: there is none.
   */
  readonly handling: string | null;
  readonly isQuiescent: boolean;
  readonly isEnded: boolean;
}

/**
 * Reports whether a write is a merge (sum, min, max). A merge that is applied twice changes the row twice: whether it
 * was applied, a mark beside the row tells.
 */
export const isMergeEffect = ({ kind }: EffectMutation): boolean => kind !== "set" && kind !== "delete";

/** Reports whether a log leaves merges to be applied, or writes with checks to be made. */
export const leavesMarks = ({ effects, calls }: Pick<OpenedProgram, "effects" | "calls">): boolean =>
  effects.some(({ mutations }) => mutations.some(isMergeEffect)) ||
  calls.some(({ kind }) => kind === "commit");

/**
 * Acknowledgement by the site: outputs up to these numbers have reached their receivers, effects up to this number are
 * applied, durably.
 */
export interface Acknowledged {
  readonly outputs: Readonly<Record<string, number>>;
  readonly effects: number;
}

/**
 * Reason for which a session is parked: the session stands still until an operator resumes or resets it. Its log and
 * checkpoint stay.
 */
export interface Parked {
  readonly code:
    /** The session's replay did otherwise than the log says. */
    | "diverged"
    /** The session's handler waits for something that nobody will ever deliver. */
    | "waits_unrecorded"
    /** The session's log is full and the session never comes to rest. */
    | "log_full"
    /** The session's log or checkpoint can't be read. */
    | "log_corrupt"
    /** The session's state can't be written down. */
    | "state_invalid"
    /** A handler threw, and `static whenThrown` of the session's class asks for the session to be parked then. */
    | "handler_threw"
    /** The session's log was written by other code. */
    | "code_differs"
    /** The session's code ran in a turn of another session: they share something in a module. */
    | "shared"
    /** The session's object can't be made: the constructor threw. */
    | "class_invalid"
    /** The session's state was written with a later shape than its class has. */
    | "shape_newer"
    /** `migrate` of the session's class threw, or was not done when it returned. */
    | "migrate_failed"
    /** An operator asked what can be kept of the session's log, and `detail` says how much that is (salvage.ts). */
    | "salvaged"
    /** The session's class is not in the app. */
    | "class_unknown"
    /** The executor failed. */
    | "internal";
  readonly message: string;
  /**
   * Details of the reason: at a divergence the entry of the log and the one that the replay made, else whatever helps
   * to mend it.
   */
  readonly detail: Readonly<Record<string, unknown>>;
}
