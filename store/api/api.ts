/**
 * The store as its host sees it: a replica of one site, and sessions attached to it.
 *
 * Life of a replica: `openReplica` (loads the disk) → `connected(parent)` → `ready` → … → `close`.
 * Life of a session at a site: a request arrives with a token → `attach` (nothing, carry or wait) → reads and writes →
 * `durable()` → `token()` leaves with the answer. One attached session serves one request.
 */
import type { Key } from "../model/key.ts";
import type { Lane } from "../model/lock.ts";
import type { Choice, OwnersSettings } from "../presence/choose.ts";
import type { Detector, WatchedSite } from "../presence/detector.ts";
import type { Clock, Network, Random, SiteId, Storage } from "../model/ports.ts";
import type { Range } from "../model/range.ts";
import type { ClockValue, Position, ReplicaNumber, Row, Version } from "../model/row.ts";
import type { Doubt } from "../model/wall.ts";

/** Contents of a token (store/session/token.ts seals them). */
export interface TokenState {
  /** Id of the session: 16 bytes, drawn when it began. */
  readonly session: Uint8Array;
  readonly sequence: number;
  /** Number of the incarnation of the site that issued it. */
  readonly replica: ReplicaNumber;
  readonly clock: ClockValue;
  /**
   * Positions, one for each site on the path from the root to the issuing site, that site last: each includes all that
   * the session touched there; null while something is pending towards that site.
   */
  readonly path: readonly (Position | null)[];
  /**
   * Positions for the sites as in `path`, of use where something is pending towards a site: each includes all else that
   * the session touched; 0: nothing is known of it. Left out: nothing is known of any of them.
   */
  readonly followed?: readonly Position[];
  /** True where the token was issued while the session could still write at that site: the next site always asks. */
  readonly open: boolean;
  /**
   * True for an open token that says less than its session had seen when it left, nobody knows when: what its site says
   * of a time tells nothing of it (handoff.ts H9). No token that leaves has this.
   */
  readonly lags?: true;
}

export interface ReplicaConfig {
  readonly site: SiteId;
  /** Parent of the site; null at the root. */
  readonly parent: SiteId | null;
  /** Tier of the site: "root" | "core" | "edge", or what the topology says; carried in the site's system row. */
  readonly tier: string;
  /** Address where peers and clients reach the site; carried in the site's system row. */
  readonly url: string;
  readonly linkAddress: string;
  readonly capacityBytes: number;
  /**
   * Milliseconds for which deletions are kept, and for which a child may be away before it starts over (limits.ts
   * HORIZON_MS).
   */
  readonly horizonMs?: number;
  /** Sites that were given up when the parent was changed (`Replica.move`). */
  readonly lost?: readonly SiteId[];
  /** Number of bytes, roughly, that rows which the root does not have may take (limits.ts PENDING_BYTES_MAX). */
  readonly pendingBytesMax?: number;
  /**
   * Bytes of a range up to which it is sent to a child as rows, not as digests of its parts (limits.ts
   * COMPARE_ROWS_BYTES).
   */
  readonly compareRowsBytes?: number;
  /** Number of rows that a list looks at before others have the lock (limits.ts STEP_ROWS). */
  readonly stepRows?: number;
  /** Settings of the choice of sites that hold what must survive this site's loss; left out: no site holds it. */
  readonly owners?: OwnersSettings;
}

export interface ReplicaPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly storage: Storage;
  readonly network: Network;
  /** Takes a fault that must stop the site: a broken invariant, a failed disk. */
  readonly fatal: (error: Error) => void;
  /**
   * Returns the oldest version that this site's host may still write (`AttachedSession.writeAs`): Infinity where there
   * is none, 0 as long as the host does not know. Asked with every commit; left out: there is never one.
   */
  readonly owed?: () => ClockValue;
  /** Takes rare events that are worth a log line, and counters for probes. */
  readonly note: (event: string, detail?: Record<string, unknown>) => void;
  /** Called where work begins here on behalf of another site's trace; the result, if any, is called at its end. */
  readonly traced?: (trace: string, what: "handoff" | "fetch") => (() => void) | undefined;
}

export interface ListOptions {
  readonly limit?: number;
  readonly reverse?: boolean;
  /** Bytes of keys and values that end a list, with the row that reaches them; only with a limit. */
  readonly bytesMax?: number;
}

