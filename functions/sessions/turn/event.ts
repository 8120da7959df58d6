/**
 * What a stateful session consumes: the events that its site delivers to the isolate in which it runs.
 *
 * EV1  Events of one session are delivered in the order in which they were handed over. Requests, messages,
 *      attachments and timers wait for their turn (one handler at a time); results are delivered meanwhile.
 * EV2  Every event but a result carries `number`: 1, 2, 3 … as the site counts them in this isolate, with no gap.
 *      A commit says up to which of them all are done (commit.ts, `through`).
 * EV3  `storeClock` is a value that the site's store clock was ticked for, so that no other write of the site has
 *      it: the rows written in the turn of this event have it in their version.
 */

/** Who is attached to a stateful session. `id` is the receiver of what it is sent. */
export interface Peer {
  readonly kind: "client" | "origin";
  /** 1 to 200 bytes, the same for as long as it is attached, and nobody's ever after: its outputs are numbered by it. */
  readonly id: string;
}

/** How a call that a session made ended. */
export type CallOutcome =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** What is handled one after the other: each begins a handler. */
export type HandledEvent =
  /** An RPC or HTTP request (encodeCall's bytes, functions/calls/call.ts). Its answer is the output 1 to the receiver `request`. */
  | {
    readonly kind: "request";
    readonly request: string;
    /** Stateful sessions that wait for this one, as `chainName` calls them, outermost first. */
    readonly chain: readonly string[];
    readonly bytes: Uint8Array;
  }
  /** Somebody has attached: `onOpen`. Ignored where it is attached already. */
  | { readonly kind: "attach"; readonly peer: Peer }
  /** A message of somebody who is attached: `onMessage`. */
  | { readonly kind: "message"; readonly peer: string; readonly message: string | Uint8Array }
  /** Somebody has gone: `onClose`. */
  | { readonly kind: "detach"; readonly peer: string }
  /** A named timer is due: `onTimer`. Ignored where the timer has been changed since (`dueMs` differs). */
  | { readonly kind: "timer"; readonly name: string; readonly dueMs: number }
  | RejectEvent;

/** Events that begin handlers of the app's class. */
export type BegunEvent = Exclude<HandledEvent, { readonly kind: "reject" }>;

/**
 * In place of an event in which an isolate was killed (a handler that loops, or eats memory): its handler counts as one
 * that threw. Where it was begun in the log and goes on (Opened, `handling`), that is ended.
 */
export interface RejectEvent {
  readonly kind: "reject";
  /** null: none was being handled, but a closure timer ran. All of them are dropped. */
  readonly of: BegunEvent | null;
  readonly code: string;
  readonly message: string;
}

/** What a site delivers. */
export type SessionEvent =
  & { readonly storeClock: number }
  & (
    | (HandledEvent & { readonly number: number })
    /** A call (commit.ts) has ended. A result for a call that is not open any more is ignored. */
    | { readonly kind: "result"; readonly call: number; readonly outcome: CallOutcome }
  );

/** How a chain of calls names a session: a call to one that is in its caller's chain fails with `cycle`. */
export const chainName = (className: string, id: string): string => `${className}/${id}`;

/** A checkpoint: it stands for all entries up to `at`, the last one of which names its digest. */
export interface KeptCheckpoint {
  readonly at: number;
  /** All but the state (checkpoint.ts). */
  readonly bytes: Uint8Array;
  /** Its state: segments, oldest first (functions/tracked/state.ts). */
  readonly state: readonly Uint8Array[];
}

/** What a session is opened with. */
export interface OpenSession {
  /** Its class: the name in `defineApp({ sessions })`. */
  readonly class: string;
  readonly id: string;
  /** Of the home that opens it. A new epoch is recorded with the first commit that follows. */
  readonly epoch: number;
  /** Replica number of the site, for the versions of rows written in this epoch. */
  readonly replica: number;
  /** Names code, variables and Deno build: a log is replayed by what wrote it, and by nothing else. */
  readonly code: string;
  /** 32 random bytes. Used when the session is born, ignored (it is in the log) ever after. */
  readonly seed: Uint8Array;
  readonly checkpoint: KeptCheckpoint | null;
  /** All entries after the checkpoint, as the keepers hold them. */
  readonly entries: Uint8Array;
  /** Per receiver the sequence up to which outputs are known to be out: those are not given out again. */
  readonly out: Readonly<Record<string, number>>;
  /** The number up to which effects are known to be applied. */
  readonly effectsApplied: number;
  /** Where its replay does otherwise, it says so with the contents of what it did: they are the developer's own. */
  readonly shows?: true;
  /** Of its log what can be kept is made a checkpoint, and nothing more is done (salvage.ts). */
  readonly salvages?: true;
}
