/**
 * Rows that this site's disk has damaged (ports.ts S4), and that the site does not remember: what is known of each, and
 * who may be answered.
 *
 * Life: dropped from the disk (healing_storage.ts) → the root has it: uncovered, and fetched when it is wanted. → The
 * parent has it: the same, at once, and until then others are not told what is pending here. → Nobody above is known to
 * have it: *lost* here, until an owner gives it back, the parent turns out to have it, or a newer row takes its place.
 *
 * G1  A lost row is never answered with an older row, or with none: reads of it and fetches by children that hold it
 *     are refused by name (`row_damaged`); children that covered it cover it no more.
 * G2  A lost row that is pending is told to nobody as if it had been told: pushes, carries and owners wait (P1, C1,
 *     O1).
 * G3  `until` is at least the version of the lost row: a row that is newer stands for it, unless it is to be merged
 *     with it.
 * G4  The root drops none of its system rows: it stops, and says which one is damaged.
 */
import { type ReplicaPorts, StoreUnavailable } from "../api/api.ts";
import { Reader, Writer } from "../model/codec.ts";
import type { Healer } from "../rows/healing_storage.ts";
import { type Key, unpackKey } from "../model/key.ts";
import { isMerge } from "../model/merge.ts";
import type { Pending } from "../rows/pending.ts";
import { holds, overlap, pointRange, type Range } from "../model/range.ts";
import type { ClockValue, Position, Row } from "../model/row.ts";
import type { Rows } from "../rows/rows.ts";
import { SYSTEM_RANGE } from "../members/topology.ts";

const RECORD = "damaged/";
/** Number of rows that one line names. */
const NAMED_MAX = 10;

/** Site that has a dropped row: the root, and all above; the parent; nobody that is known of. */
type Place = "root" | "parent" | "nobody";
const PLACES: readonly Place[] = ["root", "parent", "nobody"];

/** Facts that are known of a row that was dropped. */
interface Lost {
  /** Version that the lost row does not exceed (G3). */
  readonly until: ClockValue;
  /**
   * Position at which the row stood in this site's journal, at most; Infinity: it stood in that of an incarnation that
   * is over.
   */
  position: Position;
  place: Place;
  /**
   * True once a newer row has been applied, and is on its way to the disk: what this site tells others is still as of
   * before.
   */
  isOver: boolean;
}

/** Interface to the replica (core.ts). */
export interface DamagedSite {
  readonly config: { readonly site: string };
  readonly ports: Pick<ReplicaPorts, "note">;
  readonly isRoot: boolean;
  readonly clock: { readonly last: ClockValue };
  readonly pending: Pick<Pending, "get">;
  readonly rows: Pick<Rows, "head" | "record" | "remembered" | "changed" | "healed">;
  readonly acked: Position;
  count(name: string, by?: number): void;
  uncover(range: Range): void;
  gone(row: Pick<Row, "clock">): void;
}

/** Consequences of damage at the links. */
export interface DamageHost {
  /** Takes keys that are covered no more, or not to be answered: children are told, and what is wanted is fetched. */
  uncovered(keys: readonly Key[]): void;
  /** Asks owners for what is lost. */
  lost(): void;
}

/** Damaged rows of one site, and the answers that they forbid. */
export class Damage implements Healer {
  readonly #core: DamagedSite;
  readonly #lost = new Map<Key, Lost>();
  #host: DamageHost | null = null;
  /** True while the end of the journal is read at the start: nobody knows then what of it is pending. */
  isUnread = false;

  constructor(core: DamagedSite) {
    this.#core = core;
  }

  /** Begins to tell the links, which are there from now on. */
  serve(host: DamageHost): void {
    this.#host = host;
    if (this.isPending) host.lost();
  }

  // ── Disk ──

  /** Restores what a record says of a lost row; false where the record is of another kind. */
  restore(name: string, value: Uint8Array): boolean {
    if (!name.startsWith(RECORD)) return false;
    const reader = new Reader(value);
    const until = reader.uint(), stood = reader.uint(), place = PLACES[reader.uint()] ?? "nobody";
    reader.end();
    const position = stood === 0 ? Infinity : stood;
    this.#lost.set(atob(name.slice(RECORD.length)) as Key, { until, position, place, isOver: false });
    return true;
  }

