/**
 * State that the parts of a replica share: which site it is, its clock, rows and coverage, and how far its journal is
 * reflected above.
 *
 * Positions of ancestors are kept root first: index = depth. `down[j]` is how far the journal of the ancestor at depth
 * j has arrived here for all this site covers; `reach[j]` maps own positions to theirs (PROTOCOL I6); `fed[j]` does so
 * for rows that came from above.
 *
 * `down` and `stable` are replaced, never changed in place (their types are readonly): a snapshot is a reference.
 *
 * O2  They are advanced after the rows they speak of were applied, with no await in between (PROTOCOL I2).
 */
import type { ReplicaConfig, ReplicaPorts } from "../api/api.ts";
import { HybridClock } from "../model/clock.ts";
import { ClockGuard } from "./clock_guard.ts";
import { Coverage } from "../rows/coverage.ts";
import { Damage } from "./damage.ts";
import { Gaps, jumpedFrom } from "../model/gaps.ts";
import { HealingStorage } from "../rows/healing_storage.ts";
import type { Key } from "../model/key.ts";
import { encodeMessage, type Message } from "../wire/message.ts";
import { COMPARE_ROWS_BYTES, HORIZON_MS, PENDING_BYTES_MAX, STEP_ROWS } from "../model/limits.ts";
import { Owed } from "./owed.ts";
import { Pending } from "../rows/pending.ts";
import type { SiteId } from "../model/ports.ts";
import { Quiet } from "../model/quiet.ts";
import { partsOutside, type Range } from "../model/range.ts";
import { type Incoming, Rows } from "../rows/rows.ts";
import {
  CLOCK_TICKS_PER_MS,
  type ClockValue,
  type Position,
  type ReplicaNumber,
  type Row,
} from "../model/row.ts";
import { StaleRanges } from "../rows/stale.ts";
import { Steps } from "../model/steps.ts";
import { Subscriptions } from "../rows/subscriptions.ts";
import { SYSTEM_RANGE, Topology } from "../members/topology.ts";
import { Wall } from "../model/wall.ts";

/** Name of the record that has the gaps of this journal. */
export const GAPS_RECORD = "gaps";

/** State of the site at a freeze that the messages of that commit tell (PROTOCOL I2): true as of its head. */
export interface Mark {
  /** The incarnation that speaks. */
  readonly replica: ReplicaNumber;
  /**
   * True where the site was resyncing (Core.resyncing) at its freeze: nothing of this mark may leave, though the resync
   * may be over by now.
   */
  readonly partial: boolean;
  readonly head: Position;
  readonly clock: ClockValue;
  readonly down: readonly Position[];
  /** Stable clocks, the root's first, this site's own last. */
  readonly stable: readonly ClockValue[];
  readonly reach: readonly (readonly [Position, Position])[];
  /** Floor of the whole subtree: see Core.floor. */
  readonly floor: ClockValue;
  /** True while no pushes are taken (Core.isPendingFull). */
  readonly isFull: boolean;
  readonly watermark: ClockValue;
}

