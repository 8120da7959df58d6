/** Ends of a run of a stateful session (session_run.ts), and the listeners that are told of it. */
import type { HomeError } from "../home/mod.ts";
import type { Commit, HandledEvent, OpenedProgram, Parked, Rejection } from "../turn/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { ChannelSink } from "./ports.ts";
import type { RunStore } from "./ports.ts";

/** Reason for which a run is over. */
export type RunOver =
  /** Another site is the session's home, or will be. */
  | { readonly kind: "moved"; readonly error: HomeError }
  /**
   * The isolate is gone. `isCause`: it ended in a turn of this session. `isUnbegun`: this session had the last turn,
   * was at rest, and its next event was on its way. `underWay`: the number of events that may have been what ended it.
   */
  | {
    readonly kind: "killed";
    readonly why: string;
    readonly isCause: boolean;
    readonly isUnbegun: boolean;
    readonly underWay: number;
  }
  | { readonly kind: "parked"; readonly parked: Parked }
  /** The session called `end()`: its log is gone. */
  | { readonly kind: "ended" }
  /** The session is idle, or is to go on with other code. */
  | { readonly kind: "rested" }
  /** The session could not go on here: a write or a commit failed. */
  | { readonly kind: "failed"; readonly error: unknown };

/** The attached peers, as a run needs them (session_peers.ts). */
export interface RunPeers {
  /** Reports whether a receiver of outputs is a peer; otherwise it is a request. */
  isPeer(to: string): boolean;
  /** Takes the peers of the log, as the isolate tells them. */
  noted(opened: OpenedProgram): void;
  /** Makes the session see what peers have seen that attached before it served. @throws StoreUnavailable */
  ready(store: Pick<RunStore, "seeAll">): Promise<void>;
  /** Takes the peers of the log once that is at all owners, and what it left open has left. */
  opened(opened: OpenedProgram): void;
  /** Notes a commit that was appended, where hosts hold the log: they may be told these of its outputs. */
  appended(entry: number, outputs: Commit["outputs"]): void;
  /** Notes a commit, up to that entry, that has left, and the events that are done with it, by their numbers. */
  released(commit: Commit, done: readonly (readonly [number, HandledEvent])[], entry: number): void;
  /** Notes that the session has ended. */
  ended(): void;
}

/** Listener that is told what becomes of a run. */
export interface RunListener {
  readonly peers: RunPeers;
  /** Takes a request's answer, which may leave; `token`: what the session has seen. */
  answered(request: string, bytes: Uint8Array, token: TokenState): void;
  /** Notes that a request was done without an answer. */
  unanswered(request: string): void;
  /** Notes that an event was done as it should be: a request, a message, a timer … */
  done(): void;
  /** Notes that a handler threw or was killed, and nothing of it happened. */
  rejected(rejection: Rejection): void;
  /** Notes that the session has called `end()`, and its log is about to go; resolves when it may go. Never rejects. */
  ending(): Promise<void>;
  over(run: ChannelSink, over: RunOver): void;
  log(level: string, text: string): void;
  /** Reports a fault in the work around the run: it concerns this session only. */
  failed(error: unknown): void;
}

/** Error of a run that could not start. */
export class RunFailed extends Error {
  override readonly name = "RunFailed";
  constructor(readonly over: RunOver) {
    super(`a stateful session could not be opened: ${over.kind}`);
  }
}