  /**
   * Settles what was restored, once all records were, those of coverage included. @param get reads a row on the disk.
   */
  async loaded(get: (key: Key) => Promise<Row | undefined>): Promise<void> {
    for (const [key, lost] of [...this.#lost]) {
      const row = await get(key);
      // A newer row was on its way to the disk when this site went down.
      if (row !== undefined && this.#isNewer(row, lost)) this.#forget(key);
      else this.#settle(key, lost);
    }
  }

  #record(key: Key, { until, position, place }: Lost): [string, Uint8Array] {
    const stood = position === Infinity ? 0 : position;
    return [RECORD + btoa(key), new Writer(16).uint(until).uint(stood).uint(PLACES.indexOf(place)).done()];
  }

  // ── Healing ──

  remembered(key: Key): Row | undefined {
    return this.#core.rows.remembered(key);
  }

  word(key: Key): [string, Uint8Array] {
    const core = this.#core;
    if (core.isRoot && holds(SYSTEM_RANGE, key)) { // G4
      throw new StoreUnavailable(
        "disk_failed",
        `the row ${
          shownKey(key)
        }, which says who is who in this cluster, is damaged on the root's disk: put back a ` +
          `backup of its store`,
      );
    }
    return this.#record(key, this.#judge(key));
  }

  #judge(key: Key): Lost {
    const core = this.#core;
    const entry = core.pending.get(key), position = entry?.position ?? core.rows.head;
    const isAbove = !core.isRoot && !this.isUnread;
    const place = isAbove && entry === undefined
      ? "root"
      : isAbove && position <= core.acked
      ? "parent"
      : "nobody";
    const over = core.rows.changed(key);
    const until = Math.min(core.clock.last, over === undefined ? Infinity : over.clock - 1);
    return {
      until,
      position: over === undefined ? position : core.rows.head,
      place,
      isOver: over !== undefined,
    };
  }

