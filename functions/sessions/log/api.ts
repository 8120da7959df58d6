/**
 * What the runtime and the homes of stateful sessions say to each other.
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

/** A stateful session: the instance `id` of the class that the app's `sessions` name so. */
export interface StatefulName {
  readonly app: string;
  readonly class: string;
  /** 1 to 200 bytes of UTF-8. */
  readonly id: string;
}

/** A disk that keeps a log. A site whose disk was lost comes back as another owner. */
export interface Owner {
  readonly site: SiteId;
  /** Drawn when the disk was blank. */
  readonly disk: number;
}

/** One commit as it stands in the log: entries `first` … `first + count − 1`. The bytes are opaque here. */
export interface Piece {
  readonly first: number;
  readonly count: number;
  readonly bytes: Uint8Array;
}

/** The state after the entry `at`. */
export interface LoggedCheckpoint {
  readonly at: number;
  readonly bytes: Uint8Array;
  /**
   * What lies beside it, in parts of at most `PART_BYTES_MAX` (limits.ts), each opaque: those of the checkpoint before
   * it, `on`, and these; or only these. Of a checkpoint that was read, all of them.
   */
  readonly parts?: readonly Uint8Array[];
  /** The entry of the checkpoint whose parts come before these; null, or left out: there are no others. */
  readonly on?: number | null;
  /** Of the code that wrote it, and that reads it and the log after it. */
  readonly version: string;
}

/** What a request was answered. */
export interface LoggedAnswer {
  /** The request's id: 1 to 100 bytes, drawn by whoever asks, the same when it asks again. */
  readonly request: string;
  readonly bytes: Uint8Array;
}

/** One commit of the isolate. */
export interface IsolateCommit {
  readonly count: number;
  readonly entries: Uint8Array;
  /** Answers to requests that are among its outputs: kept for those who ask again. */
  readonly answers: readonly LoggedAnswer[];
  /** When the earliest named timer is due, by the wall clock; null: none. `ports.due` says so, wherever it is then. */
  readonly wakeAtMs: number | null;
}

/** What became of a request that asks, perhaps again. */
export type Asked =
  | { readonly kind: "new" }
  /** Resolves with the answer when it may leave; rejects with a HomeError when the home ends before. */
  | { readonly kind: "known"; readonly answer: Promise<Uint8Array> }
  /** It was run, and its answer is not kept any more (docs/protocol/homes.md, K3). */
  | { readonly kind: "past" };

/** Why this site is not, or not any more, the home. */
export type HomeCode =
  /** Another site is; `site` says which. */
  | "elsewhere"
  /** Another site has taken it over meanwhile; ask `open` where it is. */
  | "superseded"
  /** Neither its home nor any owner can be asked. Retry. */
  | "stateful_unreachable"
  /** The root cannot be asked who is its home. Retry. */
  | "arbiter_unreachable"
  /** It has ended. */
  | "ended"
  /** The site stops. */
  | "closed"
  /** A name, a commit or a checkpoint beyond its limits, more sessions than an app may have, or no room. */
  | "limit_stateful"
  /** Another site was to have it, and can't, or did not: it goes on here. */
  | "move_refused"
  /** Nothing new is run or opened for now: the answers kept here take all the memory that they may. Retry. */
  | "overloaded";

/** Thrown by everything here; known by its code. */
export class HomeError extends Error {
  override readonly name = "HomeError";
  constructor(readonly code: HomeCode, message: string, readonly site: SiteId | null = null) {
    super(message);
  }
}

/** A stateful session that this site may serve, before its state is made again. */
export interface OpenedSession {
  readonly name: StatefulName;
  /** Unique to this opening, rising. */
  readonly epoch: number;
  /** The code to run: that of the checkpoint or, where there is none, of the first entry. */
  readonly version: string;
  /** 32 bytes, the same at every opening: the seed of its randomness. */
  readonly seed: Uint8Array;
  readonly checkpoint: LoggedCheckpoint | null;
  /** All after the checkpoint, in order. */
  readonly log: readonly Piece[];
  /** The state is there. @param answers of the log's requests, as the replay made them. */
  start(answers: readonly LoggedAnswer[]): Home;
  /** It could not be made: this site rests as its home. */
  abandon(): void;
  /** Resolves when a home of before, should there be one at this site, is over; never where this one is. */
  fence(site: SiteId): Promise<void>;
}

