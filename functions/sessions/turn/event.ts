/**
 * Events: what a stateful session consumes, as its site delivers it to the isolate in which the session runs.
 *
 * EV1  Events of one session are delivered in the order in which they were handed over. Requests, messages,
 *      attachments and timers wait for their turn (one handler at a time); results are delivered meanwhile.
 * EV2  Every event but a result carries `number`: 1, 2, 3 … as the site counts them in this isolate, with no gap.
 *      A commit says up to which of them all are done (commit.ts, `through`).
 * EV3  `storeClock` is a value that the site's store clock was ticked for, so that no other write of the site has
 *      it: the rows written in the turn of this event have it in their version.
 */

/** A client or origin that is attached to a stateful session. `id` is the receiver of the outputs to it. */
export interface Peer {
  readonly kind: "client" | "origin";
  /**
   * Id of 1 to 200 bytes: the same for as long as the peer is attached, and nobody else's ever after, since outputs to
   * the peer are numbered under it.
   */
  readonly id: string;
}

/** Outcome of a call that a session made. */
export type CallOutcome =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** Events that are handled one after the other: each begins a handler. */
export type HandledEvent =
  /**
   * An RPC or HTTP request (bytes that encodeCall makes, functions/calls/call.ts). Its answer is the output 1 to the
   * receiver `request`.
   */
  | {
    readonly kind: "request";
    readonly request: string;
    /** Stateful sessions that wait for this one, as `chainName` calls them, outermost first. */
    readonly chain: readonly string[];
    readonly bytes: Uint8Array;
  }
  /** A peer has attached: `onOpen`. Ignored where it is attached already. */
  | { readonly kind: "attach"; readonly peer: Peer }
  /** A message of an attached peer: `onMessage`. */
  | { readonly kind: "message"; readonly peer: string; readonly message: string | Uint8Array }
  /** A peer has gone: `onClose`. */
  | { readonly kind: "detach"; readonly peer: string }
  /** A named timer is due: `onTimer`. Ignored where the timer has been changed since (`dueMs` differs). */
  | { readonly kind: "timer"; readonly name: string; readonly dueMs: number }
  | RejectEvent;

/** Events that begin a handler of the app's class. */
export type BegunEvent = Exclude<HandledEvent, { readonly kind: "reject" }>;

/**
 * Replacement for an event in which an isolate was killed (a handler that loops, or eats memory): the event's handler
 * counts as one that threw. Where the log has begun that handler and it goes on (OpenedProgram, `handling`), it is
 * ended.
 */
export interface RejectEvent {
  readonly kind: "reject";
  /**
   * The event in which the isolate was killed; null: no handler ran, but a closure timer. All closure timers are
   * dropped then.
   */
  readonly of: BegunEvent | null;
  readonly code: string;
  readonly message: string;
}

/** Event that a site delivers to a session. */
export type SessionEvent =
  & { readonly storeClock: number }
  & (
    | (HandledEvent & { readonly number: number })
    /** A call (commit.ts) has ended. A result for a call that is not open any more is ignored. */
    | { readonly kind: "result"; readonly call: number; readonly outcome: CallOutcome }
  );

/**
 * Returns the name of a session in a chain of calls: a call to a session that is in its caller's chain fails with
 * `cycle`.
 */
export const chainName = (className: string, id: string): string => `${className}/${id}`;

/** A checkpoint. It stands for all entries up to `at`; the entry `at` names its digest. */
export interface KeptCheckpoint {
  readonly at: number;
  /** Bytes of the checkpoint without its state (checkpoint.ts). */
  readonly bytes: Uint8Array;
  /** Segments of its state, oldest first (functions/tracked/state.ts). */
  readonly state: readonly Uint8Array[];
}

/** Arguments with which a session is opened. */
export interface OpenSession {
  /** Name of the session's class in `defineApp({ sessions })`. */
  readonly class: string;
  readonly id: string;
  /** Epoch of the home that opens the session. A new epoch is recorded with the first commit that follows. */
  readonly epoch: number;
  /** Replica number of the site, for the versions of rows written in this epoch. */
  readonly replica: number;
  /** Name of the code, variables and Deno build: a log is replayed by the code that wrote it, and by no other. */
  readonly code: string;
  /**
   * Seed of 32 random bytes. Used when the session is born; later the seed in the log counts, and this one is ignored.
   */
  readonly seed: Uint8Array;
  readonly checkpoint: KeptCheckpoint | null;
  /** All entries after the checkpoint, as the keepers hold them. */
  readonly entries: Uint8Array;
  /** By receiver, the number up to which outputs are known to be out: those are not given out again. */
  readonly out: Readonly<Record<string, number>>;
  /** Number up to which effects are known to be applied. */
  readonly effectsApplied: number;
  /** Set for a developer's own check: a replay that differs is reported with the contents of what it did. */
  readonly shows?: true;
  /** Set to salvage: a checkpoint is made of what can be kept of the log, and nothing more is done (salvage.ts). */
  readonly salvages?: true;
}