export class Core {
  /** Configuration as the host gave it, but for the parent (moveTo). */
  config: ReplicaConfig;
  readonly ports: ReplicaPorts;
  readonly clock: HybridClock;
  /** Time that is believed of the wall clock: by it rows expire, and dates are compared. */
  readonly wall: Wall;
  /** Clock by which durations are measured. */
  readonly steady: { nowMs(): number };
  readonly rows: Rows;
  readonly coverage: Coverage;
  readonly stale: StaleRanges;
  readonly clockGuard = new ClockGuard(this);
  readonly pending = new Pending();
  readonly owed: Owed;
  readonly damage = new Damage(this);
  readonly topology = new Topology();
  readonly watchers = new Subscriptions<() => void>();
  /** Readers that wait for a range to be covered: it is not evicted meanwhile. */
  readonly readers = new Subscriptions<object>();
  readonly counters: Record<string, number> = {};
  replica: ReplicaNumber = 0;
  parentReplica: ReplicaNumber = 0;
  /** Ids from the root to the parent. */
  path: readonly SiteId[] = [];
  down: readonly Position[] = [];
  stable: readonly ClockValue[] = [];
  reach: Steps[] = [];
  fed: Steps[] = [];
  /** The parent's own `reach`: from positions of the parent's journal to those of the ancestors above it. */
  via: Steps[] = [];
  watermark: ClockValue = 0;
  /** The oldest version that this site keeps for others (wards/), as of the last collection. */
  wardsLeast: ClockValue = Infinity;
  /** The highest floor that this site may have said, its former processes included (owed.ts). */
  floorSaid: ClockValue = 0;
  /** The parent's clock as of the last feed that was applied. */
  fedClock: ClockValue = 0;
  /** Position of each ancestor's journal that includes every tombstone collected here. */
  collected: Position[] = [];
  /** The highest own position of a tombstone collected here: a child that was fed less far may have missed it. */
  collectedTo: Position = 0;
  /**
   * Position of the parent's journal up to which something of it was taken here: rows, or what an arriving session had
   * seen.
   */
  taken: Position = 0;
  /**
   * A clock that is past all that was taken here in this way of journals between the parent's and the root's; 0:
   * nothing was.
   */
  takenAbove: ClockValue = 0;
  /** Position to which the root's journal had come here under the parent before: less than that would be going back. */
  rootFloor: Position = 0;
  /**
   * Position at which this journal began anew: no row up to it is pending, whatever the row says of itself (stale.ts).
   */
  rootedTo: Position = 0;
  /** Position up to which the rows that were pending when the journal began anew stand here again, in this process. */
  replantedTo: Position = 0;
  /** Gaps of this journal (gaps.ts). */
  gaps = new Gaps();
  /** Sites that an operator gave up when it moved this one (adoption.ts). */
  lost: readonly SiteId[] = [];
  /** Bytes of rows above which those that can be fetched again are given back; at most what the configuration says. */
  capacityBytes: number;
  /** Clock value that the clock may not pass before it is persisted further ahead. */
  clockBound: ClockValue = 0;
  /** Clock value no lower than the clock at which anything up to the committed head was applied here. */
  headClock: ClockValue = 0;
  /**
   * True where the disk was lost, and the rows that the children still have of it have not all come back: these rows
   * may lack causes that only others have, so nothing is told to anyone.
   */
  resyncing = false;
  /**
   * True once the parent has met this process: the parent has had no more of this disk than there is (handoff.ts H17).
   */
  hasMet: boolean;
  closed = false;
  /** Tombstones and expiring rows applied since the last collection. */
  readonly mortal: { key: Key; position: Position; clock: ClockValue }[] = [];
  /**
   * Clock that no session served here has seen anything newer than, but what stands here (E8): the highest clock that
   * any session brought from elsewhere, or that a row had which stood here and went; and at first the clock at which
   * this process found the disk.
   */
  seenClock: ClockValue = Infinity;
  /**
   * Pending rows that stand here outside coverage, in journal order, whoever wrote them: dropped once the root has them
   * (L4).
   */
  readonly uncovered: { key: Key; position: Position; clock: ClockValue }[] = [];
  readonly #advanced = new Set<() => void>();
  readonly #quiet = new Quiet(() => this.steady.nowMs());
  #wake: () => void = () => {};

  constructor(config: ReplicaConfig, ports: ReplicaPorts) {
    this.config = config;
    this.hasMet = config.parent === null;
    this.capacityBytes = config.capacityBytes;
    this.lost = config.lost ?? [];
    this.ports = { ...ports, storage: new HealingStorage(ports.storage, this.damage) };
    this.wall = new Wall(ports.clock);
    this.clock = new HybridClock(this.wall);
    this.steady = { nowMs: () => ports.clock.steadyMs() };
    this.owed = new Owed(this, ports.owed ?? (() => Infinity));
    this.rows = new Rows({
      storage: this.ports.storage,
      clock: this.clock,
      turns: this.ports.clock,
      nowMs: () => this.wall.nowMs(),
      stepRows: this.stepRows,
      applied: (row) => this.#applied(row),
      isStale: (row) => this.isStale(row),
      gone: (row) => this.gone(row),
    });
    this.stale = new StaleRanges((name, value) => this.rows.record(name, value));
    this.coverage = new Coverage((name, value) => this.rows.record(name, value), () => this.rows.head);
  }

  get depth(): number {
    return this.path.length;
  }

  get isRoot(): boolean {
    return this.config.parent === null;
  }

  get pendingBytesMax(): number {
    return this.config.pendingBytesMax ?? PENDING_BYTES_MAX;
  }

  /**
   * True where so much waits for the way to the root that no more is taken in. Rows that come back after the loss of a
   * disk are taken in any case: those that have them have bounded them.
   */
  get isPendingFull(): boolean {
    return !this.resyncing && this.pending.bytes >= this.pendingBytesMax;
  }

