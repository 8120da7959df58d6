/**
 * Vocabulary between the runtime and the homes of stateful sessions.
 *
 * Use, at the site that a request for a stateful session came to:
 *
 * 1. `homes.where(name)` may know its home: forward the request there. Nobody, or that site says it is not: on.
 * 2. `homes.open(name, version)`: this site becomes its home, or stays it, or learns where it is (`HomeError`
 *    `elsewhere`). What it returns is to be replayed in an isolate: the checkpoint, then the log.
 * 3. `opened.start(answers)`, with all answers that the replay made, in their order, is the {@link Home} that serves.
 * 4. For each request `home.ask(request)`: `new` → run it; anything else → it was run already.
 * 5. Each commit of the isolate: `await home.commit(…)`, then, and only then, its outputs leave.
 * 6. `home.checkpoint(…)` from time to time; `home.rest()` when the session is idle and leaves memory; `home.over`
 *    says that another site has it: close the isolate, answer nobody more, send them on.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { LogCopy, LogPiece } from "./log_copy.ts";

/** Name of a stateful session: the instance `id` of the class that the app's `sessions` name so. */
export interface StatefulName {
  readonly app: string;
  readonly class: string;
  /** Id of the instance: 1 to 200 bytes of UTF-8. */
  readonly id: string;
}

/** Disk that keeps a log. A site whose disk was lost comes back as another owner. */
export interface Owner {
  readonly site: SiteId;
  /** Number drawn when the disk was blank. */
  readonly disk: number;
}