export interface GetOptions {
  /** Bytes of values at which the answer may end, short of the last keys; never before the first. */
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
  /** Version that the row must have; null: absent. */
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

/** Failure over something that is dated too far ahead: a clock is wrong, and no site is missing. */
export class ClockAhead extends StoreUnavailable {
  constructor(message: string, detail: Readonly<Record<string, unknown>> = {}) {
    super("source_unreachable", message, detail);
  }
}

/** Error of a write that looks at more than it may: it is not made. */
export class WriteTooLarge extends Error {
  override readonly name = "WriteTooLarge";
  readonly code = "limit_atomic";
}

/** Rows, and the version that was drawn for them. */
export interface DatedWrite {
  readonly mutations: readonly PlainMutation[];
  readonly version: Version;
}

/** Merges that are made together with old writes ({@link AttachedSession.writeOld}), where every check holds. */
export interface OldMerges {
  readonly checks: readonly StoreCheck[];
  /** Batches that are applied in this order, behind the writes; one that can't be merged is left out as a whole. */
  readonly batches: readonly (readonly StoreMutation[])[];
}

/**
 * Result of {@link AttachedSession.writeOld}; not ok: a check did not hold, and nothing is written.
 *
 * `left`: keys of rows of which nobody can tell: never written, or deleted since. They are not written. `refused`: why
 * batches of merges are left out.
 */
export type OldResult =
  | { readonly ok: true; readonly left: readonly Key[]; readonly refused: readonly Error[] }
  | { readonly ok: false };

/** Stops the writer of the same session at a site, and resolves when it writes no more there. */
export type StopAt = (site: SiteId) => Promise<void>;

/** A session attached to this site, for one request. Rows given out are live: present and not expired. */
export interface AttachedSession {
  readonly id: Uint8Array;
  /** Way in which the session came here. */
  readonly how: "new" | "same" | "nothing" | "carry" | "wait";
  readonly carried: { readonly rows: number; readonly bytes: number };
  /** @throws StoreUnavailable `store_unreachable` when a miss finds no parent within the limit. */
  get(keys: readonly Key[], options?: GetOptions): Promise<(Row | undefined)[]>;
  list(range: Range, options?: ListOptions): Promise<Row[]>;
  /** Applies mutations together at consecutive positions when every check holds here. */
  write(mutations: readonly StoreMutation[], checks?: readonly StoreCheck[]): Promise<WriteResult>;
  /**
   * Applies rows under a version that was drawn for them once ({@link tick}), here or at another site: done again,
   * anywhere, they are the same rows. Where a newer row stands, that stays. The session has not seen the rows by that,
   * and its tokens do not name them, before a read meets them, or {@link settle}.
   *
   * @returns false: nothing was written, the version is {@link isOld}.
   * @throws StoreUnavailable `source_unreachable` for a version too far in this site's future.
   */
  writeAs(mutations: readonly PlainMutation[], version: Version): Promise<boolean>;
  /** Reports whether rows of a version may be taken nowhere any more: they are for `writeOld`. */
  isOld(version: Version): boolean;
  /**
   * Writes what one writer, and nobody else, may have written before, in this order, of which some may be as old as the
   * watermark. Newer rows are written under their versions. Of the rest, the rows that stand tell whether they were
   * ever applied: if not, the last of each key is written anew, as what it would have been, the oldest row that there
   * is. All of it shows at once, here and elsewhere, with the merges of the same writer. It is at the root when this
   * resolves.
   *
   * @throws StoreUnavailable as `writeAs`; `store_unreachable` where the root can't be heard.
   */
  writeOld(writes: readonly DatedWrite[], merges?: OldMerges): Promise<OldResult>;
  /** Resolves when what `writeAs` has applied so far is on disk: from then on the session has seen it. */
  settle(): Promise<void>;
  /**
   * Number that counts what the session has touched: where it is as it was, the session's token says nothing new but
   * how far that has come.
   */
  readonly touches: number;
  /** Draws a clock value for the version of rows to come, which nothing else of this site has or gets. */
  tick(): ClockValue;
  /** Calls back after each change in one of the ranges (coalesced by the caller); the result unsubscribes. */
  watch(ranges: readonly Range[], changed: () => void): () => void;
  /**
   * Adds what another token names to what the session has seen, beside all that it has touched: also what it touched
   * while that was waited for.
   *
   * @throws StoreUnavailable as `Replica.attach`; then the session is as before.
   */
  see(token: TokenState): Promise<void>;
  /**
   * Adds all that the incarnation of a token wrote to what the session has seen, also what nobody was told of: the rows
   * on its site's disk, of which that site alone can tell while it lives, and what is left of them where the
   * incarnation is over. Any row of these that the session does not find then is nowhere, and never will be. False:
   * nobody can tell.
   *
   * @param stop called with that site while it lives, before it is asked: rows that are written there later are not
   *     seen.
   * @throws StoreUnavailable `source_unreachable`: not in this time; then the session is as before.
   */
  seeWhole(token: TokenState, stop: StopAt): Promise<boolean>;
  /** Refuses, from now on, each `write` with checks with `closed`, also one that waits for what it checks. */
  close(): void;
  /** Resolves when all that this session wrote or read so far is on disk at this site. */
  durable(): Promise<void>;
  /** True where all of that is on disk already: there is nothing to wait for. */
  readonly isDurable: boolean;
  /** Trace that is given to `traced` at the sites that are asked for what this session misses here. */
  trace?: string;
  /** Lane on whose behalf the session reads and writes; left out: the site's own. */
  lane?: Lane | null;
  /** The highest position of this site's journal that this session wrote or read. */
  readonly highest: Position;
  /** Makes the token to leave with. `open`: the session can still write here after this (stream, socket, waitUntil). */
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
    /** Age of the parent's last mark that was applied, by both sites' clocks; null before the first. */
    readonly feedLagMs: number | null;
  } | null;
  readonly coverage: { readonly ranges: number; readonly bytes: number; readonly capacityBytes: number };
  /** Number of rows not yet acknowledged by the parent. */
  readonly pending: number;
  /** Bytes of these rows' keys and values. */
  readonly pendingBytes: number;
  /**
   * Milliseconds for which this site may not have what was written anywhere in the tree, as far as it knows: the age of
   * the root's stable clock here, which one site that is cut off holds back for all. null before anything was heard of
   * that clock.
   */
  readonly stableLagMs: number | null;
  readonly children: readonly {
    readonly id: SiteId;
    readonly connected: boolean;
    readonly ranges: number;
    /**
     * Age of the child's stable clock here: what it and the sites below it wrote since may be missing. null before any.
     */
    readonly stableLagMs: number | null;
  }[];
  /**
   * Children that came from under another parent and wait for what these sites have of it (store/change/adoption.ts).
   */
  readonly adopting: readonly {
    readonly child: SiteId;
    readonly waitsFor: readonly SiteId[];
    readonly forMs: number;
  }[];
  /**
   * Doubt of the wall clock: how far it is ahead of what is believed (behind: negative), and for how long; null: it is
   * believed.
   */
  readonly clockDoubt: Doubt | null;
  /** Neighbours that are refused because their clocks are too far ahead of this site's. */
  readonly clocksAhead: readonly SiteId[];
  /** Sites that may own what arrives here, or do. */
  readonly watched: readonly WatchedSite[];
  /** Reason why there are not as many owners as there should be; null where there are, or f = 0. */
  readonly ownersMissing: string | null;
  /** Rows that the disk has damaged, and that nobody else is known to have: reads of them are refused. */
  readonly damaged: readonly string[];
  /** Wards: the owners of what is pending here, and what is held here for others (store/wards/). */
  readonly wards: {
    /** The owners in effect; none with f = 0. */
    readonly owners: readonly SiteId[];
    /** Owners that are being brought up to date or that the root does not know of yet; null: none. */
    readonly next: readonly SiteId[] | null;
    /** True until the first owners are in effect: nothing that touched this site's journal is answered before. */
    readonly isClosed: boolean;
    /** True while answers leave without owners, which could not be reached. */
    readonly isAlone: boolean;
    /** Owners that do not answer, or refuse, and why. */
    readonly silent: readonly { readonly site: SiteId; readonly why: string }[];
    /** Bytes of keys and values of others' rows. */
    readonly heldBytes: number;
  };
  /** Counts since the start: attach by kind, misses, evictions, … */
  readonly counters: Readonly<Record<string, number>>;
}

