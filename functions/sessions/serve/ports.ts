/**
 * Ports of a stateful session that is served, beside its home: the isolate that its turns run in, the store as the
 * session sees it, and the maker of its calls. A site implements them with processes, disks and links
 * (runtime/stateful, runtime/isolate).
 */
import type {
  Acknowledged,
  Call,
  CallOutcome,
  Checkpoint,
  Commit,
  Effect,
  EffectSend,
  OpenedProgram,
  Parked,
  Promotion,
  SessionEvent,
} from "../turn/mod.ts";
import type { StatefulName } from "../home/mod.ts";
import type { SentMessage } from "../../vocabulary/queue_sender.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { ClockValue } from "../../../store/model/row.ts";

// ── Isolates ──

/** End of an isolate of stateful sessions. */
export interface StatefulEnd {
  /** True where nobody needed the isolate any more. */
  readonly isPlanned: boolean;
  readonly why: string;
  /** Channel whose turn ran last; 0: none. */
  readonly channel: number;
  /** Number of the newest event of that channel that had come to the isolate when that turn began; 0: none. */
  readonly received: number;
}

/** The site's end of one stateful session that is open in an isolate. */
export interface ChannelSink {
  opened(opened: OpenedProgram): void;
  /** Takes a commit; the promise resolves when nothing of it waits here any more. */
  commit(commit: Commit): Promise<void> | void;
  /** Takes a call without an effect. */
  call(call: Call): void;
  /** Tells that nobody waits for that call any more. */
  dropped(call: number): void;
  /** Takes a checkpoint; the promise as with `commit`. */
  checkpointed(checkpoint: Checkpoint): Promise<void> | void;
  parked(parked: Parked): void;
  log(level: string, text: string): void;
  /** Tells that the isolate is gone; `isCause`: it was gone in this session's turn. */
  ended(end: StatefulEnd, isCause: boolean): void;
}

