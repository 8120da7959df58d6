/**
 * Ports of a stateful session that is served, beside its home: the isolate that its turns run in, the store as it sees it,
 * and whoever makes its calls. A site has them of processes, disks and links (runtime/stateful, runtime/isolate).
 */
import type {
  Acknowledged,
  Call,
  CallOutcome,
  Checkpoint,
  Commit,
  Effect,
  OpenedProgram,
  Parked,
  Promotion,
  SessionEvent,
} from "../turn/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { ClockValue } from "../../../store/model/row.ts";

// ── Isolates ──

/** How an isolate of stateful sessions ended. */
export interface StatefulEnd {
  /** Nobody needed it any more. */
  readonly isPlanned: boolean;
  readonly why: string;
  /** The channel whose turn ran last; 0: none. */
  readonly channel: number;
  /** The number of the newest event of that channel that had come to the isolate when that turn began; 0: none. */
  readonly received: number;
}

/** The site's end of one stateful session that is open in an isolate. */
export interface ChannelSink {
  opened(opened: OpenedProgram): void;
  /** Takes a commit; the promise resolves when nothing of it waits here any more. */
  commit(commit: Commit): Promise<void> | void;
  /** A call without an effect. */
  call(call: Call): void;
  /** Nobody waits for that call any more. */
  dropped(call: number): void;
  /** As with `commit`. */
  checkpointed(checkpoint: Checkpoint): Promise<void> | void;
  parked(parked: Parked): void;
  log(level: string, text: string): void;
  /** The isolate is gone; `isCause`: it was this session's turn. */
  ended(end: StatefulEnd, isCause: boolean): void;
}

/** An isolate, as far as one session that is open in it needs it. */
export interface ChannelIsolate {
  deliver(channel: number, event: SessionEvent): void;
  acknowledge(channel: number, acknowledged: Acknowledged): void;
  /** Asks for a checkpoint as soon as the session is at rest. */
  checkpointNow(channel: number): void;
  /** The session leaves this isolate; nothing of it is heard any more. */
  closeChannel(channel: number): void;
  /** Counts bytes that the isolate has sent, and that wait at this site, among the queues of its app; negative: given back. */
  holds(bytes: number): void;
  /** @param cause the channel of the session that is to blame; left out: whose turn it is. */
  kill(why: string, cause?: number): void;
}

/** A session in its isolate. */
export interface OpenChannel {
  readonly isolate: ChannelIsolate;
  readonly channel: number;
}

/** A session that is followed, in its isolate. */
export interface FollowedChannel {
  readonly isolate: ChannelIsolate & {
    /** Hands on entries that were appended to the session's log. */
    piece(channel: number, entries: Uint8Array): void;
    /** Makes the session run here from now on; `sink` is told what becomes of it. */
    promote(channel: number, promotion: Promotion, sink: ChannelSink): void;
  };
  readonly channel: number;
}

// ── The store ──

/** The store as one stateful session sees it at its home (runtime/stateful/own_store.ts, O1 to O7). */
export interface RunStore {
  /** From now on it has seen what this token names. @throws StoreUnavailable */
  see(token: TokenState): Promise<void>;
  /** As {@link see}, of those attached, one token each. @throws StoreUnavailable */
  seeAll(tokens: readonly TokenState[]): Promise<void>;
  /** The token of all that the session has seen by now; it may leave when that is on disk. */
  seen(): TokenState;
  /** Counts what it touches: `seen` says no more than before where it is as it was. */
  readonly touches: number;
  /** Whether what it has seen by now is on disk. */
  readonly isDurable: boolean;
  /** Resolves when what it has seen by now is on disk. @throws StoreUnavailable */
  durable(): Promise<void>;
  /** What it has seen, when all of that is on disk. */
  token(): Promise<TokenState>;
  /** A clock value for an event: the version of the rows that its turn writes. */
  tick(): ClockValue;
  /** Applies what a turn wrote; again, it is the same. */
  apply(effect: Effect): Promise<void>;
  /** Of what turns wrote, the first ones that are too old to be applied one by one, but for merges. */
  applyOld(effects: readonly Effect[]): Promise<void>;
  /** Resolves when what was applied is on disk: from then on it has seen that. @throws StoreUnavailable */
  settle(): Promise<void>;
  /** Whether all that homes before may have made is known. */
  readonly knowsMarks: boolean;
  /**
   * Finds out which of these were made by homes before.
   *
   * @param left what the log leaves to be done.
   * @throws StoreUnavailable where that is not known yet.
   */
  knowMarks(left: Pick<OpenedProgram, "effects" | "calls">): Promise<void>;
  /** The stateful session has ended. */
  forget(): Promise<void>;
  /** Its run is over: what only a mark tells to be written is not written by it any more. */
  close(): void;
}

// ── Calls ──

/** How a call is made. */
export interface Making {
  readonly signal: AbortSignal;
  /** Told what to call when its outcome is in the log. */
  readonly kept: (heard: () => void) => void;
}

/** Makes the calls of one stateful session, in its name (runtime/stateful/made_calls.ts). */
export interface CallMaker {
  /** Names a call with an effect for ever, among all of the cluster's. */
  keyOf(effect: number): string;
  /** It ends with an outcome, whatever happens. */
  make(call: Call, making: Making): Promise<CallOutcome>;
}
