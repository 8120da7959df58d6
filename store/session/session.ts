/**
 * A session attached to this site for one request: its reads and writes, and the token that it leaves with.
 *
 * E1  The token's path names, per site from the root down to here, a position that includes all the session has touched
 *     here and before; null where something it touched is not known to have arrived there. For such a site the token
 *     names beside that (`followed`) a position that includes all else: a site that answers for this one later may know
 *     less of it.
 * E2  Absence counts too: the absence that a deletion left is seen as its tombstone, and the absence that collected
 *     tombstones left by `core.collected`.
 * E3  `durable` covers what was read as well as what was written: another's write that was read and then lost would be
 *     time travel.
 * E4  The token's clock is at least that at which anything it touched was applied at this site (PROTOCOL I5); a session
 *     that touched nothing leaves with the token it came with. The clock of an open token is that at which it left:
 *     what this site has said of a stop before (handoff.ts H9) says nothing of what its session writes from there on.
 * E6  Where this site becomes another incarnation meanwhile, because a disk above it was lost or it has another parent,
 *     what the session saw may be gone with that: it is told so, unless all of it had come further or is here.
 * E5  A read answers from coverage only; a miss covers first. A row that is pending here but not covered is no answer:
 *     it might be older than what this session saw elsewhere (but for E8).
 * E7  Whatever the session takes in of another token (`see`) is added to what it has touched, also to what it touched
 *     while that was waited for: it stays one session, and whatever is under way in it is part of its next token.
 * E8  Where nobody above can be asked, a read by key is answered with what was written here or below, if that is newer
 *     than whatever sessions have brought from elsewhere, and than whatever stood here and went (core.seenClock): none
 *     of them has seen a newer one. A sum is no such answer, however new it is: it may lack a part of it that was seen.
 * E9  A list shows one moment. A list that is read in steps shows the moment of its last: nothing that it passed has
 *     changed by then.
 */
import {
  type AttachedSession,
  type DatedWrite,
  type GetOptions,
  type ListOptions,
  type OldMerges,
  type OldResult,
  type PlainMutation,
  type StopAt,
  type StoreCheck,
  type StoreMutation,
  StoreUnavailable,
  type TokenState,
  type WriteResult,
  WriteTooLarge,
} from "../api/api.ts";
import { followedOf } from "../api/token_path.ts";
import type { Core } from "../core/core.ts";
import type { ArrivingSession } from "./handoff.ts";
import { sourceLost } from "../core/lost.ts";
import type { Key } from "../model/key.ts";
import { GOES_ON, type Lane } from "../model/lock.ts";
import {
  CLOCK_AHEAD_MS_MAX,
  LIST_STEPS_MAX,
  LIST_TRIES,
  LOOKED_AT_BYTES_MAX,
  WAIT_MS_MAX,
} from "../model/limits.ts";
import { contribute, isMerge, MergeError } from "../model/merge.ts";
import { judgeOld } from "./old_writes.ts";
import type { WrittenAt } from "../core/owed.ts";
import { pointRange, type Range } from "../model/range.ts";
import {
  type ClockValue,
  compareVersions,
  type Position,
  type ReplicaNumber,
  type Row,
  rowBytes,
  type Version,
} from "../model/row.ts";
import type { ListResult } from "../rows/rows.ts";
import type { Uplink } from "../tree/uplink.ts";
import type { Footprint, Warming } from "./warming.ts";

/** Interface of a session to its replica. */
export interface SessionReplica {
  readonly core: Core;
  readonly uplink: Uplink | null;
  /** Warming of sessions; null for the host's own reads and writes. */
  readonly warming: Warming | null;
  /** Resolves when this position is on disk. */
  durable(position: Position): Promise<void>;
  isDurable(position: Position): boolean;
  /** Brings another token to a session that is here (handoff.ts). @throws StoreUnavailable */
  arrive(token: TokenState, trace: string): ArrivingSession | Promise<ArrivingSession>;
  /** Brings all that the incarnation of a token wrote, told or not (handoff.ts H14). @throws StoreUnavailable */
  whole(token: TokenState, stop: StopAt): Promise<ArrivingSession | null>;
  /** Notes that a token has arrived; returns the clock that it stands for here. */
  arrived(token: TokenState, arrival: ArrivingSession): ClockValue;
}

export interface SessionIdentity {
  readonly id: Uint8Array;
  readonly sequence: number;
  readonly clock: number;
}