/** An isolate, with what one session that is open in it needs of it. */
export interface ChannelIsolate {
  deliver(channel: number, event: SessionEvent): void;
  acknowledge(channel: number, acknowledged: Acknowledged): void;
  /** Asks for a checkpoint as soon as the session is at rest. */
  checkpointNow(channel: number): void;
  /** Takes the session out of this isolate; nothing of it is heard any more. */
  closeChannel(channel: number): void;
  /** Counts bytes that the isolate has sent, and that wait at this site, among the queues of its app; negative: given back. */
  holds(bytes: number): void;
  /** Kills the isolate for what the session of a channel did. */
  killFor(channel: number, why: string): void;
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

/** The store as one stateful session sees it at its home (functions/sessions/serve/own_store.ts, O1 to O7). */
export interface RunStore {
  /** Makes the session see what this token names, from now on. @throws StoreUnavailable */
  see(token: TokenState): Promise<void>;
  /** Does as {@link see} for the tokens of peers, one of each. @throws StoreUnavailable */
  seeAll(tokens: readonly TokenState[]): Promise<void>;
  /** Returns the token of all that the session has seen by now; it may leave when that is on disk. */
  seen(): TokenState;
  /** Count that grows with what the session touches: while it stands, `seen` says no more than before. */
  readonly touches: number;
  /** True while all that the session has seen is on disk. */
  readonly isDurable: boolean;
  /** Resolves when what the session has seen by now is on disk. @throws StoreUnavailable */
  durable(): Promise<void>;
  /** Returns the token of what the session has seen, when all of that is on disk. */
  token(): Promise<TokenState>;
  /** Returns a clock value for an event: the version of the rows that its turn writes. */
  tick(): ClockValue;
  /** Applies what a turn wrote. To apply it again changes nothing. */
  apply(effect: Effect): Promise<void>;
  /** Applies, of what turns wrote, the first effects that are too old to be applied one by one. */
  applyOld(effects: readonly Effect[]): Promise<void>;
  /** Resolves when what was applied is on disk: from then on the session has seen that. @throws StoreUnavailable */
  settle(): Promise<void>;
  /** True once all is known that homes before may have made. */
  readonly knowsMarks: boolean;
  /**
   * Finds out which of these writes were made by homes before.
   *
   * @param left the work that the log leaves to be done.
   * @throws StoreUnavailable where that is not known yet.
   */
  knowMarks(left: Pick<OpenedProgram, "effects" | "calls">): Promise<void>;
  /** Notes that the stateful session has ended. */
  forget(): Promise<void>;
  /**
   * Closes the store for a run that is over: writes of which only a mark tells that they are due are not made by it any
   * more.
   */
  close(): void;
}

// ── Queues ──

/** A message that a session sends, with its name among the session's: effect and place (run_sends.ts WM2). */
export interface NamedSend {
  /** Number of the effect that the message is part of. */
  readonly effect: number;
  /** Place among the messages of that effect. */
  readonly place: number;
  /** Time at which it was sent, in milliseconds since 1970. */
  readonly atMs: number;
  readonly send: EffectSend;
}

/** A message of a stateful session, with its name. */
export interface SessionMessage {
  readonly queue: string;
  readonly message: SentMessage;
  /** Name of the effect that the message is part of, among all of the cluster's. */
  readonly key: string;
  /** Place among the messages of that effect. */
  readonly place: number;
  /** Time at which the session sent it, in milliseconds since 1970. */
  readonly sentMs: number;
}

/** The queues as the stateful sessions of a site send to them. */
export interface SessionSends {
  /** Stores a message of a session of an app; see {@link RunQueues.store}. */
  storeOfSession(app: string, sent: SessionMessage): Promise<void>;
}

/** The queues as one stateful session sends to them. */
export interface RunQueues {
  /**
   * Stores a message at as many sites as its queue wants. Done again at the same site, it stores nothing more.
   *
   * @throws Error with a code that says why (functions/vocabulary/problem.ts).
   */
  store(named: NamedSend): Promise<void>;
}

// ── Calls ──

/** Circumstances of a call that is made. */
export interface Making {
  readonly signal: AbortSignal;
  /** Told the function to call when the call's outcome is in the log. */
  readonly kept: (heard: () => void) => void;
}

/** Makes the calls of one stateful session, in its name (made_calls.ts). */
export interface CallMaker {
  /** Returns the name of a call with an effect: for ever, among all of the cluster's. */
  keyOf(effect: number): string;
  /** Makes a call. It ends with an outcome, whatever happens. */
  make(call: Call, making: Making): Promise<CallOutcome>;
}

/** Makes the outside requests of one stateful session (runtime/stateful/outside_requests.ts). */
export interface OutsideRequests {
  /** Makes a request. @param key its name, for ever; null: the request has no effect. @throws where it is refused */
  fetch(call: Call, key: string | null, signal: AbortSignal): Promise<CallOutcome>;
}

// ── Sessions that stand still ──

/** Report of why a stateful session stands still. */
export interface ParkedReport {
  readonly code: string;
  readonly message: string;
  /** Detail to be told: both entries of a divergence, what was done, stacks. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** Version of the app that served then. */
  readonly version: string;
  readonly site: string;
  readonly atMs: number;
}

/** Sessions that stand still, and why, as every site knows (runtime/stateful/parked_table.ts). */
export interface ParkedSessions {
  get(name: StatefulName): ParkedReport | null;
  all(): Iterable<{ readonly name: StatefulName; readonly report: ParkedReport }>;
  /** Calls back when a session stands still no more; the result ends that. */
  onDrop(dropped: (name: StatefulName) => void): () => void;
  /** Reports that a session stands still. */
  park(name: StatefulName, report: ParkedReport): Promise<void>;
  /** Drops the report of a session: it may go on, or is no more. */
  drop(name: StatefulName): Promise<void>;
  /** Resolves when what was parked and dropped here so far is written, or could not be. */
  settled(): Promise<void>;
}
