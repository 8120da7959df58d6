/**
 * What a stateful session gives out: increments of its log and what leaves with them, calls, checkpoints.
 *
 * CM1  A site appends a commit's entries at the keepers, and only when that is durable lets out its outputs,
 *      applies its effects, sets its timers and makes its calls, in that order; commits of one session in order.
 * CM2  A commit with `isPoint: false` is made while a handler runs, because a call with an effect waits for its
 *      intent to be recorded: it has entries and calls, no outputs, effects or timers. Should the handler throw
 *      later, a `rejected` entry voids those entries; the log is append-only.
 * CM3  Outputs to one receiver are numbered 1, 2, 3 …, effects and calls of a session too, over all epochs. A
 *      replay gives the same number to the same thing: number and content name it for ever, so that whoever has
 *      seen a number drops it.
 * CM5  Where the log that a session was opened with leaves merges or writes with checks (`leavesMarks`), the first commit
 *      comes at once: with the entry of its epoch, if the log has none, so that its home can have that at the keepers
 *      before it makes them again.
 * CM4  An output or effect is kept here, in checkpoints too, until it is acknowledged (Acknowledged).
 */

import type { KeptCheckpoint, Peer } from "./event.ts";
import type { Subject } from "../../class/subject.ts";

/**
 * Bytes for a receiver: the id of a request (encodeAnswer's bytes) or of a peer (peers.ts, `peerOutput`: 0 text, 1
 * bytes: a message; 2 code and reason: it is sent away).
 */
export interface Output {
  readonly to: string;
  /** CM3. */
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** One write of a turn, as functions/vocabulary/store_client.ts has it. */
export type EffectMutation =
  | {
    readonly kind: "set";
    readonly key: string;
    readonly value: Uint8Array;
    readonly expireInMs?: number;
  }
  | { readonly kind: "delete"; readonly key: string }
  | { readonly kind: "sum" | "min" | "max"; readonly key: string; readonly value: Uint8Array };

/**
 * What one turn wrote to the store: applied together, with this version and no other, by whoever applies it,
 * however often. (session, effect) is its idempotent key.
 */
export interface Effect {
  /** CM3. */
  readonly effect: number;
  /** The version of its rows, from the log: clock and replica number of the turn and epoch that wrote it. */
  readonly clock: number;
  readonly replica: number;
  /** Milliseconds since 1970 from which `expireInMs` counts. */
  readonly atMs: number;
  readonly mutations: readonly EffectMutation[];
}

/** A named timer that was set, or cleared (null). */
export interface TimerChange {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly dueMs: number | null;
}

/** What a call asks for; call_bytes.ts has the bytes of each kind. */
export type CallKind =
  /** `get` and `list` of the store, under the session's own token, after all effects of earlier commits. */
  | "get"
  | "list"
  /** `commit` of the store with checks: applied when it is called, not at the handler's end. Has an effect. */
  | "commit"
  /** An outside request. Has an effect unless it is GET or HEAD. */
  | "fetch"
  /** A request to another stateful session. Has an effect. */
  | "session";

/** A call: the site answers with the event `result`. */
export interface Call {
  /** CM3. */
  readonly call: number;
  readonly kind: CallKind;
  readonly bytes: Uint8Array;
  /**
   * Where it has an effect: its idempotent key with the session's name. Made again with the same number and bytes
   * after a recovery whose log has no result; whoever receives it does it once.
   */
  readonly effect: number | null;
}

/** A handler that threw or was killed: what it was for, and that nothing of it happened. */
export interface Rejection {
  /** null: a closure timer threw. */
  readonly subject: Subject | null;
  /** 0: it is not tried again. Else it has been so many times, and will be. */
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
  /** Up to this number all events are done: handled, rejected or ignored. */
  readonly through: number;
  /** CM2. */
  readonly isPoint: boolean;
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly timers: readonly TimerChange[];
  /** Those of its calls that have an effect; others are made at once (SessionSink.call). */
  readonly calls: readonly Call[];
  /** A handler was undone: where it is not tried again, that of the event of the number `through`. */
  readonly rejected: Rejection | null;
  /** No handler, call or closure timer is open: a checkpoint could be taken. */
  readonly isQuiescent: boolean;
  /** The session called `end()`: nothing is delivered any more, its state and log can go. */
  readonly isEnded: boolean;
}

/** A checkpoint as it leaves. */
export interface Checkpoint extends KeptCheckpoint {
  /** `state` goes behind that of the checkpoint at this entry, the one that left before; null: it is all there is. */
  readonly on: number | null;
}

/** Who is attached, as the log says it. */
export interface OpenedPeer extends Peer {
  /** Outputs that it was given, the last of them its closing where `isClosed`. */
  readonly sent: number;
  /** Messages of it that are in the log, those too whose handlers were undone. */
  readonly received: number;
  readonly isClosed: boolean;
}

/** What a session has to say when it has been opened: what may not have left yet, and what it waits for. */
export interface OpenedProgram {
  /** Number of the last entry of the log it was opened with. */
  readonly sequence: number;
  readonly peers: readonly OpenedPeer[];
  /** All that is not known to be out, applied or acknowledged. Sites drop what they have done before (CM3). */
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  /** All named timers that are set. */
  readonly timers: readonly TimerChange[];
  /** Calls without a result in the log: make them (again). Their intents are in the log. */
  readonly calls: readonly Call[];
  /** The request whose handler was begun in the log and goes on: not to be delivered again. */
  readonly handling: string | null;
  readonly isQuiescent: boolean;
  readonly isEnded: boolean;
}

/** Its row can't be the same when it is written again: whether it was, a mark beside it tells. */
export const isMergeEffect = ({ kind }: EffectMutation): boolean => kind !== "set" && kind !== "delete";

/** Whether a log leaves merges to be applied, or writes with checks to be made. */
export const leavesMarks = ({ effects, calls }: Pick<OpenedProgram, "effects" | "calls">): boolean =>
  effects.some(({ mutations }) => mutations.some(isMergeEffect)) ||
  calls.some(({ kind }) => kind === "commit");

/** Outputs up to `sequence` have reached the receiver; `effects`: applied up to this number, durably. */
export interface Acknowledged {
  readonly outputs: Readonly<Record<string, number>>;
  readonly effects: number;
}

/** Why a session stands still until an operator resumes or resets it. Its log and checkpoint stay. */
export interface Parked {
  readonly code:
    /** A replay did otherwise than the log says. */
    | "diverged"
    /** It waits for something that nobody will ever deliver. */
    | "waits_unrecorded"
    /** Its log is full and it never comes to rest. */
    | "log_full"
    /** Its log or checkpoint can't be read. */
    | "log_corrupt"
    /** Its state can't be written down. */
    | "state_invalid"
    /** A handler threw, and its class wants no more to happen then (`static whenThrown`). */
    | "handler_threw"
    /** Its log was written by other code. */
    | "code_differs"
    /** Its code ran in a turn of another session: they share something in a module. */
    | "shared"
    /** Its object can't be made: the constructor threw. */
    | "class_invalid"
    /** Its state was written with a later shape than its class has. */
    | "shape_newer"
    /** `migrate` of its class threw, or was not done when it returned. */
    | "migrate_failed"
    /** It was asked what can be kept of it, and `detail` says how much that is (salvage.ts). */
    | "salvaged"
    /** Its class is not in the app. */
    | "class_unknown"
    /** The executor failed. */
    | "internal";
  readonly message: string;
  /** Divergence: the entry of the log and the one that the replay made. Else what there is to say. */
  readonly detail: Readonly<Record<string, unknown>>;
}