export class StoreSession implements AttachedSession {
  readonly id: Uint8Array;
  readonly how: AttachedSession["how"];
  readonly carried: { readonly rows: number; readonly bytes: number };
  readonly #host: SessionReplica;
  readonly #core: Core;
  #footprint: Footprint | undefined;
  #sequence: number;
  /** Incarnation of this site when the session came, or last saw a token: in another one its positions are void. */
  #replica: ReplicaNumber;
  #clock: number;
  /** The newest clock of the tokens that the session came with. */
  #cameWith: number;
  #path: (Position | null)[];
  /** Position, for each site above, that includes what the session has touched but for what is pending. */
  #followed: readonly Position[];
  /** Highest own position touched, by the depth that its row was known at. */
  #touched: Position[] = [];
  #collected = false;
  /** Rows of `writeAs` that were not settled, and the incarnation of this site that they were written in. */
  #written: { readonly row: Row; readonly replica: ReplicaNumber }[] = [];
  touches = 0;
  #isClosed = false;
  trace = "";
  lane: Lane | null = null;
  /** Highest own position read or written, which the answer waits for. */
  #highest: Position = 0;

  constructor(
    host: SessionReplica,
    identity: SessionIdentity,
    arrival: Omit<ArrivingSession, "how"> & { how: AttachedSession["how"] },
  ) {
    this.#host = host;
    this.#core = host.core;
    this.id = identity.id;
    this.#sequence = identity.sequence;
    this.#replica = this.#core.replica;
    this.#clock = this.#cameWith = identity.clock;
    this.#path = this.#pathOf(arrival);
    this.#followed = this.#core.path.map((_, depth) => followedOf(arrival, depth));
    this.how = arrival.how;
    this.carried = { rows: arrival.rows, bytes: arrival.bytes };
    // All that stood here on arrival stands for what the session saw elsewhere: the answer depends on it.
    if (arrival.how !== "new" && arrival.how !== "same") {
      this.#core.seenClock = Math.max(this.#core.seenClock, identity.clock);
      this.#highest = this.#path.at(-1) ?? 0;
      this.#clock = Math.max(this.#clock, this.#core.clock.last);
    }
  }

