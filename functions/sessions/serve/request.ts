/**
 * Requests for stateful sessions, and their answers, as whoever asks hands them in and as their home has them.
 */
import type { StatefulName } from "../home/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";

/** Answer to a request (functions/calls), with a token of what the stateful session had seen; null: it was not reached. */
export interface Answered {
  readonly answer: Uint8Array;
  readonly token: TokenState | null;
}

/** An answer that its home keeps, for a caller that asks again. */
export interface KeptAnswer extends Answered {
  /** Releases the answer: nobody will ask again. */
  heard(): void;
}

/** A call of a function to a stateful session. */
export interface StatefulRequest {
  readonly address: StatefulName;
  /** Bytes of the call (functions/calls). */
  readonly call: Uint8Array;
  /** State of the caller's session; null: it has seen nothing. */
  readonly token: TokenState | null;
  /** Id of a call that may be made again, at another site too: its answer is kept (runtime/gateway/once.ts). */
  readonly once?: string | undefined;
}

/** A request for a stateful session. */
export interface HostedRequest {
  /** Id of the request, drawn by the caller, which asks again with the same one. */
  readonly request: string;
  /** Stateful sessions that wait for it, outermost first. */
  readonly chain: readonly string[];
  readonly bytes: Uint8Array;
  /** Token of what the caller had seen. */
  readonly token: TokenState | null;
  /** Signal that the caller waits no longer: the request is not to be begun then, where it has not been (waits.ts). */
  readonly signal?: AbortSignal;
}