/** The hosts of a stateful session, clients or origins, that hold its log beside the disks (host_owners.ts). */
export interface HomeHosts {
  /** Those that were asked when it was opened. */
  readonly asked: readonly string[];
  /** Those that it, or a home before it, was to ask and was opened without: they are no peers of it any more. */
  readonly leftBehind: readonly string[];
  /** A host has the log up to an entry: it is to be on record. False: there are as many as there may be. */
  has(host: string, through: number): boolean;
  /** It can't be reached, or holds no more: it is to be on record no longer. */
  drop(host: string): void;
  /** All owners know that it is no peer of the session: that it was left behind need not be on record any more. */
  gone(host: string): void;
  /** Something leaves to a host that is ahead, with the log up to an entry. */
  told(host: string, through: number): void;
  /** Whether it may be told what the disks do not have yet. */
  isAhead(host: string): boolean;
  /** Whether an opening would wait for it. */
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

/** A stateful session at home. */
export interface Home {
  readonly name: StatefulName;
  readonly epoch: number;
  /** The last entry of the log. */
  readonly sequence: number;
  /** Up to this entry all owners have it: what follows from it has left, or may. */
  readonly released: number;
  readonly hosts: HomeHosts;
  /** Whether a commit waits for owners that are not there. */
  readonly isStalled: boolean;
  /** Bytes of the log after the last checkpoint. */
  readonly logBytes: number;
  /** Sites that have its log, as far as is known, the nearest first: it could move there. */
  readonly heirs: readonly SiteId[];
  /** Resolves when this site is not its home any more, or the site stops; never after `rest` (HomesPorts.onOver then). */
  readonly over: Promise<HomeError>;
  /**
   * Registers a request; `new` means that its answer will come in a commit, or `dropped` says it will not.
   *
   * @param isBegun its handler runs already, as the log says: it is never refused for want of room.
   * @throws HomeError `limit_stateful`; `overloaded` where it is not known, and is not to be run now.
   */
  ask(request: string, isBegun?: boolean): Asked;
  /** A request that was `new` will not be in any commit: it may be asked again as a new one. */
  dropped(request: string): void;
  /** Whoever asked has the answer: it need not be kept beyond the next checkpoint. */
  received(request: string): void;
  /**
   * Appends a commit to the log; resolves when all owners have it on disk. Call it again without waiting: commits are
   * held in their order.
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
  /** Resolves when all that was appended so far, and what it was opened with, is on disk at all owners. */
  settled(): Promise<void>;
  /** Of what `copy` gives, as far as it is on the disk. */
  readonly copyBytes: number;
  /** The log as this site's disk has it, with all that was appended before. @throws HomeError */
  copy(): Promise<LogCopy>;
  /** Out of memory, still at home: resolves when what was appended is held. The next is `open`. */
  rest(): Promise<void>;
  /**
   * Another site is to have it: resolves when that one has all of the log, and gets all that comes, until `moveTo` or
   * `stay`. Nothing changes hands.
   *
   * @throws HomeError `move_refused`: it can't have it.
   */
  prepareMove(site: SiteId): Promise<void>;
  /**
   * Another site takes it over: resolves when the arbiter knows, and this home is over then. Drain and checkpoint before.
   *
   * @throws HomeError `move_refused`: it goes on here.
   */
  moveTo(site: SiteId): Promise<void>;
  /** A site that it was to move to is not to have it any more. */
  stay(site: SiteId): void;
  /** It is over for good; its log goes. */
  end(): Promise<void>;
}

/** A row of the arbiter, as operators see it. */
export interface HomeRow {
  readonly name: StatefulName;
  readonly site: SiteId;
  readonly epoch: number;
  /** Counts the changes of its owners. */
  readonly config: number;
  readonly owners: readonly Owner[];
  /** The version of the code at the last opening. */
  readonly version: string;
  readonly ended: boolean;
  /** Its home agrees that this site takes it over; "" where there is none. */
  readonly movesTo: SiteId;
}