  /** Returns an arrival's path in the positions of this site and those above it. */
  #pathOf({ path }: Pick<ArrivingSession, "path">): (Position | null)[] {
    const { depth } = this.#core;
    const here: (Position | null)[] = [];
    for (let j = 0; j < depth; j++) here.push(path[j] ?? (path.length > j ? null : 0));
    here.push(path[depth] ?? 0);
    return here;
  }

  // ── Other tokens ──

  async see(token: TokenState): Promise<void> {
    await this.#takeIn(token, () => this.#host.arrive(token, this.trace));
  }

  async seeWhole(token: TokenState, stop: StopAt): Promise<boolean> {
    return await this.#takeIn(token, () => this.#host.whole(token, stop));
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Takes in another token (E7); false where nothing arrives. */
  async #takeIn(
    token: TokenState,
    arrive: () => ArrivingSession | Promise<ArrivingSession | null>,
  ): Promise<boolean> {
    const core = this.#core;
    for (;;) {
      const { replica } = core;
      const arriving = arrive();
      const arrival = arriving instanceof Promise ? await arriving : arriving;
      if (core.replica !== this.#replica) await this.#checkWhole();
      // Paths of another incarnation mean nothing: the token is brought again.
      if (core.replica !== replica) continue;
      if (replica !== this.#replica) this.#follow();
      if (arrival === null) return false;
      this.#take(arrival, token);
      return true;
    }
  }

  #take(arrival: ArrivingSession, token: TokenState): void {
    const core = this.#core, clock = this.#host.arrived(token, arrival), came = this.#pathOf(arrival);
    if (this.#replica !== core.replica) throw new Error("a token was taken in at another incarnation (E7)");
    this.#path = this.#path.map((position, depth) => {
      const other = came[depth] ?? null;
      return position === null || other === null ? null : Math.max(position, other);
    });
    this.#followed = this.#followed.map((before, depth) => Math.max(before, followedOf(arrival, depth)));
    this.#sequence = Math.max(this.#sequence, token.sequence);
    this.#cameWith = Math.max(this.#cameWith, clock);
    if (arrival.how !== "same") core.seenClock = Math.max(core.seenClock, clock);
    // Rows that came from here may not be on disk yet: another session of this site has seen them in a request that
    // runs.
    this.#highest = Math.max(this.#highest, this.#path.at(-1) ?? 0);
    this.#clock = Math.max(this.#clock, clock, arrival.how === "same" ? 0 : core.clock.last);
    this.touches++;
  }

  /** Moves what was seen here to the new number that this site took, as in `#tokenOfNext`. */
  #follow(): void {
    const { replica, path, followed = [], clock } = this.#tokenOfNext(false);
    this.#path = [...path];
    this.#followed = path.slice(1).map((_, depth) => followed[depth] ?? 0);
    this.#touched = [];
    this.#clock = this.#cameWith = clock;
    this.#replica = replica;
    this.touches++;
  }

  // ── Reads ──

  async get(keys: readonly Key[], { bytesMax = Infinity }: GetOptions = {}): Promise<(Row | undefined)[]> {
    return await this.#getCovered(keys, bytesMax) ?? await this.#holding(keys.map(pointRange), async () => {
      for (;;) {
        this.#core.count("reads_missed");
        const failed = await this.#coverKeys(keys).then(() => null, (error: unknown) => error);
        const rows = failed === null
          ? await this.#getCovered(keys, bytesMax)
          : await this.#getWritten(keys, bytesMax);
        if (rows !== null) return rows;
        if (failed !== null) throw failed;
      }
    });
  }

  /** Reads rows where nobody above can be asked (E8); null: this site can't answer for some of them. */
  async #getWritten(keys: readonly Key[], bytesMax: number): Promise<(Row | undefined)[] | null> {
    const core = this.#core;
    const rows = await core.rows.lock.run(() => lookUpTo(core, keys, bytesMax), this.lane);
    const isKnown = (row: Row | undefined, i: number) =>
      core.coverage.has(keys[i] as Key) ||
      (row !== undefined && row.known >= core.depth && row.clock > core.seenClock && !isMerge(row.value));
    core.damage.assertKeys(keys);
    if (!rows.every(isKnown)) return null;
    this.#assertNotLost();
    core.count("reads_written");
    return rows.map((row) => this.#read(row));
  }

  /** Reads rows that are covered; null: not all of them are. */
  async #getCovered(keys: readonly Key[], bytesMax: number): Promise<(Row | undefined)[] | null> {
    const core = this.#core;
    const removals = core.coverage.removals;
    core.damage.assertKeys(keys);
    if (!keys.every((key) => core.coverage.has(key))) return null; // E5
    const rows = keys.length === 1
      ? await (core.rows.inMemory(keys[0] as Key) ??
        core.rows.lock.read(async () => await core.rows.lookup(keys), this.lane))
      : await core.rows.lock.run(() => lookUpTo(core, keys, bytesMax), this.lane);
    core.damage.assertKeys(keys);
    // An eviction that came between, or the end of a damaged row, took away rows that were there.
    if (removals !== core.coverage.removals && !keys.every((key) => core.coverage.has(key))) return null;
    this.#assertNotLost();
    core.count("reads_local");
    this.#noteKeys(keys, rows.length);
    return rows.map((row) => this.#read(row));
  }

  async list(range: Range, options: ListOptions = {}): Promise<Row[]> {
    const limit = options.limit ?? 0, reverse = options.reverse ?? false;
    const bytesMax = options.bytesMax ?? Infinity;
    if (range.start >= range.end) return [];
    this.#core.coverage.hasRange(range);
    if (limit === 0) this.#core.damage.assertRange(range);
    const covered = await this.#listCovered(range, limit, reverse, bytesMax);
    return covered ?? await this.#holding([range], async () => {
      for (;;) {
        this.#core.count("reads_missed");
        await this.#cover(range, limit, reverse);
        const rows = await this.#listCovered(range, limit, reverse, bytesMax);
        if (rows !== null) return rows;
      }
    });
  }

  /** Reads a list that is covered; null: too little of it is. */
  async #listCovered(
    range: Range,
    limit: number,
    reverse: boolean,
    bytesMax: number,
  ): Promise<Row[] | null> {
    const core = this.#core;
    const result = await this.#listSteady(range, { limit, reverse, bytesMax });
    if (result === null || !(result.isWhole || result.full)) return null;
    this.#assertNotLost();
    for (const row of result.seen) this.#touch(row);
    this.#touchCollected();
    core.count("reads_local");
    this.#notes?.note(result.range);
    return result.rows;
  }

  /**
   * Reads a list under the lock; one that passes many deleted rows is read in steps, between which others have the
   * lock. The ranges that it has passed are watched, and where they change it begins anew (E9), the second time before
   * whatever else its own app asks for (lock.ts TL4). Where neighbours change them all the same it begins anew with
   * longer steps: it is done whatever changes.
   *
   * @returns what was read, and whether that is all of the range that it was asked for; null: nothing of it is covered.
   * @throws StoreUnavailable where it changes again and again.
   */
  async #listSteady(
    asked: Range,
    options: { readonly limit: number; readonly reverse: boolean; readonly bytesMax: number },
  ): Promise<ListResult & { readonly isWhole: boolean } | null> {
    const core = this.#core;
    for (let tries = 0; tries < LIST_TRIES; tries++) {
      const atATime = Math.min(2 ** Math.max(0, tries - 1), LIST_STEPS_MAX);
      const passed = new Passed(core, options.reverse, atATime);
      const step = async () => {
        const came = await passed.step(asked, options);
        if (came !== "cut") return came;
        core.count("list_steps");
        return GOES_ON;
      };
      try {
        const came = await core.rows.lock.runSteps(step, this.lane, tries > 0);
        if (came !== "changed") return came;
      } finally {
        passed.end();
      }
      core.count("lists_anew");
    }
    throw new StoreUnavailable(
      "store_unreachable",
      `a list passed many deleted rows, and they changed while it did, ${LIST_TRIES} times; ask again`,
    );
  }

  /**
   * Runs `body`, until whose end nothing in these ranges is evicted, so that a small site still serves (PROTOCOL I3).
   */
  async #holding<T>(ranges: readonly Range[], body: () => Promise<T>): Promise<T> {
    const { readers } = this.#core, reader = {};
    for (const range of ranges) readers.add(reader, range);
    try {
      return await body();
    } finally {
      readers.removeAll(reader);
    }
  }

  async #coverKeys(keys: readonly Key[]): Promise<void> {
    const missing = new Set(keys.filter((key) => !this.#core.coverage.has(key)));
    await Promise.all([...missing].map((key) => this.#cover(pointRange(key), 0, false)));
  }

  async #cover(range: Range, limit: number, reverse: boolean): Promise<void> {
    await this.#host.uplink?.fetchSoon(range, limit, reverse, this.trace);
    await this.#checkWhole();
  }

  /** Waits, where this site is another incarnation by now, until it is known what became of the one before (E6). */
  async #checkWhole(): Promise<void> {
    const core = this.#core, { topology } = core;
    if (core.replica === this.#replica) return;
    const isTold = () => topology.recordedEnd(this.#replica) !== undefined;
    if (topology.succession.keptOf(this.#replica)?.whole === false) await waitFor(core, isTold);
    this.#assertNotLost();
  }

  /**
   * Footprint that notes what the session touches, from its first touch on: most requests of some apps touch nothing.
   */
  get #notes(): Footprint | undefined {
    return this.#footprint ??= this.#host.warming?.footprint(this.id);
  }

  #noteKeys(keys: readonly Key[], count: number): void {
    const notes = this.#notes;
    if (notes === undefined) return;
    for (let i = 0; i < count; i++) notes.note(pointRange(keys[i] as Key));
  }

  #read(row: Row | undefined): Row | undefined {
    if (row === undefined) this.#touchCollected();
    else this.#touch(row);
    return this.#core.rows.liveRow(row);
  }

  /** Notes that the session has seen an absence (E2). */
  #touchCollected(): void {
    this.#collected = true;
    this.touches++;
  }

  #touch(row: Pick<Row, "position" | "known">): void {
    this.touches++;
    // The clock is that at which the row was applied here, not its version's: a carried row is newer here than it is
    // old.
    const { rows, headClock, clock } = this.#core;
    this.#clock = Math.max(this.#clock, row.position <= rows.committedHead ? headClock : clock.last); // E4
    this.#touched[row.known] = Math.max(this.#touched[row.known] ?? 0, row.position); // E1
    this.#highest = Math.max(this.#highest, row.position); // E3
  }

  /** Checks that nothing that the session saw may be lost (E6). */
  #assertNotLost(): void {
    const { replica, topology } = this.#core;
    if (replica === this.#replica || this.#clock === 0) return;
    const end = topology.ended(this.#replica);
    const isHere = topology.succession.keptOf(this.#replica) !== undefined;
    // Rows that the session touched since it came may be pending by now.
    const path = this.#touched.length > 0 ? [] : this.#path;
    if (
      isHere
        ? !topology.mayHaveLost(this.#replica, path, this.#clock)
        : end !== undefined && this.#clock <= end
    ) return;
    throw sourceLost(this.#core, { replica: this.#replica, clock: this.#clock });
  }

  // ── Writes ──

  async write(mutations: readonly StoreMutation[], checks: readonly StoreCheck[] = []): Promise<WriteResult> {
    const core = this.#core;
    if (core.closed) throw new StoreUnavailable("closed", `site ${core.config.site} is stopping`);
    this.#assertRoom();
    // Rows that a check or a merge looks at must be here.
    const wanted = keysLookedAt({ checks, batches: [mutations] });
    const attempt = () => core.rows.lock.run(() => this.#writeLocked(mutations, checks, wanted), this.lane);
    const result = await attempt() ?? await this.#holding(wanted.map(pointRange), async () => {
      for (;;) {
        await this.#coverKeys(wanted);
        const again = await attempt();
        if (again !== null) return again;
      }
    });
    if (result.ok) core.wake();
    return result;
  }

  /** Refuses writes where too much waits for the way to the root; what the site itself writes is not much. */
  #assertRoom(): void {
    const core = this.#core;
    if (this.#host.warming === null || !core.isPendingFull) return;
    core.count("pending_full");
    throw new StoreUnavailable(
      "pending_full",
      `site ${core.config.site} takes no writes for now: ${core.pending.size} rows (${core.pending.bytes} bytes with ` +
        `what is kept of each) wait for the way to the root, ${core.pendingBytesMax} may; it takes them again when ` +
        `some have arrived there`,
    );
  }

  /** Writes a batch; null: a row that it looks at is not covered. */
  async #writeLocked(
    mutations: readonly StoreMutation[],
    checks: readonly StoreCheck[],
    wanted: readonly Key[],
  ): Promise<WriteResult | null> {
    const core = this.#core;
    if (!wanted.every((key) => core.coverage.covers(key))) return null;
    const found = wanted.length > 0 ? await core.rows.heads(wanted, LOOKED_AT_BYTES_MAX) : [];
    if (found.length < wanted.length) throw tooMuchToLookAt(found.length, wanted.length);
    core.damage.assertKeys(wanted);
    // The disk may have lost one of these rows just now.
    if (!wanted.every((key) => core.coverage.covers(key))) return null;
    if (this.#isClosed && checks.length > 0) throw closedToConditions();
    this.#assertNotLost();
    const current = new Map(found.flatMap((row) => row === undefined ? [] : [[row.key, row] as const]));
    if (!this.#holds(checks, (key) => current.get(key))) return { ok: false };
    // The batch has one version, as in Deno KV: the version that a caller is told serves as a check on any of its rows.
    const version: Version = { clock: core.clock.tick(), replica: core.replica };
    // All values come first: one that can't be merged refuses the whole batch before anything is applied.
    this.#put(mutations, valuesOf(mutations, current, core, version), version);
    return { ok: true, version };
  }

  /** Reports whether each check holds; all that it looks at is seen. @param found returns the row of a key. */
  #holds(checks: readonly StoreCheck[], found: (key: Key) => Row | undefined): boolean {
    for (const { key, version } of checks) {
      const row = found(key);
      if (row === undefined) this.#touchCollected();
      else this.#touch(row);
      if (!sameVersion(this.#core.rows.liveRow(row), version)) return false;
    }
    return true;
  }

  /** Puts a batch of a version that was drawn just now; under the lock. @param values as {@link valuesOf} makes them. */
  #put(mutations: readonly StoreMutation[], values: readonly (Uint8Array | null)[], version: Version): void {
    const core = this.#core;
    mutations.forEach((m, i) => {
      const expiresAtMs = m.kind === "set" ? m.expiresAtMs ?? 0 : 0;
      const value = values[i] ?? null;
      // A write of this site is newer than all it has seen, so that it wins without a look at the old row.
      core.rows.put({ key: m.key, value, ...version, known: core.depth, expiresAtMs });
    });
    this.#touch({ position: core.rows.head, known: core.depth });
    const notes = this.#notes;
    if (notes !== undefined) { for (const { key } of mutations) notes.note(pointRange(key)); }
  }

  async writeAs(mutations: readonly PlainMutation[], version: Version): Promise<boolean> {
    const core = this.#core;
    this.#assertTakes([{ mutations, version }]);
    const isWritten = await core.rows.lock.run(async () => {
      const found = await core.rows.heads(mutations.map((m) => m.key));
      this.#assertNotLost();
      if (this.isOld(version)) return false;
      this.#applyAs({ mutations, version }, found);
      return true;
    }, this.lane);
    if (isWritten) core.wake();
    return isWritten;
  }

  isOld({ clock }: Version): boolean {
    const core = this.#core;
    return core.isCollectable({ clock }) || (!core.isRoot && clock <= core.floorSaid);
  }

  async writeOld(writes: readonly DatedWrite[], merges: OldMerges = NO_MERGES): Promise<OldResult> {
    const core = this.#core;
    this.#assertTakes(writes);
    core.count("written_old");
    const letGo = core.owed.hold(Math.min(...writes.map(({ version }) => version.clock)));
    try {
      await core.owed.pinned();
      const below = writes.filter(({ version }) => core.isCollectable(version));
      const judged = keysOf(below), wanted = [...new Set([...judged, ...keysLookedAt(merges)])];
      const attempt = () =>
        core.rows.lock.run(() => this.#writeOldLocked(writes, { merges, judged, wanted }), this.lane);
      const done = await attempt() ?? await this.#holding(wanted.map(pointRange), async () => {
        for (;;) {
          await this.#coverKeys(wanted);
          const again = await attempt();
          if (again !== null) return again;
        }
      });
      if (!done.ok) return done;
      core.wake();
      await core.owed.atRoot(done.written); // OW3
      if (done.left.length > 0) core.count("writes_left_out", done.left.length);
      return { ok: true, left: done.left, refused: done.refused };
    } finally {
      letGo();
    }
  }

  #assertTakes(writes: readonly DatedWrite[]): void {
    const core = this.#core;
    if (core.closed) throw new StoreUnavailable("closed", `site ${core.config.site} is stopping`);
    if (writes.some(({ version }) => !core.clock.admits(version.clock))) {
      core.count("clock_ahead");
      throw new StoreUnavailable(
        "source_unreachable",
        `cannot write rows dated more than ${CLOCK_AHEAD_MS_MAX} ms in the future at ${core.config.site}: a clock is wrong`,
      );
    }
    this.#assertRoom();
  }

  /**
   * Applies a dated write; under the lock. @param found the rows of its keys. @returns the position of the last of
   * them.
   */
  #applyAs({ mutations, version }: DatedWrite, found: readonly (Row | undefined)[]): Position {
    const core = this.#core;
    let last: Position = 0;
    mutations.forEach((m, i) => {
      const value = m.kind === "set" ? m.value : null;
      const expiresAtMs = m.kind === "set" ? m.expiresAtMs ?? 0 : 0;
      core.rows.apply(found[i], { key: m.key, value, ...version, known: core.depth, expiresAtMs });
      const row = core.rows.newest(m.key, found[i]);
      if (row === undefined) return;
      this.#written.push({ row, replica: core.replica });
      last = Math.max(last, row.position);
    });
    return last;
  }

  /**
   * Writes old rows while the watermark stands still (owed.ts). Rows above it are written as they are; for the rest see
   * old_writes.ts.
   *
   * @param o `judged`: keys of rows that are not above it; `wanted`: these, and those of rows that the merges look at.
   * @returns null: one of these is not covered.
   */
  async #writeOldLocked(
    writes: readonly DatedWrite[],
    { merges, judged, wanted }: {
      readonly merges: OldMerges;
      readonly judged: readonly Key[];
      readonly wanted: readonly Key[];
    },
  ): Promise<OldResult & { readonly ok: true; readonly written: WrittenAt } | { readonly ok: false } | null> {
    const core = this.#core;
    if (!wanted.every((key) => core.coverage.covers(key))) return null;
    const above = writes.filter(({ version }) => !core.isCollectable(version));
    const keys = [...new Set([...wanted, ...keysOf(above)])];
    const rows = await core.rows.heads(keys);
    const found = new Map(keys.map((key, i) => [key, rows[i]]));
    core.damage.assertKeys(wanted);
    if (!wanted.every((key) => core.coverage.covers(key))) return null;
    if (this.#isClosed && merges.checks.length > 0) throw closedToConditions();
    this.#assertNotLost();
    if (!this.#holds(merges.checks, (key) => found.get(key))) return { ok: false };
    const { open, left } = judgeOld(writes, {
      ...{ watermark: core.watermark, nowMs: core.wall.nowMs() },
      stands: new Map(judged.map((key) => [key, found.get(key)])),
    });
    if (open.length > 0) core.count("written_anew", open.length);
    // old_writes.ts OL4, OL5
    const anew = { mutations: open, version: { clock: core.watermark + 1, replica: core.replica } };
    let position: Position = 0;
    for (const write of [anew, ...above]) {
      position = Math.max(position, this.#applyAs(write, write.mutations.map(({ key }) => found.get(key))));
    }
    const refused = merges.batches.flatMap((batch) => this.#mergeOn(batch, found) ?? []);
    if (merges.batches.length > refused.length) position = core.rows.head;
    return { ok: true, left, refused, written: { position, replica: core.replica } };
  }

  /** Applies a batch on top of what was applied in this hold of the lock; returns why it is refused, if it is. */
  #mergeOn(batch: readonly StoreMutation[], found: ReadonlyMap<Key, Row | undefined>): MergeError | null {
    const core = this.#core, version: Version = { clock: core.clock.tick(), replica: core.replica };
    const current = new Map(batch.flatMap(({ key }) => {
      const row = core.rows.newest(key, found.get(key));
      return row === undefined ? [] : [[key, row] as const];
    }));
    try {
      this.#put(batch, valuesOf(batch, current, core, version), version);
      return null;
    } catch (error) {
      if (error instanceof MergeError) return error;
      throw error;
    }
  }

  async settle(): Promise<void> {
    while (this.#written.length > 0) {
      const written = [...this.#written], core = this.#core;
      await this.#host.durable(Math.max(...written.map(({ row }) => row.position)));
      if (core.replica !== this.#replica) await this.#checkWhole();
      // Rows that were written in another incarnation stand under this one with all else that was touched in it.
      if (core.replica !== this.#replica) this.#follow();
      for (const { row, replica } of written) if (replica === core.replica) this.#touch(row);
      this.#written = this.#written.filter((one) => !written.includes(one));
    }
  }

  tick(): ClockValue {
    return this.#core.clock.tick();
  }

  watch(ranges: readonly Range[], changed: () => void): () => void {
    // The subscriber is a function of its own, so that two watches with one callback stay two.
    const subscriber = () => changed();
    for (const range of ranges) {
      this.#core.watchers.add(subscriber, range);
      this.#cover(range, 0, false).then(
        () => subscriber(),
        (error) => this.#host.uplink?.watchFailed(error),
      );
    }
    return () => this.#core.watchers.removeAll(subscriber);
  }

  // ── Leaving ──

  get highest(): Position {
    return this.#highest;
  }

  async durable(): Promise<void> {
    for (;;) {
      await this.#host.durable(this.#own);
      if (this.#core.replica === this.#replica) return;
      await this.#checkWhole();
      if (this.#core.replica !== this.#replica) this.#follow();
    }
  }

  get isDurable(): boolean {
    return this.#core.replica === this.#replica && this.#host.isDurable(this.#own);
  }

  /** The highest own position that the token names: what an earlier incarnation had stands anew in this one. */
  get #own(): Position {
    const { replica, replantedTo } = this.#core;
    return Math.max(this.#path.at(-1) ?? 0, this.#highest, replica === this.#replica ? 0 : replantedTo);
  }

  /**
   * Returns the position by which all that was pending when the session came has arrived; null: not yet. Only the
   * root's stable clock can tell. This site's own journal can't, nor an ancestor's below the root: they need not hold
   * what the session saw elsewhere and what is not covered.
   */
  #resolved(depth: number): Position | null {
    const { stable, down } = this.#core;
    return (stable[0] ?? 0) >= this.#cameWith ? down[depth] ?? null : null;
  }

  token(open: boolean): TokenState {
    const core = this.#core;
    if (core.replica !== this.#replica) return this.#tokenOfNext(open);
    let followed: Position[] | null = null;
    const path = this.#path.map((came, depth) => {
      if (depth === core.depth) return this.#own;
      const resolved = came ?? this.#resolved(depth);
      let position = Math.max(this.#followed[depth] ?? 0, resolved ?? 0), isPending = resolved === null;
      this.#touched.forEach((own, known) => {
        const bound = core.bound(depth, own, known);
        if (bound === null) isPending = true;
        else position = Math.max(position, bound); // E1
      });
      if (this.#collected) position = Math.max(position, core.collected[depth] ?? 0);
      if (!isPending) return position;
      if (position > 0) (followed ??= core.path.map(() => 0))[depth] = position;
      return null;
    });
    if (this.#collected) this.#clock = Math.max(this.#clock, core.watermark);
    return {
      session: this.id,
      sequence: this.#sequence + 1,
      replica: this.#replica,
      clock: open ? Math.max(this.#clock, core.clock.last) : this.#clock, // E4
      path,
      ...(followed === null ? {} : { followed }),
      open: open || !core.hasMet && this.#restsOnThisDisk, // handoff.ts H17
    };
  }

  /**
   * True where the session saw something of this journal, or claims something by a clock that the root has not passed.
   * Of any other session an older copy of this disk would say the same (handoff.ts H17).
   */
  get #restsOnThisDisk(): boolean {
    return this.#own > 0 || this.#clock > this.#core.watermark;
  }

  /**
   * Makes the token where this site took a new number meanwhile: all that was seen here stands under it, at nobody
   * knows which positions.
   */
  #tokenOfNext(open: boolean): TokenState {
    const core = this.#core;
    const path = [...core.path.map(() => null), this.#own];
    const followed = [Math.max(this.#followed[0] ?? 0, core.rootFloor)];
    const clock = Math.max(this.#clock, core.clock.last);
    const sequence = this.#sequence + 1;
    return { session: this.id, sequence, replica: core.replica, clock, path, followed, open };
  }
}

/** Resolves when a condition holds that changes with what arrives. @throws StoreUnavailable after some time */
function waitFor(core: Core, condition: () => boolean): Promise<void> {
  if (condition()) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const forget = core.onAdvance(() => {
      if (!condition()) return;
      forget();
      cancel();
      resolve();
    });
    const cancel = core.ports.clock.after(WAIT_MS_MAX, () => {
      forget();
      const text = `site ${core.config.site} has another parent, and does not know yet what that one found`;
      reject(new StoreUnavailable("source_unreachable", text));
    });
  });
}

/** Merges of old writes that have none. */
const NO_MERGES: OldMerges = { checks: [], batches: [] };

/** Returns the keys that writes are to, each once. */
const keysOf = (writes: readonly DatedWrite[]): Key[] => [
  ...new Set(writes.flatMap(({ mutations }) => mutations.map(({ key }) => key))),
];

/** Returns the keys of the rows that checks and merges look at. */
const keysLookedAt = ({ checks, batches }: OldMerges): Key[] => [
  ...checks.map(({ key }) => key),
  ...batches.flat().filter(({ kind }) => kind !== "set" && kind !== "delete").map(({ key }) => key),
];

const closedToConditions = (): StoreUnavailable =>
  new StoreUnavailable("closed", "this session writes nothing on conditions any more");

const tooMuchToLookAt = (found: number, wanted: number): WriteTooLarge =>
  new WriteTooLarge(
    `what its checks and merges look at has more than ${LOOKED_AT_BYTES_MAX} bytes, of which ${found} of ${wanted} ` +
      "rows have been read",
  );

const sameVersion = (row: Row | undefined, version: Version | null): boolean =>
  row === undefined || version === null
    ? row === undefined && version === null
    : compareVersions(row, version) === 0;

/** Part of a list that has been read so far, where the list is read in steps (E9). */
class Passed {
  readonly #core: Core;
  readonly #reverse: boolean;
  readonly #lookMax: number;
  readonly #removals: number;
  readonly #changed = () => void (this.#hasChanged = true);
  readonly #rows: Row[] = [];
  /**
   * The last row, in journal order, of those looked at for each depth that they are known at: all that the list
   * touched.
   */
  readonly #seen: Row[] = [];
  #bytes = 0;
  #hasChanged = false;
  /** Part of the range that is left to read; null before the first step. */
  #rest: Range | null = null;

  /** @param atATime number of steps that it takes without others in between. */
  constructor(core: Core, reverse: boolean, atATime: number) {
    this.#core = core;
    this.#reverse = reverse;
    this.#lookMax = core.stepRows * atATime;
    this.#removals = core.coverage.removals;
  }

  /**
   * Reads the next step, under the lock. "cut": the list goes on with the next; "changed": what was passed is no state
   * any more.
   */
  async step(
    asked: Range,
    { limit, bytesMax }: { readonly limit: number; readonly bytesMax: number },
  ): Promise<ListResult & { readonly isWhole: boolean } | "cut" | "changed" | null> {
    const core = this.#core, reverse = this.#reverse;
    const rest = this.#rest ?? asked;
    if (this.#hasChanged || (this.#rest !== null && this.#removals !== core.coverage.removals)) {
      return "changed";
    }
    const part = core.coverage.coveredPart(rest, reverse);
    if (part.start >= part.end && this.#rest === null) return null;
    const removals = core.coverage.removals;
    const left = limit === 0 ? 0 : limit - this.#rows.length;
    const found = await core.rows.list(part, left, reverse, bytesMax - this.#bytes, this.#lookMax);
    core.damage.assertRange(found.range);
    if (removals !== core.coverage.removals) return this.#rest === null ? null : "changed";
    this.#rows.push(...found.rows);
    for (const row of found.seen) {
      if ((this.#seen[row.known]?.position ?? 0) < row.position) this.#seen[row.known] = row;
    }
    for (const row of found.rows) this.#bytes += rowBytes(row);
    const range = reverse
      ? { start: found.range.start, end: asked.end }
      : { start: asked.start, end: found.range.end };
    if (found.isCut) {
      core.watchers.add(this.#changed, found.range);
      this.#rest = reverse ? { start: rest.start, end: range.start } : { start: range.end, end: rest.end };
      return "cut";
    }
    const isWhole = part.start <= rest.start && part.end >= rest.end;
    return { ...found, rows: this.#rows, seen: Object.values(this.#seen), range, isWhole };
  }

  end(): void {
    this.#core.watchers.removeAll(this.#changed);
  }
}

/** Reads the rows of the first keys, all of them where their values stay below `bytesMax`; under the lock. */
async function lookUpTo(core: Core, keys: readonly Key[], bytesMax: number): Promise<(Row | undefined)[]> {
  const rows: (Row | undefined)[] = [];
  for (let bytes = 0; rows.length < keys.length && bytes < bytesMax;) {
    const next = await core.rows.lookup(rows.length === 0 ? keys : keys.slice(rows.length), bytesMax - bytes);
    if (rows.length === 0 && next.length === keys.length) return next;
    for (const row of next) if (row !== undefined) bytes += rowBytes(row);
    rows.push(...next);
  }
  return rows;
}

/**
 * Makes the values that mutations write, each on top of what those before it in the batch write.
 *
 * @throws MergeError where one of them can't be merged.
 */
function valuesOf(
  mutations: readonly StoreMutation[],
  current: ReadonlyMap<Key, Row>,
  core: Core,
  version: Version,
): (Uint8Array | null)[] {
  const isPlain = mutations.every(({ kind }) => kind === "set" || kind === "delete");
  const written = isPlain ? undefined : new Map<Key, Uint8Array | null>();
  return mutations.map((m) => {
    const value = m.kind === "set"
      ? m.value
      : m.kind === "delete"
      ? null
      : contribute(mergeBase(m.key, written, current, core, version), m.kind, m.value, version);
    written?.set(m.key, value);
    return value;
  });
}

/** Returns the row that a merge of this batch goes on from; undefined: there is none. */
function mergeBase(
  key: Key,
  written: ReadonlyMap<Key, Uint8Array | null> | undefined,
  current: ReadonlyMap<Key, Row>,
  core: Core,
  version: Version,
): Pick<Row, "clock" | "replica" | "value" | "expiresAtMs"> | undefined {
  const before = written?.get(key);
  if (before !== undefined) return { ...version, value: before, expiresAtMs: 0 };
  const row = current.get(key);
  // A row that has expired is over: the merge begins anew, and wins over it at every site.
  const isOver = row !== undefined && row.value !== null && core.rows.liveRow(row) === undefined;
  return isOver ? { ...version, value: null, expiresAtMs: 0 } : row;
}
