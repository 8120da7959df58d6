/**
 * The arbiter of homes, at the root: one row for each stateful session, changed only by compare-and-set.
 *
 * Life of a row: (birth: told by the id) → acquired → configured, … → acquired by another, … → ended → (a week later)
 * its epoch is in the floor, and the row is gone.
 *
 * A1  An epoch of a name is granted once, to one ask (`grant`) of one site; epochs of a name only rise, rows that were
 *     dropped included (the floor).
 * A2  Owners change only by the home of the row's epoch, from the configuration that it names.
 * A3  A home is taken from a site that is gone, that agrees, or that asks itself. While it is agreed that it moves,
 *     only the site that it moves to may take it, or any site where that one is gone; its home may take its word back
 *     (`yield` to "").
 * A4  An answer leaves when what it says is on disk. One batch at a time: all asks that came while the one before was
 *     written.
 * A5  Of an app at most `perAppMax` rows live; what is on record already is opened and taken over beyond that, too.
 * A6  After `close` nothing is read, written or answered any more.
 * A7  Steps of the disk are counted, in the same step (`position`): nothing is answered of a step but with its
 *     position, and no position is that of two steps: a process that does not know whether its disk has all steps
 *     begins beyond a number that it draws, and keeps which ones it left out (`gaps`). A site that has heard of one of
 *     these has heard of a step that is not on this disk, however many were made since.
 * A8  Nothing is granted, and nothing is said of a name, while it is not known whether this disk has all that was granted
 *     (certainty.ts). Until that is known of all names, epochs and numbers of births are drawn from beyond a number that
 *     this process has drawn: what was granted before, and is not here, has others.
 * A9  Where this disk went back (`heard`), that is on it before anything else is answered; what was written before is no
 *     record any more until it was compared with what sites know (`settle`, rebuild.ts).
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import type { Clock, SiteId, Storage } from "../../../store/model/ports.ts";
import { keyAfter, prefixRange } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import type { HomeRow, Owner, StatefulName } from "../log/api.ts";
import type { ArbiterAsk, Reply, RowState } from "../log/asks.ts";
import { asError } from "../log/group_commit.ts";
import { ENDED_MS } from "../log/limits.ts";
import { missedFor, type SitesHeard } from "./certainty.ts";
import { birthOf, keyOf, sessionNameOf, shownName } from "../log/name.ts";
import { readOwners, readVersion, writeOwners } from "../log/packet.ts";

export interface ArbiterPorts {
  readonly site: SiteId;
  readonly storage: Storage;
  readonly clock: Clock;
  /** Reports whether a site can be asked to serve what is at home there. */
  readonly gone: (site: SiteId) => "gone" | "here" | "unsure";
  readonly fatal: (error: Error) => void;
  /** Largest number of stateful sessions of one app (A5). */
  readonly perAppMax: number;
  /** Time for which it is on record that a name has ended. */
  readonly endedMs?: number | undefined;
  /** Sites that have said how far they have heard of this arbiter. */
  readonly heard: SitesHeard;
  /** Step of epochs and births while the arbiter is not sure (A8): drawn for this process. */
  readonly leap: number;
  /** Step of the first position (A7): drawn for this process, and above JUMP_MIN (recollection.ts). */
  readonly jump: number;
  /** Highest position that this site's own disk of logs had as it started. */
  readonly siteWitness: number;
  /** Has this site's disk of logs hear of a position that is about to be answered; resolves when it has. */
  readonly witness: (position: number) => Promise<void>;
  /**
   * Notes that this disk went back (A9). `position` is this disk's; a witness of null: it is not known how far it went
   * back.
   */
  readonly behind: (
    by: { readonly position: number; readonly witness: number | null; readonly site: SiteId },
  ) => void;
}

/** Row as it is on disk. */
interface StoredRow extends RowState {
  /** Number of the ask that the epoch was granted to; 0: the session was born. */
  readonly grant: number;
  /** Time at which the session ended, by the wall clock; 0 while it lives. */
  readonly endedMs: number;
}

