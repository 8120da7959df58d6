/**
 * The store as its host sees it: a replica of one site, and sessions attached to it.
 *
 * Life of a replica: `openReplica` (loads the disk) → `connected(parent)` → `ready` → … → `close`.
 * Life of a session at a site: a request arrives with a token → `attach` (nothing, carry or wait) → reads and
 * writes → `durable()` → `token()` leaves with the answer. One attached session serves one request.
 */
import type { Key } from "../model/key.ts";
import type { Lane } from "../model/lock.ts";
import type { Choice, OwnersSettings } from "../presence/choose.ts";
import type { Detector, WatchedSite } from "../presence/detector.ts";
import type { Clock, Network, Random, SiteId, Storage } from "../model/ports.ts";
import type { Range } from "../model/range.ts";
import type { ClockValue, Position, ReplicaNumber, Row, Version } from "../model/row.ts";
import type { Doubt } from "../model/wall.ts";

/** Everything a token says (store/session/token.ts seals it). */
export interface TokenState {
  /** 16 bytes, drawn when the session began. */
  readonly session: Uint8Array;
  readonly sequence: number;
  /** Number of the incarnation of the site that issued it. */
  readonly replica: ReplicaNumber;
  readonly clock: ClockValue;
  /**
   * Per site on the path from the root to the issuing site, itself last: a position there that includes all
   * the session touched, or null while something is pending towards it.
   */
  readonly path: readonly (Position | null)[];
  /**
   * Per site as in `path`, of those towards which something is pending: a position there that includes all else that the
   * session touched; 0: nothing is known of it. Left out: of none of them.
   */
  readonly followed?: readonly Position[];
  /** Issued while the session could still write at that site: the next site always asks. */
  readonly open: boolean;
  /**
   * An open one that says less than its session had seen when it left, nobody knows when: what its site says of a time
   * tells nothing of it (handoff.ts H9). No token that leaves has this.
   */
  readonly lags?: true;
}

export interface ReplicaConfig {
  readonly site: SiteId;
  /** null at the root. */
  readonly parent: SiteId | null;
  /** "root" | "core" | "edge", or what the topology says; carried in the site's system row. */
  readonly tier: string;
  /** Where peers and clients reach it; carried in the site's system row. */
  readonly url: string;
  readonly linkAddress: string;
  readonly capacityBytes: number;
  /** How long deletions are kept, and how long a child may be away before it starts over (limits.ts HORIZON_MS). */
  readonly horizonMs?: number;
  /** Sites that were given up when the parent was changed (`Replica.move`). */
  readonly lost?: readonly SiteId[];
  /** Rows that the root does not have take no more than about so many bytes (limits.ts PENDING_BYTES_MAX). */
  readonly pendingBytesMax?: number;
  /** So little of a range is sent to a child as rows, not as digests of its parts (limits.ts COMPARE_ROWS_BYTES). */
  readonly compareRowsBytes?: number;
  /** So many rows a list looks at before others have the lock (limits.ts STEP_ROWS). */
  readonly stepRows?: number;
  /** By whom what must survive the site's loss is held beside it; by nobody where this is left out. */
  readonly owners?: OwnersSettings;
}

export interface ReplicaPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly storage: Storage;
  readonly network: Network;
  /** A fault that must stop the site: a broken invariant, a failed disk. */
  readonly fatal: (error: Error) => void;
  /**
   * The oldest version that this site's host may still write (`AttachedSession.writeAs`): Infinity where there is none, 0
   * as long as it does not know. Asked with every commit; left out: there is never one.
   */
  readonly owed?: () => ClockValue;
  /** Rare events worth a log line, and counters for probes. */
  readonly note: (event: string, detail?: Record<string, unknown>) => void;
  /** Work begins here on behalf of another site's trace; the result, if any, is called at its end. */
  readonly traced?: (trace: string, what: "handoff" | "fetch") => (() => void) | undefined;
}

export type Level = "eventual" | "session";

export interface ListOptions {
  readonly limit?: number;
  readonly reverse?: boolean;
  /** With a limit: the list also ends with the row that brings its keys and values to so many bytes. */
  readonly bytesMax?: number;
}

export interface GetOptions {
  /** The answer may then end, short of the last keys, once its values have so many bytes; never before the first. */
  readonly bytesMax?: number;
}

export type StoreMutation =
  | { readonly kind: "set"; readonly key: Key; readonly value: Uint8Array; readonly expiresAtMs?: number }
  | { readonly kind: "delete"; readonly key: Key }
  | { readonly kind: "sum" | "min" | "max"; readonly key: Key; readonly value: Uint8Array };