/** Sites that may count on what another one holds for them (store/members/held_by.ts). */
export interface HeldBy {
  /** Lost sites, of which it may have what nobody else has. */
  readonly left: readonly SiteId[];
  /** Other sites that it is or was an owner of: they know whether it still is. */
  readonly owned: readonly SiteId[];
}

/** Copies that a site had on its disk when it stopped as planned, and no other disk was known to have. */
export interface SoleCopies {
  /** Name of what they are, for operators. */
  readonly what: string;
  readonly count: number;
}

/** Outcome of a removal; refusals change nothing. */
export type SiteRemoval =
  | { readonly kind: "removed"; readonly stable: ClockValue }
  | { readonly kind: "unknown" | "root" }
  | { readonly kind: "has_children"; readonly children: readonly SiteId[] };

export interface Replica {
  readonly site: SiteId;
  /** Resolves when this site has its number and its system ranges. */
  readonly ready: Promise<void>;
  /**
   * Attaches a session: at once where it needs nothing.
   *
   * @param trace given to `traced` at the sites that are asked for what the session needs.
   * @throws StoreUnavailable `source_unreachable` (2 s without an answer), `source_lost`: at once, or later.
   */
  attach(token: TokenState | null, trace?: string): AttachedSession | Promise<AttachedSession>;
  /** Merges tokens of one session that were issued here or elsewhere: attaches to each, then goes on. */
  attachAll(tokens: readonly TokenState[], trace?: string): Promise<AttachedSession>;
  /** Resolves when everything up to a position of this site's journal is on disk. */
  durable(position: Position): Promise<void>;
  /**
   * Sets how many bytes of rows this site may hold from now on: no more than its configuration says, which comes first.
   */
  holdAtMost(bytes: number): void;
  /** Reports whether all of that is on disk already: there is nothing to wait for. */
  isDurable(position: Position): boolean;
  /** The host's own reads and writes (control plane), outside any session. */
  readonly system: Pick<AttachedSession, "get" | "list" | "write" | "watch" | "durable">;
  /** Members of the tree (store/change/removal.ts). */
  readonly members: {
    /** Takes a site off the tree for good: at the root only. The removal is on disk when it resolves. */
    remove(id: SiteId): Promise<SiteRemoval>;
    /** Lets a removed site in again, with an empty disk: at the root only; false where it was not removed. */
    admit(id: SiteId): Promise<boolean>;
    isRemoved(id: SiteId): boolean;
    /**
     * Announces that this site stops until a time; all its sessions have ended. Resolves when the root has what they
     * wrote and the announcement, however long that takes.
     *
     * @param sole what is on this site's disks alone, of what the store does not know.
     */
    leave(untilMs: number, sole?: readonly SoleCopies[]): Promise<void>;
    /** Takes the announcement back; a replica does so itself when it is ready. */
    back(): Promise<void>;
    /** Returns until when a site has said to be away. */
    awayUntilMs(id: SiteId): number | undefined;
    /** Returns what a site that said so had on its disks alone. */
    soleAt(id: SiteId): readonly SoleCopies[];
    /** Finds the sites that may count on what a site holds for others: the root knows it best. */
    heldBy(id: SiteId): HeldBy;
    /** The sites of the tree as their rows here say, at any time. */
    readonly sites: ReadonlyMap<SiteId, SiteRecord>;
    /** Number of these sites that are this site's children. */
    readonly children: number;
    /** Number that counts the changes of `sites`. */
    readonly changes: number;
  };
  /** Owners of what must survive this site's loss (store/owners/). */
  readonly owners: {
    readonly settings: OwnersSettings;
    /** @throws OwnersError where the sites there are can't meet them: then nothing has changed. */
    configure(settings: OwnersSettings): Promise<void>;
    /**
     * Chooses the owners as of now, this site first.
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
    /** Lists sites that live, of those that may be owners here, the nearest first. */
    nearest(): SiteId[];
    /** Reports whether a site belongs to the tree. */
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
   * Gives this site another parent from now on: the host connects them next. All that is pending here is pushed there,
   * and sessions go on. Not at the root.
   *
   * @param lost sites that are given up, so that nobody waits for what they alone had (store/change/adoption.ts).
   */
  move(to: SiteId, lost?: readonly SiteId[]): void;
  connected(site: SiteId, role: "parent" | "child" | "peer"): void;
  disconnected(site: SiteId): void;
  /** Drops what was to be sent to a site that could not be dialled. */
  unreachable(site: SiteId): void;
  receive(from: SiteId, message: Uint8Array): void;
  /** Returns the time that this site believes, in milliseconds since 1970 (wall.ts). */
  nowMs(): number;
  /**
   * Believes the machine's wall clock as it is now, for which an operator vouches: returns how far it was doubted, null
   * where it was not.
   */
  believeClock(): Doubt | null;
  status(): ReplicaStatus;
  /** Drops coverage of evictable ranges in `range` (all of it by default) at once. */
  evict(range?: Range): Promise<void>;
  /** Reports whether this site covers a key: for checkers and `why`. */
  debugCovers(key: Key): boolean;
  /** Commits what is applied, says goodbye, and stops. */
  close(): Promise<void>;
}

/** Opens the replica of a site over its disk (store/replica.ts). */
export type OpenReplica = (config: ReplicaConfig, ports: ReplicaPorts) => Promise<Replica>;

/** First part of all system keys, which are covered at every site: ["s", …]. */
export const SYSTEM = "s";
/** A site of the tree, JSON in the row ["s", "site", id]. */
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