type NamedAsk = Exclude<ArbiterAsk, { kind: "births" }>;

/** Answer to an ask: to be asked again where it is no reply. */
export type ArbiterAnswer =
  | Reply
  /** The name is to be settled first (A9). */
  | { readonly kind: "unsettled"; readonly name: StatefulName };

interface Waiting {
  readonly keys: readonly Key[];
  readonly run: (table: Table) => ArbiterAnswer;
  readonly resolve: (answer: ArbiterAnswer) => void;
}

const ROWS = "a", BIRTHS = "b", COUNTS = "n", MARKS = "f";
const FLOOR_KEY = packKey([MARKS, "floor"]), POSITION_KEY = packKey([MARKS, "position"]);
const GAPS_KEY = packKey([MARKS, "gaps"]);
/** Key of the mark that the disk went back: rows before it are doubted (A9). */
const BEHIND_KEY = packKey([MARKS, "behind"]);
const SCAN_ROWS = 256;
/** Gap in the positions: those between the first and the second, both left out, are of no step (A7). */
type Gap = readonly [number, number];
/** Gaps that are kept: those of as many starts at which it was not known whether all was on the disk. The oldest go. */
const GAPS_MAX = 100;

/** Number of the ask that a row was granted to which sites have told of: no ask has this number. */
const SETTLED = 2 ** 50;

/** Arbiter (see the file's header). */
export class Arbiter {
  readonly #ports: ArbiterPorts;
  #waiting: Waiting[] = [];
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();
  /** True once it is closed (A6), or its disk has failed. */
  #isOver = false;
  /** Position of the newest row on the disk. */
  #row = 0;
  /** Number of steps, as on disk (A7). */
  #position = 0;
  #gaps: readonly Gap[] = [];
  /** True where gaps are on disk. */
  #hasGaps = false;
  /** True once this process has made a step. */
  #hasBegun = false;
  /** Number of rows that live, by app (A5). */
  readonly #living = new Map<string, number>();
  /** Position of the newest row that is doubted; null: none is (A9). */
  #doubted: number | null = null;
  /** True where this site's disk of logs went back, too. */
  #isSiteBehind = false;
  /** Highest position that a site has heard of, where it is above this disk's, and is not on disk yet. */
  #above = 0;

  private constructor(ports: ArbiterPorts) {
    this.#ports = ports;
  }

  static async open(ports: ArbiterPorts): Promise<Arbiter> {
    const arbiter = new Arbiter(ports);
    for (const space of [ROWS, BIRTHS, COUNTS, MARKS]) {
      for await (const row of scan(ports.storage, prefixRange(packKey([space])))) arbiter.#load(space, row);
    }
    return arbiter;
  }

  #load(space: string, { key, value, position }: Row): void {
    this.#row = Math.max(this.#row, position);
    if (space === ROWS && isLiving(value)) count(this.#living, sessionNameOf(key).app, 1);
    if (space !== MARKS || value === null) return;
    if (key === POSITION_KEY) this.#position = new Reader(value).uint();
    if (key === GAPS_KEY) this.#gaps = decodeGaps(value);
    this.#hasGaps = this.#gaps.length > 0;
    if (key === BEHIND_KEY) {
      this.#doubted = position;
      this.#isSiteBehind = new Reader(value).flag();
    }
  }

  /** Number of steps on this disk (A7). */
  get position(): number {
    return this.#position;
  }

  /** Reports whether a position is of no step on this disk, and may be of one that was on it before (A7). */
  isForeign(position: number): boolean {
    return position > this.#position || this.#gaps.some(([from, to]) => from < position && position < to);
  }