  healed(mended: readonly Key[], dropped: readonly Key[]): void {
    const core = this.#core;
    core.rows.healed();
    core.count("rows_damaged", mended.length + dropped.length);
    core.count("rows_mended", mended.length);
    this.#note(mended, "written anew, from memory");
    const judged = dropped.map((key) => ({ key, lost: this.#judge(key) }));
    for (const { key, lost } of judged) {
      this.#lost.set(key, lost);
      core.gone({ clock: lost.until });
      this.#settle(key, lost);
    }
    for (const place of PLACES) {
      this.#note(judged.flatMap(({ key, lost }) => lost.place === place ? [key] : []), BECAME[place]);
    }
    this.#host?.uncovered(dropped);
    if (this.isPending) this.#host?.lost();
  }

  /** Notes in one line all rows that one read has met: a disk may have lost thousands of rows. */
  #note(keys: readonly Key[], became: string): void {
    if (keys.length === 0) return;
    const row = keys.slice(0, NAMED_MAX).map(shownKey).join(", ");
    this.#core.ports.note("row_damaged", { row, rows: keys.length, became });
  }

  /** Uncovers a row that can be fetched again, in one commit with the record of it. */
  #settle(key: Key, lost: Lost): void {
    const core = this.#core;
    // System rows are asked for as a whole, whoever has them: without them too much would be promised (PROTOCOL I8).
    if (lost.place !== "nobody" || (!core.isRoot && holds(SYSTEM_RANGE, key))) core.uncover(pointRange(key));
    if (lost.place === "root" && !lost.isOver) this.#forget(key);
    else core.rows.record(...this.#record(key, lost));
  }

  #forget(key: Key): void {
    this.#lost.delete(key);
    this.#core.rows.record(RECORD + btoa(key), null);
  }

  // ── What becomes of it ──

  /** Takes the news that a row was applied (G3). */
  applied(row: Row): void {
    const lost = this.#lost.get(row.key);
    if (lost !== undefined && this.#isNewer(row, lost)) lost.isOver = true;
  }

  #isNewer({ clock, value }: Row, { until }: Lost): boolean {
    return clock > until && !isMerge(value);
  }

  /** Takes the news that rows are on disk: lost rows that they stand for are over for others, too. */
  committed(changes: ReadonlyMap<Key, Row | null>): void {
    for (const [key, lost] of this.#lost) {
      if (lost.isOver && (changes.get(key) ?? null) !== null) this.#forget(key);
    }
  }

  /** Takes the news that a range is as the parent has it. */
  covered(range: Range): void {
    for (const [key, lost] of this.#lost) {
      if (lost.place !== "nobody" && holds(range, key)) this.#forget(key);
    }
  }

  /** Takes the news that the row which an owner gave back was applied. */
  recovered(key: Key): void {
    const lost = this.#lost.get(key);
    if (lost !== undefined) lost.isOver = true;
  }

  /**
   * Takes the news that the parent's journal includes this one's up to a position: lost rows up to there are at the
   * parent.
   */
  acked(position: Position): void {
    if (this.#lost.size === 0) return;
    const found: Key[] = [];
    for (const [key, lost] of this.#lost) {
      if (this.#core.isRoot || lost.place !== "nobody" || lost.position > position) continue;
      lost.place = "parent";
      this.#settle(key, lost);
      found.push(key);
    }
    if (found.length > 0) this.#host?.uncovered(found);
  }

  /** Forgets who has which row: all positions above are void. */
  anew(): void {
    for (const [key, lost] of this.#lost) {
      lost.place = "nobody";
      lost.position = Infinity;
      this.#core.rows.record(...this.#record(key, lost));
    }
  }

  // ── Questions ──

  /** Lost rows, each with the position at which it stood. */
  get pending(): readonly { readonly key: Key; readonly position: Position }[] {
    const found: { key: Key; position: Position }[] = [];
    for (const [key, { place, position }] of this.#lost) {
      if (place === "nobody") found.push({ key, position });
    }
    return found;
  }

  /**
   * True where nobody knows whether some lost rows were pushed: they were lost while this site was down. The parent
   * says how far this site had pushed, as long as that goes no further.
   */
  get isUnclear(): boolean {
    return this.isPending && this.pending.some(({ key }) => this.#core.pending.get(key) === undefined);
  }

  /** Reports whether one of these keys is lost. */
  holdsBack(keys: readonly Key[]): boolean {
    return this.#lost.size > 0 && keys.some((key) => this.#lost.get(key)?.place === "nobody");
  }

  /** True where rows are lost here that others may not be told as if they had been (G2). */
  get isPending(): boolean {
    return this.#lost.size > 0 && !this.#core.isRoot && this.pending.length > 0;
  }

  /** True where the parent has rows that this site does not have again yet. */
  get isWaiting(): boolean {
    return this.#lost.size > 0 && !this.#core.isRoot;
  }

  /** Keys of rows that the parent has, and this site does not have again yet. */
  get atParent(): Key[] {
    return [...this.#lost.keys()].filter((key) => this.isAtParent(key));
  }

  isAtParent(key: Key): boolean {
    return this.#lost.get(key)?.place === "parent";
  }

  /** Names of the rows that are refused. */
  get names(): string[] {
    const lost = [...this.#lost].filter(([, { place, isOver }]) => place === "nobody" && !isOver);
    return lost.map(([key]) => shownKey(key));
  }

  /** Reports whether a newer row is on its way to the disk for a lost one. */
  isOver(key: Key): boolean {
    return this.#lost.get(key)?.isOver === true;
  }

  /** Returns the keys of a range that are refused (G1). */
  within(range: Range): Key[] {
    if (this.#lost.size === 0) return [];
    return this.pending.flatMap(({ key }) => overlap(range, pointRange(key)) ? [key] : []).sort();
  }

  /** @throws StoreUnavailable `row_damaged` where one of these keys is lost (G1). */
  assertKeys(keys: readonly Key[]): void {
    if (this.#lost.size === 0) return;
    for (const key of keys) {
      const lost = this.#lost.get(key);
      if (lost?.place === "nobody" && !lost.isOver) throw this.problem(key);
    }
  }

  /** @throws StoreUnavailable `row_damaged` where a row of the range is lost (G1). */
  assertRange(range: Range): void {
    this.assertKeys(this.within(range));
  }

  problem(key: Key): DamagedRowError {
    return new DamagedRowError(`the disk of site ${this.#core.config.site}`, key);
  }
}

const BECAME: Readonly<Record<Place, string>> = {
  root: "fetched again when it is read",
  parent: "fetched again from the parent",
  nobody: "refused until it is written anew: nobody above is known to have it",
};

/** The problem `row_damaged`. */
export class DamagedRowError extends StoreUnavailable {
  /** @param where the disk that damaged the row, as far as is known here. */
  constructor(where: string, readonly key: Key) {
    const row = shownKey(key);
    const text = `the row ${row} is damaged on ${where}, and no other site is known to have it as it was; ` +
      `writing or deleting it makes it whole`;
    super("row_damaged", text, { row });
  }
}

/** Returns the key that an error names as damaged; null: it is another error. */
export const damagedRow = (error: unknown): Key | null => error instanceof DamagedRowError ? error.key : null;

/** Writes a key for people to read. */
export function shownKey(key: Key): string {
  try {
    const parts = unpackKey(key).map((part) => part instanceof Uint8Array ? `0x${part.toHex()}` : part);
    return JSON.stringify(parts, (_, part) => typeof part === "bigint" ? `${part}n` : part);
  } catch {
    return `0x${[...key].map((char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join("")}`;
  }
}