/** Commit as it stands in the log: entries `first` … `first + count − 1`. The bytes are opaque here. */
export interface Piece {
  readonly first: number;
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** Checkpoint: the state after the entry `at`. */
export interface LoggedCheckpoint {
  readonly at: number;
  readonly bytes: Uint8Array;
  /**
   * State of the session that lies beside the checkpoint, in opaque parts of at most `STATE_PART_BYTES_MAX`
   * (limits.ts): these come after the parts of the checkpoint at `on`, or are the whole state. A checkpoint that was
   * read has all of its parts.
   */
  readonly parts?: readonly Uint8Array[];
  /** Entry of the checkpoint whose parts come before these; null or left out where no others do. */
  readonly on?: number | null;
  /** Version of the code that wrote the checkpoint; it reads the checkpoint and the log after it. */
  readonly version: string;
}

/** Answer to a request. */
export interface LoggedAnswer {
  /** Id of the request: 1 to 100 bytes, drawn by the caller, the same each time that the request is sent. */
  readonly request: string;
  readonly bytes: Uint8Array;
}

/** Commit of an isolate, before it is in the log. */
export interface IsolateCommit {
  readonly count: number;
  readonly entries: Uint8Array;
  /** Answers to requests that are among the commit's outputs: kept for callers that ask again. */
  readonly answers: readonly LoggedAnswer[];
  /**
   * Time at which the earliest named timer is due, by the wall clock; null where there is none. `ports.due` reports it,
   * at whichever site it is then.
   */
  readonly wakeAtMs: number | null;
}

/** State of a request that is registered, perhaps not for the first time. */
export type Asked =
  | { readonly kind: "new" }
  /** Resolves with the answer when it may leave; rejects with a HomeError when the home ends before. */
  | { readonly kind: "known"; readonly answer: Promise<Uint8Array> }
  /** The request was run, and its answer is not kept any more (docs/protocol/homes.md, R3). */
  | { readonly kind: "past" };

/** Reason why this site is not, or is no longer, the home. */
export type HomeCode =
  /** Another site is the home; `site` says which. */
  | "elsewhere"
  /** Another site has taken the session over meanwhile; `open` says where its home is. */
  | "superseded"
  /** Neither the session's home nor any owner can be asked. Retry. */
  | "stateful_unreachable"
  /** The root cannot be asked which site is the home. Retry. */
  | "arbiter_unreachable"
  /** The session has ended. */
  | "ended"
  /** The site stops. */
  | "closed"
  /** A name, a commit or a checkpoint beyond its limits, more sessions than an app may have, or no room. */
  | "limit_stateful"
  /** Another site was to have the session and can't, or did not take it: it goes on here. */
  | "move_refused"
  /** Refusal to run or open anything new while the answers kept here take all the memory that they may. Retry. */
  | "overloaded";

/** Error of everything that homes do, known by its code. */
export class HomeError extends Error {
  override readonly name = "HomeError";
  constructor(readonly code: HomeCode, message: string, readonly site: SiteId | null = null) {
    super(message);
  }
}

/** Stateful session that this site may serve, before its state is made again. */
export interface OpenedSession {
  readonly name: StatefulName;
  /** Number of this opening: unique, and above those of earlier ones. */
  readonly epoch: number;
  /** Version of the code to run: that of the checkpoint or, where there is none, of the first entry. */
  readonly version: string;
  /** Seed of the session's randomness: 32 bytes, the same at every opening. */
  readonly seed: Uint8Array;
  readonly checkpoint: LoggedCheckpoint | null;
  /** Pieces after the checkpoint, in order. */
  readonly log: readonly Piece[];
  /** Starts the home once the state is made. @param answers of the log's requests, as the replay made them. */
  start(answers: readonly LoggedAnswer[]): Home;
  /** Gives up the opening where the state could not be made: the session rests at this site, which stays its home. */
  abandon(): void;
  /** Resolves when an earlier home at that site, should there be one, is over; never where that site is this one's. */
  fence(site: SiteId): Promise<void>;
}

/** Hosts of a stateful session, clients or origins, that hold its log beside the disks (host_owners.ts). */
export interface HomeHosts {
  /** Hosts that were asked when the session was opened. */
  readonly asked: readonly string[];
  /**
   * Hosts that this home, or one before it, was to ask and opened without: they are no peers of the session any more.
   */
  readonly leftBehind: readonly string[];
  /**
   * Notes that a host has the log up to an entry and is to be on record. Returns false where as many are as there may
   * be.
   */
  has(host: string, through: number): boolean;
  /** Takes a host off the record that can't be reached, or holds the log no more. */
  drop(host: string): void;
  /**
   * Notes that all owners know that a host left behind is no peer any more: that need not be on record from then on.
   */
  gone(host: string): void;
  /** Notes that something leaves to a host that is ahead, with the log up to an entry. */
  told(host: string, through: number): void;
  /** Reports whether a host may be told what the disks do not have yet. */
  isAhead(host: string): boolean;
  /** Reports whether an opening would wait for a host. */
  isAwaited(host: string): boolean;
  /** Called when other hosts are on record. */
  onRecorded: () => void;
  /** Called when more is released. */
  onReleased: () => void;
  /** Called with each commit, when it is appended. */
  onAppended: (piece: LogPiece) => void;
  /** Called when all disks have the base at an entry. */
  onBased: (at: number) => void;
}

/** Home of a stateful session, which serves it. */
export interface Home {
  readonly name: StatefulName;
  readonly epoch: number;
  /** Last entry of the log. */
  readonly sequence: number;
  /** Last entry that all owners have: what follows from the entries up to it has left, or may. */
  readonly released: number;
  readonly hosts: HomeHosts;
  /** True while a commit waits for owners that are not there. */
  readonly isStalled: boolean;
  /** Bytes of the log after the last checkpoint. */
  readonly logBytes: number;
  /** Sites that have the log, as far as is known, the nearest first: the session could move there. */
  readonly heirs: readonly SiteId[];
  /** Resolves when this site is not the home any more, or stops; never after `rest` (HomesPorts.onOver then). */
  readonly over: Promise<HomeError>;
  /**
   * Registers a request; `new` means that its answer will come in a commit, or that `dropped` is called for it.
   *
   * @param isBegun true where the log says that the handler runs already: the request is never refused for want of
   * room.
   * @throws HomeError `limit_stateful`; `overloaded` where the request is not known and is not to be run now.
   */
  ask(request: string, isBegun?: boolean): Asked;
  /** Notes that a request that was `new` will not be in any commit: sent again, it is a new one. */
  dropped(request: string): void;
  /** Notes that the caller of a request has its answer, which need not be kept beyond the next checkpoint. */
  received(request: string): void;
  /**
   * Appends a commit to the log; resolves when all owners have it on disk. The next may be appended without waiting:
   * commits are held in their order.
   *
   * @throws HomeError `superseded`, `closed`, `limit_stateful` (nothing was appended).
   */
  commit(commit: IsolateCommit): Promise<void>;
  /**
   * Replaces the log up to a commit's last entry; resolves when all owners have it.
   *
   * @throws HomeError as commit does.
   */
  checkpoint(checkpoint: LoggedCheckpoint): Promise<void>;
  /** Resolves when all that the home was opened with, and all that was appended so far, is on disk at all owners. */
  settled(): Promise<void>;
  /** Bytes of what `copy` gives, as far as it is on the disk. */
  readonly copyBytes: number;
  /** Returns the log as this site's disk has it, with all that was appended before the call. @throws HomeError */
  copy(): Promise<LogCopy>;
  /**
   * Takes the session out of memory; it stays at home here. Resolves when what was appended is held. `open` comes next.
   */
  rest(): Promise<void>;
  /**
   * Sends the log to another site that is to be the home. Resolves when that site has all of it; it gets all that is
   * appended until `moveTo` or `stay`. Nothing changes hands.
   *
   * @throws HomeError `move_refused`: that site can't have it.
   */
  prepareMove(site: SiteId): Promise<void>;
  /**
   * Has another site take the session over: resolves when the arbiter knows, and this home is over then. Drain and
   * checkpoint before.
   *
   * @throws HomeError `move_refused`: the session goes on here.
   */
  moveTo(site: SiteId): Promise<void>;
  /** Calls off a move that was prepared: that site is not to have the session any more. */
  stay(site: SiteId): void;
  /** Ends the session for good; its log goes. */
  end(): Promise<void>;
}

/** Row of the arbiter for a name. */
export interface RowState {
  readonly site: SiteId;
  readonly epoch: number;
  /** Number of changes of its owners. */
  readonly config: number;
  readonly owners: readonly Owner[];
  /** Version of the code at the last opening. */
  readonly version: string;
  readonly ended: boolean;
  /** Site that may take the session over, as its home has agreed; "" where there is none. */
  readonly movesTo: SiteId;
}

/** Row of the arbiter, as operators see it. */
export interface HomeRow extends RowState {
  readonly name: StatefulName;
}
