/** What becomes of a run of a stateful session (session_run.ts), and who is told. */
import type { HomeError } from "../home/mod.ts";
import type { Commit, HandledEvent, OpenedProgram, Parked, Rejection } from "../turn/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { ChannelSink } from "./ports.ts";
import type { RunStore } from "./ports.ts";

/** Why a run is over. */
export type RunOver =
  /** Another site is its home, or will be. */
  | { readonly kind: "moved"; readonly error: HomeError }
  /**
   * The isolate is gone. `isCause`: in a turn of this session. `isUnbegun`: that had a turn last, was at rest, and its
   * next event was on its way. `underWay`: the events that may have been what ended it.
   */
  | {
    readonly kind: "killed";
    readonly why: string;
    readonly isCause: boolean;
    readonly isUnbegun: boolean;
    readonly underWay: number;
  }
  | { readonly kind: "parked"; readonly parked: Parked }
  /** It called `end()`: its log is gone. */
  | { readonly kind: "ended" }
  /** Idle, or to go on with other code. */
  | { readonly kind: "rested" }
  /** It could not go on here: a write or a commit failed. */
  | { readonly kind: "failed"; readonly error: unknown };

/** Those attached, as a run has them (session_peers.ts). */
export interface RunPeers {
  /** An output is for a peer, not the answer of a request. */
  isPeer(to: string): boolean;
  /** The isolate says what its log has. */
  noted(opened: OpenedProgram): void;
  /** What those who attached before it served have seen is to be seen by the session. @throws StoreUnavailable */
  ready(store: Pick<RunStore, "seeAll">): Promise<void>;
  /** That is at all owners, and what it left open has left. */
  opened(opened: OpenedProgram): void;
  /** A commit was appended, where hosts hold the log: they may be told these of its outputs. */
  appended(entry: number, outputs: Commit["outputs"]): void;
  /** A commit, up to that entry, has left; the events that are done with it, by their numbers. */
  released(commit: Commit, done: readonly (readonly [number, HandledEvent])[], entry: number): void;
  /** The session has ended. */
  ended(): void;
}

/** Who is told of a run. */
export interface RunListener {
  readonly peers: RunPeers;
  /** A request's answer may leave; `token`: what the session has seen. */
  answered(request: string, bytes: Uint8Array, token: TokenState): void;
  /** A request was done without an answer. */
  unanswered(request: string): void;
  /** An event was done as it should be: a request, a message, a timer … */
  done(): void;
  /** A handler threw or was killed, and nothing of it happened. */
  rejected(rejection: Rejection): void;
  /** It has called `end()`, and its log is about to go; resolves when it may. Never rejects. */
  ending(): Promise<void>;
  over(run: ChannelSink, over: RunOver): void;
  log(level: string, text: string): void;
  /** A fault of what goes on around the run: it concerns this session only. */
  failed(error: unknown): void;
}

/** A run that could not start. */
export class RunFailed extends Error {
  override readonly name = "RunFailed";
  constructor(readonly over: RunOver) {
    super(`a stateful session could not be opened: ${over.kind}`);
  }
}
