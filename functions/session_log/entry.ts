/**
 * Entries of a stateful session's log: one for each turn, in the order in which the turns ran. What an entry says, with
 * the checkpoint before, is all that it takes to run the turn again (docs/protocol/session-log.md).
 */

/** What began a turn. */
export type EntryInput =
  /** An RPC or HTTP request; `chain`: the stateful sessions that wait for its answer. */
  | {
    readonly kind: "request";
    readonly request: string;
    readonly chain: readonly string[];
    readonly bytes: Uint8Array;
  }
  /** Somebody has attached. */
  | { readonly kind: "attach"; readonly peer: { readonly kind: "client" | "origin"; readonly id: string } }
  /** Somebody has gone. */
  | { readonly kind: "detach"; readonly peer: string }
  /** A message of somebody who keeps no log of his own. */
  | { readonly kind: "message"; readonly peer: string; readonly message: string | Uint8Array }
  /** A named timer. */
  | { readonly kind: "timer"; readonly name: string }
  /** A closure timer. */
  | { readonly kind: "local"; readonly local: number }
  /** A call has ended. */
  | { readonly kind: "result"; readonly call: number; readonly bytes: Uint8Array }
  /** A call has failed. */
  | { readonly kind: "error"; readonly call: number; readonly code: string; readonly message: string }
  /** In place of a handler that threw or was killed. */
  | {
    readonly kind: "rejected";
    /** So many entries before this one are void. */
    readonly voids: number;
    /** The request whose answer is the error. */
    readonly request: string | null;
    readonly code: string;
    readonly message: string;
    /** The closure timers are gone as well. */
    readonly dropsLocals: boolean;
    /** Numbers that the handler may have given are never given again. */
    readonly nextCall: number;
    readonly nextLocal: number;
    readonly nextEffect: number;
  }
  /** A home has opened the session under a new epoch, or other code goes on with it. */
  | { readonly kind: "epoch"; readonly epoch: number; readonly replica: number; readonly code: string }
  /** The session was born, with 32 bytes of which its randomness comes. */
  | { readonly kind: "birth"; readonly seed: Uint8Array }
  /** A checkpoint was taken: 32 bits over its bytes, and the rolling check in full. */
  | { readonly kind: "checkpoint"; readonly digest: number; readonly rolling: number };

/** What became of a turn, as far as a replay has to know it. */
export interface Entry {
  readonly input: EntryInput;
  /** What the clock said when it was read, in ms since 1970: nothing where it was not read. */
  readonly clocks: readonly number[];
  /** The clock in the versions of the rows that the turn wrote; null where it wrote none. */
  readonly storeClock: number | null;
  /** Low byte of the rolling check after it. */
  readonly check: number;
}

/** The clocks that entries count from: those of the entry before, or of the checkpoint; 0 at birth. */
export interface LogClocks {
  readonly clockMs: number;
  readonly storeClock: number;
}