  /** Position that every site has heard of which has heard of each step but the last one, or of the one before it. */
  get least(): number {
    const [from, to] = this.#gaps.at(-1) ?? [0, 0];
    return (this.#position === to ? from : this.#position) - 1;
  }

  /** True where this disk went back, and what was on it is still compared with what sites know (A9). */
  get isBehind(): boolean {
    return this.#doubted !== null || this.#above > 0;
  }

  /** True where this site's own disk of logs went back with it: others have heard of positions that it has not. */
  get isSiteBehind(): boolean {
    return this.#isSiteBehind;
  }

  /** Takes the word of a site that has heard of a position (A9). */
  heard(site: SiteId, witness: number): void {
    if (!this.isForeign(witness) || witness <= this.#above) return;
    const position = this.#position;
    // In a gap: what is doubted since is doubted for the same reason.
    if (witness < position && this.isBehind) return;
    this.#isSiteBehind ||= site !== this.#ports.site && witness > this.#ports.siteWitness;
    this.#ports.behind({ position, witness, site });
    this.#goesOnFrom(Math.max(witness, position + 1));
  }

  /**
   * Notes that this disk went back, though nobody has said how far, and this site's own disk of logs with it (A9).
   * Positions go on from beyond a number that this process has drawn: steps that were answered before, and are not
   * here, have others (A7).
   */
  wentBack(site: SiteId): void {
    const position = this.#position;
    this.#isSiteBehind = true;
    this.#ports.behind({ position, witness: null, site });
    this.#goesOnFrom(Math.max(position, this.#above) + this.#ports.jump);
  }

  #goesOnFrom(above: number): void {
    this.#above = above;
    void this.#enqueue([], () => ({ kind: "nobody" }));
  }

  /** Answers an ask when that is on disk (A4); never once the disk has failed, or the arbiter is closed. */
  handle(from: SiteId, ask: ArbiterAsk): Promise<ArbiterAnswer> {
    return this.#enqueue(
      keysOf(from, ask),
      (table) =>
        ask.kind === "births"
          ? { kind: "births", number: table.births(from, ask.owners, this.#step) }
          : this.#named(table, from, ask),
    );
  }

  #enqueue(keys: readonly Key[], run: (table: Table) => ArbiterAnswer): Promise<ArbiterAnswer> {
    const { promise, resolve } = Promise.withResolvers<ArbiterAnswer>();
    this.#waiting.push({ keys, run, resolve });
    if (this.#isRunning || this.#isOver) return promise;
    this.#isRunning = true;
    this.#running = this.#run();
    return promise;
  }

  /** Closes the arbiter; resolves when the batch that was begun is answered. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  /** Returns rows, in the order of their names. */
  async rows(
    { app, after, limit }: { readonly app?: string; readonly after?: StatefulName; readonly limit: number },
  ): Promise<HomeRow[]> {
    const range = prefixRange(packKey(app === undefined ? [ROWS] : [ROWS, app]));
    const start = after === undefined ? range.start : keyAfter(keyOf(ROWS, after));
    const rows = await this.#ports.storage.scan({ start, end: range.end }, { limit });
    return rows.map(({ key, value }) => {
      const { grant: _, endedMs: __, ...row } = decodeRow(value ?? new Uint8Array());
      return { name: sessionNameOf(key), ...row };
    });
  }

  /** Drops rows of what ended long ago; what is made under their names later has a higher epoch (A1). */
  async sweep(): Promise<void> {
    const oldest = this.#ports.clock.nowMs() - (this.#ports.endedMs ?? ENDED_MS);
    const keys: Key[] = [];
    for await (const { key, value } of scan(this.#ports.storage, prefixRange(packKey([ROWS])))) {
      const row = decodeRow(value ?? new Uint8Array());
      if (row.ended && row.endedMs < oldest) keys.push(key);
    }
    for (const key of keys) {
      // In a batch, as all that changes rows: the row is read anew there.
      await this.#enqueue([key], (table) => {
        table.sweep(key, oldest);
        return { kind: "nobody" };
      });
    }
  }

  // ── What is known again (A9) ──

  /** Returns the row of a doubted name, as this disk has it; "settled" where it is not doubted. */
  async doubted(name: StatefulName): Promise<RowState | null | "settled"> {
    let found: RowState | null | "settled" = null;
    await this.#enqueue(keysOfName(name), (table) => {
      found = this.#isDoubted(table, name) ? table.row(name) : "settled";
      return { kind: "nobody" };
    });
    return found;
  }

  /** Puts on record what was found out of a name, unless it is not doubted any more. */
  async settle(name: StatefulName, found: RowState): Promise<void> {
    await this.#enqueue(keysOfName(name), (table) => {
      if (!this.#isDoubted(table, name)) return { kind: "nobody" };
      const endedMs = found.ended ? this.#ports.clock.nowMs() : 0;
      table.replace(name, { ...found, epoch: Math.max(found.epoch, 1), grant: SETTLED, endedMs });
      return { kind: "nobody" };
    });
  }

  /** Ends all doubts. @param epoch no name has a higher one. */
  async settledAll(epoch: number): Promise<void> {
    await this.#enqueue([], (table) => {
      if (this.#above > 0) return { kind: "nobody" }; // it went back further than was known
      table.raise(epoch);
      table.drop(BEHIND_KEY);
      this.#gaps = [];
      this.#isSiteBehind = false;
      return { kind: "nobody" };
    });
  }

  // ── Batches ──

  async #run(): Promise<void> {
    try {
      await this.#ports.clock.turn();
      while (this.#waiting.length > 0 && !this.#isOver) {
        const batch = this.#waiting;
        this.#waiting = [];
        await this.#answer(batch);
      }
      this.#isRunning = false;
    } catch (error) {
      this.#isOver = true;
      this.#ports.fatal(asError(error));
    }
  }

  async #answer(batch: readonly Waiting[]): Promise<void> {
    const above = this.#above;
    if (above > 0) await this.#commit(this.#behind(above));
    const wanted = [...new Set<Key>([FLOOR_KEY, ...batch.flatMap(({ keys }) => keys)])];
    const found = await this.#ports.storage.getMany(wanted);
    const table = new Table(wanted, found, this.#living);
    // A word that came while the disk was read counts: it is on the disk with the next batch, which these asks wait
    // for.
    if (this.#above > 0) {
      this.#waiting.unshift(...batch);
      return;
    }
    const answers = batch.map(({ run }) => run(table)), before = this.#position;
    if (table.changed.size > 0) await this.#commit(table);
    if (table.changed.size > 0 && this.#position === before) {
      throw new Error("an answer is about to leave before what it says is on disk (A4)");
    }
    batch.forEach(({ resolve }, i) => resolve(answers[i] ?? { kind: "nobody" }));
  }

  /** Returns the batch that notes that the disk went back (A9). */
  #behind(above: number): Table {
    const table = new Table([], [], this.#living);
    table.set(BEHIND_KEY, new Writer(8).flag(this.#isSiteBehind).done());
    this.#position = above;
    return table;
  }

  /** Commits a batch as one step (A7). */
  async #commit(table: Table): Promise<void> {
    const { storage, heard, jump, witness } = this.#ports;
    const isFirst = !this.#hasBegun && !heard.isSure, found = this.#position;
    const position = isFirst ? found + jump : found + 1;
    if (isFirst) this.#gaps = [...this.#gaps, [found, position] as const].slice(-GAPS_MAX);
    else if (heard.isSure && !this.isBehind) this.#gaps = [];
    table.set(POSITION_KEY, new Writer(8).uint(position).done());
    if (this.#gaps.length > 0) table.set(GAPS_KEY, encodeGaps(this.#gaps));
    else if (this.#hasGaps) table.drop(GAPS_KEY);
    const rows: Row[] = [], drop: Key[] = [];
    for (const [key, value] of table.changed) {
      if (value === null) drop.push(key);
      else rows.push(this.#rowOf(key, value));
      if (key === BEHIND_KEY) this.#doubted = value === null ? null : this.#row;
    }
    // This site's own disk of logs is another one, and that is on it, before it is on record that both went back.
    if (table.changed.has(BEHIND_KEY)) await witness(position);
    // A process that died may have left a step there that the disk of logs has not.
    else if (!this.#hasBegun) await witness(found); // arbitration.ts AB4
    const committed = storage.commit({ rows, drop, records: new Map() });
    // Where the disk of logs had the first step, and this one had not, it would seem to have gone back.
    if (isFirst) await committed;
    await Promise.all([committed, witness(position)]);
    this.#hasBegun = true;
    this.#hasGaps = this.#gaps.length > 0;
    this.#position = position;
    if (this.#above <= position) this.#above = 0;
  }

  #rowOf(key: Key, value: Uint8Array): Row {
    const position = ++this.#row;
    return { key, value, position, clock: 0, replica: 0, known: 0, expiresAtMs: 0 };
  }

  // ── Askings ──

  #named(table: Table, from: SiteId, ask: NamedAsk): ArbiterAnswer {
    const { name } = ask;
    if (this.#isDoubted(table, name)) return { kind: "unsettled", name };
    const row = table.row(name);
    const missed = missedFor(row, this.#ports.heard);
    if (missed.length > 0) return { kind: "waits", sites: missed };
    if (ask.kind === "look") return answer("granted", row);
    if (ask.kind === "acquire") return this.#acquire(table, from, ask, row);
    if (row === null || row.site !== from || row.epoch !== ask.epoch) return answer("refused", row);
    const next = changedRow(row, ask, this.#ports.clock.nowMs());
    if (next === null) return answer("refused", row);
    if (next !== row) table.put(name, next);
    return answer("granted", next);
  }

  /** Reports whether a name is doubted (A9). */
  #isDoubted(table: Table, name: StatefulName): boolean {
    return this.#doubted !== null && table.writtenAt(name) <= this.#doubted;
  }

  #acquire(table: Table, from: SiteId, ask: NamedAsk & { kind: "acquire" }, row: StoredRow | null): Reply {
    const { name, grant, version, seen } = ask;
    const epoch = this.#nextEpoch(table, row);
    // Owners that nobody has recorded yet are those of a birth: a count of 0 says so.
    const config = row === null || row.config === 0 ? 0 : row.config + 1;
    const fresh = { site: from, epoch, version, grant, ended: false, endedMs: 0, movesTo: "" };
    if (row === null || row.ended) {
      const max = this.#ports.perAppMax;
      if ((this.#living.get(name.app) ?? 0) >= max) return { kind: "full", max }; // A5
      return answer("granted", table.put(name, { ...fresh, config, owners: [] }));
    }
    if (row.grant === grant && row.site === from) return answer("granted", row); // A1
    const may = this.#mayTake(from, row, seen);
    if (may === "unsure") return answer("unsure", row);
    if (may === "here") return answer("refused", row);
    return answer("granted", table.put(name, { ...fresh, config, owners: row.owners }));
  }

  /** Returns the next epoch of a name (A1, A8). */
  #nextEpoch(table: Table, row: StoredRow | null): number {
    return Math.max(row?.epoch ?? 0, table.floor) + this.#step;
  }

  /** Step from one epoch, or number of births, to the next (A8). */
  get #step(): number {
    return this.#ports.heard.isSure && this.#doubted === null ? 1 : this.#ports.leap;
  }

  /** Reports whether a site may take a home over: "gone" where it may (A3). */
  #mayTake(from: SiteId, row: StoredRow, seen: number): "gone" | "here" | "unsure" {
    if (row.movesTo === from) return "gone";
    // The home that has agreed does not run the session any more.
    if (row.movesTo !== "") return this.#ports.gone(row.movesTo);
    if (row.site === from) return seen === row.epoch ? "gone" : "here";
    return this.#ports.gone(row.site);
  }
}

/** Rows of one batch: those of the disk, with their changes. */
class Table {
  readonly #rows = new Map<Key, Uint8Array>();
  /** Position of each row on the disk. */
  readonly #writtenAt = new Map<Key, number>();
  readonly changed = new Map<Key, Uint8Array | null>();
  readonly #living: Map<string, number>;

  /** @param living counts of rows that live, by app: kept as rows change. */
  constructor(keys: readonly Key[], found: readonly (Row | undefined)[], living: Map<string, number>) {
    this.#living = living;
    keys.forEach((key, i) => {
      const row = found[i];
      if (!row?.value) return;
      this.#rows.set(key, row.value);
      this.#writtenAt.set(key, row.position);
    });
  }

  get floor(): number {
    const value = this.#rows.get(FLOOR_KEY);
    return value === undefined ? 0 : new Reader(value).uint();
  }

  /** Raises the floor: no name that is not on record has had a later epoch than this (A1). */
  raise(floor: number): void {
    if (floor > this.floor) this.set(FLOOR_KEY, new Writer(8).uint(floor).done());
  }

  /** Returns the position at which a row was written; Infinity: with this batch; 0: there is none. */
  writtenAt(name: StatefulName): number {
    const key = keyOf(ROWS, name);
    return this.changed.has(key) ? Infinity : this.#writtenAt.get(key) ?? 0;
  }

  row(name: StatefulName): StoredRow | null {
    const value = this.#rows.get(keyOf(ROWS, name));
    if (value !== undefined) return decodeRow(value);
    const birth = birthOf(name.id);
    const owners = birth === null ? undefined : this.#rows.get(birthKey(birth.site, birth.number));
    if (birth === null || owners === undefined) return null;
    return {
      site: birth.site,
      epoch: 1,
      config: 0,
      owners: decodeOwners(owners),
      version: "",
      ended: false,
      movesTo: "",
      grant: 0,
      endedMs: 0,
    };
  }

  /** Puts a row on record that follows from the one that is there. */
  put(name: StatefulName, row: StoredRow): StoredRow {
    const before = this.row(name), least = before?.epoch ?? this.floor + 1;
    if (row.epoch < least) {
      throw new Error(`${shownName(name)} would have epoch ${row.epoch}, and had ${least} before (A1)`);
    }
    const isSameConfig = before?.epoch === row.epoch && before.config === row.config && !row.ended;
    if (isSameConfig && !sameOwners(before.owners, row.owners)) {
      throw new Error(`${shownName(name)} would have other owners in its configuration ${row.config} (A2)`);
    }
    return this.replace(name, row);
  }

  /** Puts a row on record, whatever is there. */
  replace(name: StatefulName, row: StoredRow): StoredRow {
    const key = keyOf(ROWS, name);
    count(this.#living, name.app, Number(!row.ended) - Number(isLiving(this.#rows.get(key))));
    this.set(key, encodeRow(row));
    return row;
  }

  /** Puts owners of births on record, and returns their number. @param step from the last number to this one (A8). */
  births(site: SiteId, owners: readonly Owner[], step: number): number {
    const counter = packKey([COUNTS, site]);
    const value = this.#rows.get(counter);
    const number = (value === undefined ? 0 : new Reader(value).uint()) + step;
    this.set(counter, new Writer(8).uint(number).done());
    this.set(birthKey(site, number), writeOwners(new Writer(64), owners).done());
    return number;
  }

  /** Drops a row that ended long ago (A1). */
  sweep(key: Key, oldest: number): void {
    const value = this.#rows.get(key);
    const row = value === undefined ? null : decodeRow(value);
    if (row === null || !row.ended || row.endedMs >= oldest) return;
    this.raise(row.epoch);
    this.drop(key);
  }

  set(key: Key, value: Uint8Array): void {
    this.#rows.set(key, value);
    this.changed.set(key, value);
  }

  drop(key: Key): void {
    this.#rows.delete(key);
    this.changed.set(key, null);
  }
}

/** Returns a row as its home changes it (A2); null where that is refused. */
function changedRow(row: StoredRow, ask: Exclude<NamedAsk, { kind: "look" | "acquire" }>, nowMs: number) {
  switch (ask.kind) {
    case "end":
      return row.ended ? row : { ...row, ended: true, owners: [], endedMs: nowMs, movesTo: "" };
    case "yield":
      return row.ended ? null : { ...row, movesTo: ask.to };
    case "configure": {
      if (row.ended) return null;
      const isDone = row.config === ask.config + 1 && sameOwners(row.owners, ask.owners);
      if (isDone) return row;
      return row.config === ask.config ? { ...row, config: row.config + 1, owners: ask.owners } : null;
    }
  }
}

export const sameOwners = (a: readonly Owner[], b: readonly Owner[]): boolean =>
  a.length === b.length && a.every(({ site, disk }, i) => b[i]?.site === site && b[i]?.disk === disk);

const answer = (outcome: "granted" | "refused" | "unsure", row: StoredRow | null): Reply => {
  if (row === null) return { kind: "row", outcome, row };
  const { site, epoch, config, owners, version, ended, movesTo } = row;
  return { kind: "row", outcome, row: { site, epoch, config, owners, version, ended, movesTo } };
};

const isLiving = (value: Uint8Array | null | undefined): boolean => value ? !decodeRow(value).ended : false;

function count(living: Map<string, number>, app: string, by: number): void {
  const now = (living.get(app) ?? 0) + by;
  if (now > 0) living.set(app, now);
  else living.delete(app);
}

const birthKey = (site: SiteId, number: number): Key => packKey([BIRTHS, site, number]);

/** Returns the keys that have to be read for an ask. */
const keysOf = (from: SiteId, ask: ArbiterAsk): Key[] =>
  ask.kind === "births" ? [packKey([COUNTS, from])] : keysOfName(ask.name);

function keysOfName(name: StatefulName): Key[] {
  const birth = birthOf(name.id), row = keyOf(ROWS, name);
  return birth === null ? [row] : [row, birthKey(birth.site, birth.number)];
}

async function* scan(storage: Storage, { start, end }: { start: Key; end: Key }): AsyncGenerator<Row> {
  for (;;) {
    const rows = await storage.scan({ start, end }, { limit: SCAN_ROWS });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < SCAN_ROWS) return;
    start = keyAfter(last.key);
  }
}

function encodeRow(row: StoredRow): Uint8Array {
  const w = new Writer(96).text(row.site).uint(row.epoch).uint(row.config);
  writeOwners(w, row.owners).text(row.version).flag(row.ended).text(row.movesTo);
  return w.uint(row.grant).uint(row.endedMs).done();
}

/** Reads a row. @throws CodecError */
function decodeRow(bytes: Uint8Array): StoredRow {
  const r = new Reader(bytes);
  const row = {
    site: r.text(),
    epoch: r.uint(),
    config: r.uint(),
    owners: readOwners(r),
    version: readVersion(r),
    ended: r.flag(),
    movesTo: r.text(),
    grant: r.uint(),
    endedMs: r.uint(),
  };
  r.end();
  if (row.epoch === 0) throw new CodecError("a row without an epoch");
  return row;
}

const encodeGaps = (gaps: readonly Gap[]): Uint8Array => {
  const w = new Writer(64);
  return w.list(gaps, ([from, to]) => w.uint(from).uint(to)).done();
};

function decodeGaps(bytes: Uint8Array): Gap[] {
  const r = new Reader(bytes);
  const gaps = r.list((): Gap => [r.uint(), r.uint()]);
  r.end();
  return gaps;
}

function decodeOwners(bytes: Uint8Array): Owner[] {
  const r = new Reader(bytes);
  const owners = readOwners(r);
  r.end();
  return owners;
}