  /**
   * True where children are to keep what they have: not while somebody above may wait for just that, after a loss or a
   * move.
   */
  get isHolding(): boolean {
    // A site above that resyncs has no stable clock: the end of a child that it had may be below this site.
    const isWaitedFor = this.stable.includes(0, 1) || this.topology.succession.unsettled().length > 0;
    return this.isPendingFull && !isWaitedFor;
  }

  get stepRows(): number {
    return this.config.stepRows ?? STEP_ROWS;
  }

  get compareRowsBytes(): number {
    return this.config.compareRowsBytes ?? COMPARE_ROWS_BYTES;
  }

  get horizonMs(): number {
    return this.config.horizonMs ?? HORIZON_MS;
  }

  /**
   * Gives this site another parent from now on; what it knows of the sites above holds until that parent has answered.
   */
  moveTo(parent: SiteId, lost: readonly SiteId[]): void {
    this.config = { ...this.config, parent };
    this.lost = lost;
  }

  count(name: string, by = 1): void {
    this.counters[name] = (this.counters[name] ?? 0) + by;
  }

  /** Counts something that another site says and that is not taken; notes it once a minute for each site and event. */
  refused(event: string, from: SiteId, detail: Record<string, unknown> = {}, counter = event): void {
    this.count(counter);
    const before = this.#quiet.admits(`${event} ${from}`);
    if (before !== null) this.ports.note(event, { from, ...detail, before });
  }

  /** Sets the function that starts the pump. */
  onWake(wake: () => void): void {
    this.#wake = wake;
  }

  /** Wakes the pump: there is something for it to do. */
  wake(): void {
    this.#wake();
  }

  send(to: SiteId, message: Message): Promise<void> {
    return this.ports.network.send(to, encodeMessage(message));
  }

  /** Makes the incoming form of a row that begins its life here. */
  own(key: Key, value: Uint8Array | null, expiresAtMs = 0): Incoming {
    return { key, value, clock: this.clock.tick(), replica: this.replica, known: this.depth, expiresAtMs };
  }