/** A mutation whose outcome does not hang on the row that it meets. */
export type PlainMutation = Extract<StoreMutation, { readonly kind: "set" | "delete" }>;

export interface StoreCheck {
  readonly key: Key;
  /** null: absent. */
  readonly version: Version | null;
}

export type WriteResult = { readonly ok: true; readonly version: Version } | { readonly ok: false };

/** A failure of the store that a client can be told (docs/http.md). */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
  constructor(
    readonly code:
      | "store_unreachable"
      | "source_unreachable"
      | "source_lost"
      | "owners_unreachable"
      | "pending_full"
      | "disk_failed"
      | "row_damaged"
      | "root_only"
      | "closed",
    message: string,
    readonly detail: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** A write looks at more than it may: it is not made. */
export class WriteTooLarge extends Error {
  override readonly name = "WriteTooLarge";
  readonly code = "limit_atomic";
}

/** Rows, and the version that was drawn for them. */
export interface DatedWrite {
  readonly mutations: readonly PlainMutation[];
  readonly version: Version;
}

/** Stops whoever writes as the same session at a site, and resolves when he writes no more there. */
export type StopAt = (site: SiteId) => Promise<void>;

/** A session attached to this site, for one request. Rows given out are live: present and not expired. */
export interface AttachedSession {
  readonly id: Uint8Array;
  /** How it came here. */
  readonly how: "new" | "same" | "nothing" | "carry" | "wait";
  readonly carried: { readonly rows: number; readonly bytes: number };
  /** @throws StoreUnavailable `store_unreachable` when a miss finds no parent within the limit. */
  get(keys: readonly Key[], options?: GetOptions): Promise<(Row | undefined)[]>;
  list(range: Range, options?: ListOptions): Promise<Row[]>;
  /** Applied together at consecutive positions when every check holds here. */
  write(mutations: readonly StoreMutation[], checks?: readonly StoreCheck[]): Promise<WriteResult>;
  /**
   * Applies rows under a version that was drawn for them once ({@link tick}), here or at another site: done again,
   * anywhere, they are the same rows. Where a newer row stands, that stays. The session has not seen them by that, and
   * its tokens do not name them, before a read meets them, or {@link settle}.
   *
   * @returns false: nothing was written, the version is {@link isOld}.
   * @throws StoreUnavailable `source_unreachable` for a version too far in this site's future.
   */
  writeAs(mutations: readonly PlainMutation[], version: Version): Promise<boolean>;
  /** Rows of this version may be taken nowhere any more: they are for `writeOld`. */
  isOld(version: Version): boolean;
  /**
   * Writes what one writer, and nobody else, may have written before, in this order, of which some may be as old as the
   * watermark. What is not is written under its version. Of the rest, what stands tells whether it was ever applied: if
   * not, the last of each key is written anew, as what it would have been, the oldest row that there is.
   * All of it is at the root when this resolves.
   *
   * @returns keys of rows of which nobody can tell: never written, or deleted since. They are not written.
   * @throws StoreUnavailable as `writeAs`; `store_unreachable` where the root can't be heard.
   */
  writeOld(writes: readonly DatedWrite[]): Promise<readonly Key[]>;
  /** Resolves when what `writeAs` has applied so far is on disk: from then on the session has seen it. */
  settle(): Promise<void>;
  /** Counts what the session has touched: its token says nothing new where it is as it was, but how far that has come. */
  readonly touches: number;
  /** A clock value for the version of rows to come that nothing else of this site has or gets. */
  tick(): ClockValue;
  /** Calls back after each change in one of the ranges (coalesced by the caller); the result unsubscribes. */
  watch(ranges: readonly Range[], changed: () => void): () => void;
  /**
   * From now on it has seen what another token names, too, beside all that it has touched: also what it touched while
   * that was waited for.
   *
   * @throws StoreUnavailable as `Replica.attach`; then it is as before.
   */
  see(token: TokenState): Promise<void>;
  /**
   * From now on it has seen all that the incarnation of a token wrote, also what nobody was told of: what is on its site's disk,
   * which its site alone can say while it lives, and what is left of that where it is over. What it does not find then of
   * that is nowhere, and never will be. False: nobody can tell.
   *
   * @param stop called with that site while it lives, before it is asked: what is written there later is not seen.
   * @throws StoreUnavailable `source_unreachable`: not in this time; then it is as before.
   */
  seeWhole(token: TokenState, stop: StopAt): Promise<boolean>;
  /** From now on a `write` with checks is refused with `closed`, also one that waits for what it checks. */
  close(): void;
  /** Resolves when all that this session wrote or read so far is on disk at this site. */
  durable(): Promise<void>;
  /** Whether it is already: then there is nothing to wait for. */
  readonly isDurable: boolean;
  /** Given to `traced` at the sites that are asked for what this session misses here. */
  trace?: string;
  /** On whose behalf it reads and writes; left out: the site's own. */
  lane?: Lane | null;
  /** The highest position of this site's journal that this session wrote or read. */
  readonly highest: Position;
  /** The token to leave with. `open`: the session can still write here after this (stream, socket, waitUntil). */
  token(open: boolean): TokenState;
}

export interface ReplicaStatus {
  readonly site: SiteId;
  readonly replica: ReplicaNumber;
  readonly depth: number;
  readonly position: Position;
  readonly parent: {
    readonly id: SiteId;
    readonly connected: boolean;
    readonly acked: Position;
    /** Age of its last mark that was applied, by both sites' clocks; null before the first. */
    readonly feedLagMs: number | null;
  } | null;
  readonly coverage: { readonly ranges: number; readonly bytes: number; readonly capacityBytes: number };
  /** Rows not yet acknowledged by the parent. */
  readonly pending: number;
  /** Bytes of their keys and values. */
  readonly pendingBytes: number;
  /**
   * Milliseconds for which this site may not have what was written anywhere in the tree, as far as it knows: the age
   * of the root's stable clock here, which one site that is cut off holds back for all. null before anything was heard of it.
   */
  readonly stableLagMs: number | null;
  readonly children: readonly {
    readonly id: SiteId;
    readonly connected: boolean;
    readonly ranges: number;
    /** Age of its stable clock here: what it and the sites below it wrote since may be missing. null before any. */
    readonly stableLagMs: number | null;
  }[];
  /** Children that came from under another parent and wait for what these sites have of it (store/change/adoption.ts). */
  readonly adopting: readonly {
    readonly child: SiteId;
    readonly waitsFor: readonly SiteId[];
    readonly forMs: number;
  }[];
  /** null: the wall clock is believed; else how far it is ahead of what is believed (behind: negative), and for how long. */
  readonly clockDoubt: Doubt | null;
  /** Neighbours that are refused because their clocks are too far ahead of this site's. */
  readonly clocksAhead: readonly SiteId[];
  /** Sites that may own what arrives here, or do. */
  readonly watched: readonly WatchedSite[];
  /** Why there are not as many owners as there should be; null where there are, or f = 0. */
  readonly ownersMissing: string | null;
  /** Rows that the disk has damaged, and that nobody else is known to have: reads of them are refused. */
  readonly damaged: readonly string[];
  /** Who holds what is pending here, and what is held here for others (store/wards/). */
  readonly wards: {
    /** The owners in effect; none with f = 0. */
    readonly owners: readonly SiteId[];
    /** Others, who are being brought up to date or that the root does not know of yet; null: none. */
    readonly next: readonly SiteId[] | null;
    /** Nothing that touched this site's journal is answered before the first owners are in effect. */
    readonly isClosed: boolean;
    /** Answers leave without owners, who could not be reached. */
    readonly isAlone: boolean;
    /** Owners that do not answer, or refuse, and why. */
    readonly silent: readonly { readonly site: SiteId; readonly why: string }[];
    /** Of keys and values of others' rows. */
    readonly heldBytes: number;
  };
  /** attach by kind, misses, evictions, … since start. */
  readonly counters: Readonly<Record<string, number>>;
}

/** Sites that may count on what another one holds for them (store/members/held_by.ts). */
export interface HeldBy {
  /** Lost ones, of which it may have what nobody else has. */
  readonly left: readonly SiteId[];
  /** Others that it is or was an owner of: they know whether it still is. */
  readonly owned: readonly SiteId[];
}

/** What became of a removal; refusals change nothing. */
export type SiteRemoval =
  | { readonly kind: "removed"; readonly stable: ClockValue }
  | { readonly kind: "unknown" | "root" }
  | { readonly kind: "has_children"; readonly children: readonly SiteId[] };

export interface Replica {
  readonly site: SiteId;
  /** Resolves when this site has its number and its system ranges. */
  readonly ready: Promise<void>;
  /**
   * At once where the session needs nothing.
   *
   * @param trace given to `traced` at the sites that are asked for what the session needs.
   * @throws StoreUnavailable `source_unreachable` (2 s without an answer), `source_lost`: at once, or later.
   */
  attach(token: TokenState | null, trace?: string): AttachedSession | Promise<AttachedSession>;
  /** Merges two tokens of one session that both were issued here or elsewhere: attach to each, then go on. */
  attachAll(tokens: readonly TokenState[], trace?: string): Promise<AttachedSession>;
  /** Resolves when everything up to a position of this site's journal is on disk. */
  durable(position: Position): Promise<void>;
  /** How many bytes of rows this site may hold from now on: no more than its configuration says, which comes first. */
  holdAtMost(bytes: number): void;
  /** Whether it is already: then there is nothing to wait for. */
  isDurable(position: Position): boolean;
  /** The host's own reads and writes (control plane), outside any session. */
  readonly system: Pick<AttachedSession, "get" | "list" | "write" | "watch" | "durable">;
  /** Who belongs to the tree (store/change/removal.ts). */
  readonly members: {
    /** Takes a site off the tree for good: at the root only. On disk when it resolves. */
    remove(id: SiteId): Promise<SiteRemoval>;
    /** Lets a removed site in again, with an empty disk: at the root only; false where it was not removed. */
    admit(id: SiteId): Promise<boolean>;
    isRemoved(id: SiteId): boolean;
    /**
     * Announces that this site stops until then; all its sessions have ended. Resolves when the root has what they
     * wrote and the announcement, however long that takes.
     */
    leave(untilMs: number): Promise<void>;
    /** Takes the announcement back; a replica does so itself when it is ready. */
    back(): Promise<void>;
    /** Until when a site has said to be away. */
    awayUntilMs(id: SiteId): number | undefined;
    /** Who may count on what a site holds for others: the root knows it best. */
    heldBy(id: SiteId): HeldBy;
    /** The sites of the tree as their rows here say, at any time. */
    readonly sites: ReadonlyMap<SiteId, SiteRecord>;
    /** How many of them are this site's children. */
    readonly children: number;
    /** Counts the changes of `sites`. */
    readonly changes: number;
  };
  /** Who holds what must survive this site's loss (store/owners/). */
  readonly owners: {
    readonly settings: OwnersSettings;
    /** @throws OwnersError where the sites there are can't meet them: then nothing has changed. */
    configure(settings: OwnersSettings): Promise<void>;
    /**
     * Whom it would be now, this site first.
     *
     * @param f other owners; as configured by default.
     * @param kept of these, those that there are already.
     * @throws OwnersError
     */
    choose(
      f?: number,
      kept?: readonly SiteId[],
      without?: (site: SiteId) => boolean,
      last?: SiteId | null,
    ): Choice;
    /** Sites that live, of those that may be owners here, the nearest first. */
    nearest(): SiteId[];
    /** Whether a site belongs to the tree. */
    isKnown(site: SiteId): boolean;
    readonly detector: Pick<Detector, "presence" | "onPresence" | "watch" | "refused">;
    /**
     * Opens a way for packets of one use to the same use at other sites: in order, lost with the connection that they
     * are on. Resolves when there is room for another.
     */
    channel(
      use: string,
      received: (from: SiteId, packet: Uint8Array) => void,
    ): (to: SiteId, packet: Uint8Array) => Promise<void>;
  };
  /**
   * From now on this site's parent is another: the host connects them next. All that is pending here is pushed
   * there, and sessions go on. Not at the root.
   *
   * @param lost sites that are given up, so that nobody waits for what they alone had (store/change/adoption.ts).
   */
  move(to: SiteId, lost?: readonly SiteId[]): void;
  connected(site: SiteId, role: "parent" | "child" | "peer"): void;
  disconnected(site: SiteId): void;
  /** A site could not be dialled: what was to be sent to it is dropped. */
  unreachable(site: SiteId): void;
  receive(from: SiteId, message: Uint8Array): void;
  /** What this site believes that the time is: milliseconds since 1970 (wall.ts). */
  nowMs(): number;
  /** An operator vouches for the machine's wall clock as it is now: returns how far it was doubted, null where it was not. */
  believeClock(): Doubt | null;
  status(): ReplicaStatus;
  /** Drops coverage of evictable ranges in `range` (all of it by default) at once. */
  evict(range?: Range): Promise<void>;
  /** Whether this site covers a key: for checkers and `why`. */
  debugCovers(key: Key): boolean;
  /** Commits what is applied, says goodbye, and stops. */
  close(): Promise<void>;
}

/** Opens the replica of a site over its disk (store/replica.ts). */
export type OpenReplica = (config: ReplicaConfig, ports: ReplicaPorts) => Promise<Replica>;

/** System key spaces, covered at every site: ["s", …]. */
export const SYSTEM = "s";
/** ["s", "site", id] → JSON {@link SiteRecord}. */
export interface SiteRecord {
  readonly id: SiteId;
  /** Current incarnation's replica number. */
  readonly number: ReplicaNumber;
  readonly parent: SiteId | null;
  readonly depth: number;
  readonly tier: string;
  readonly url: string;
  readonly linkAddress: string;
}