  #applied(row: Row): void {
    if (row.known > 0) {
      this.pending.add(row);
      if (!this.coverage.covers(row.key)) this.leavesLater(row);
    } else this.pending.remove(row.key);
    if (row.value === null || row.expiresAtMs !== 0) {
      this.mortal.push({ key: row.key, position: row.position, clock: row.clock });
    }
    this.damage.applied(row);
    this.topology.apply(row);
    for (const changed of this.watchers.at(row.key)) changed();
  }

  /** Notes a pending row from which nothing is answered: it leaves the disk later. */
  leavesLater({ key, position, clock }: Pick<Row, "key" | "position" | "clock">): void {
    this.uncovered.push({ key, position, clock });
  }

  /**
   * Notes that a row stands here no more: a session that has seen it must not be shown an older one in its place (E8).
   */
  gone({ clock }: Pick<Row, "clock">): void {
    this.seenClock = Math.max(this.seenClock, clock);
  }

  /** Starts over above: nothing is known of the ancestors at these depths. */
  setPath(path: readonly SiteId[]): void {
    this.path = path;
    this.taken = this.takenAbove = 0;
    this.down = path.map(() => 0);
    this.stable = path.map(() => 0);
    this.reach = path.map(() => new Steps());
    this.fed = path.map(() => new Steps());
    this.via = path.slice(1).map(() => new Steps());
    this.collected = path.map(() => 0);
  }

  /** Position of this journal up to which the parent's journal includes it. */
  get acked(): Position {
    return this.reach[this.depth - 1]?.top ?? 0;
  }

  /** Reports whether a row of this site is not known to be in the parent's journal. */
  isPendingToParent(row: Row): boolean {
    const known = Math.max(this.acked, this.rootedTo);
    return row.known >= this.depth && row.position > known && !this.isRoot;
  }

  /** Reports whether a row is here only to be compared with the parent's (stale.ts). */
  isStale({ key }: Pick<Row, "key">): boolean {
    return this.pending.get(key) === undefined && !this.coverage.covers(key); // stale.ts
  }

  /**
   * Covers a range, which is as the parent has it: this site answers from it. Called after its rows, in the same step.
   */
  cover(range: Range): void {
    this.coverage.add(range);
    this.stale.remove(range);
    this.damage.covered(range);
    this.stepFed();
  }

  /** Uncovers a range for which the parent can't vouch any more; its rows stay, to be compared. */
  uncover(range: Range): void {
    for (const covered of this.coverage.within(range)) {
      for (const part of partsOutside(covered, SYSTEM_RANGE)) this.stale.add(part);
    }
    this.coverage.remove(range);
  }

  /** Notes that the positions that the ancestors' journals have reached here include all that came from above. */
  stepFed(): void {
    this.fed.forEach((steps, j) => steps.add(this.rows.head, this.down[j] ?? 0));
  }

  /** Depth of the highest site known to have a row that stands here at `position`. */
  knownDepth(
    row: Pick<Row, "position" | "known">,
    reach: readonly (readonly [Position, Position])[],
  ): number {
    for (let depth = 0; depth < row.known; depth++) {
      if (row.position <= (reach[depth]?.[0] ?? 0)) return depth;
    }
    return row.known;
  }

  /**
   * Returns a position of the ancestor at `depth` that includes the row at `position` here; null while that row is
   * pending. The parent may know what this site has not heard from that ancestor: the row stands in the parent's
   * journal first.
   */
  bound(depth: number, position: Position, known: number): Position | null {
    const steps = known <= depth ? this.fed[depth] : undefined;
    const direct = steps?.bound(position) ?? this.reach[depth]?.bound(position) ?? null;
    const parent = this.depth - 1;
    if (direct !== null || depth >= parent) return direct;
    const there = this.bound(parent, position, known);
    return there === null ? null : this.via[depth]?.bound(there) ?? null;
  }

  /** Calls back whenever `down`, `stable` or the topology may have moved; the result unsubscribes. */
  onAdvance(callback: () => void): () => void {
    this.#advanced.add(callback);
    return () => this.#advanced.delete(callback);
  }

  /**
   * Notes that something here depends on what has come by now of the journal of the ancestor at a depth. Of the root's
   * journal, how far it has come says enough (adoption.ts F1).
   *
   * @param rows what has come from there: all causes of what the root has are there, too (PROTOCOL I1).
   */
  takes(depth: number, rows: readonly { readonly known: number }[] | null = null): void {
    if (rows?.every(({ known }) => known === 0) === true) return;
    if (depth === this.depth - 1) this.taken = Math.max(this.taken, this.down[depth] ?? 0);
    else if (depth > 0 && depth < this.depth) this.takenAbove = this.clock.last;
  }

  advanced(): void {
    for (const callback of [...this.#advanced]) callback();
  }

  /**
   * Reports whether a row is at or below the watermark: it is in the root's journal or superseded there (PROTOCOL I9).
   */
  isCollectable(row: { readonly clock: ClockValue }): boolean {
    return row.clock <= this.watermark;
  }

  /**
   * Version clock up to which no row stands here or will come here from anywhere but from below, apart from those that
   * the root has: rows older than the horizon are carried no more, and the floor does not pass what is owed (I9).
   */
  get floor(): ClockValue {
    const oldest = this.clock.last - this.horizonMs * CLOCK_TICKS_PER_MS;
    const least = Math.min(this.pending.least, this.wardsLeast, this.owed.least);
    return Math.max(0, Math.min(oldest, least - 1));
  }

  /** Begins a process over what it has found on its disk (gaps.ts). */
  jump(): void {
    const { rows, ports, clock } = this, from = rows.head;
    rows.jumpTo(jumpedFrom(from, ports.random));
    const atMs = Math.max(0, Math.floor(ports.clock.nowMs()));
    this.gaps = this.gaps.and({ from, to: rows.head, clock: clock.last, atMs });
    rows.record(GAPS_RECORD, this.gaps.encode());
  }

  /**
   * Reports whether this disk has had a position; where a site names one that it never had, the disk went back
   * (handoff.ts H13).
   */
  hasHad(position: Position): boolean {
    return position <= this.rows.head && this.gaps.around(position) === undefined;
  }

  /** Reports whether a row may have been lost with its writer's disk on its way to the root. */
  mayHaveBeenLost(row: { readonly clock: ClockValue; readonly replica: ReplicaNumber }): boolean {
    const ended = this.topology.ended(row.replica);
    return ended !== undefined && row.clock > ended;
  }

  /** Reports whether to carry a row would break what `floor` said. */
  isTooOldToCarry(row: { readonly clock: ClockValue }): boolean {
    return !this.isCollectable(row) && row.clock <= this.clock.last - this.horizonMs * CLOCK_TICKS_PER_MS;
  }
}
