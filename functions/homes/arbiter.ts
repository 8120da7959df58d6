/**
 * The arbiter of homes, at the root: one row for each stateful session, changed only by compare-and-set.
 *
 * Life of a row: (birth: told by the id) → acquired → configured, … → acquired by another, … → ended → (a week later)
 * its epoch is in the floor, and the row is gone.
 *
 * A1  An epoch of a name is granted once, to one asking (`grant`) of one site; epochs of a name only rise, rows that
 *     were dropped included (the floor).
 * A2  Owners change only by the home of the row's epoch, from the configuration that it names.
 * A3  A home is taken from a site that is gone, that agrees, or that asks itself. While it is agreed that it moves, only
 *     the site that it moves to may, or anybody where that one is gone; its home may take its word back (`yield` to "").
 * A4  An answer leaves when what it says is on disk. One batch at a time: all asks that came while the one before was
 *     written.
 * A5  Of an app at most `perAppMax` rows live; what is on record already is opened and taken over beyond that, too.
 * A6  After `close` nothing is read, written or answered any more.
 */
import { CodecError, Reader, Writer } from "../../store/codec.ts";
import { type Key, packKey } from "../../store/key.ts";
import type { Clock, SiteId, Storage } from "../../store/ports.ts";
import { keyAfter, prefixRange } from "../../store/range.ts";
import type { Row } from "../../store/row.ts";
import type { HomeRow, Owner, StatefulName } from "./api.ts";
import type { ArbiterAsk, Reply, RowState } from "./asks.ts";
import { asError } from "./group_commit.ts";
import { ENDED_MS } from "./limits.ts";
import { birthOf, keyOf, nameOf } from "./name.ts";
import { readOwners, readVersion, writeOwners } from "./packet.ts";

export interface ArbiterPorts {
  readonly storage: Storage;
  readonly clock: Clock;
  /** Whether a site can be asked to serve what is at home there. */
  readonly gone: (site: SiteId) => "gone" | "here" | "unsure";
  readonly fatal: (error: Error) => void;
  /** Stateful sessions of one app (A5). */
  readonly perAppMax: number;
  /** For so long it is on record that a name has ended. */
  readonly endedMs?: number | undefined;
}

/** A row as it is on disk. */
interface StoredRow extends RowState {
  /** Of the asking that it was granted to; 0: it was born. */
  readonly grant: number;
  /** By the wall clock; 0 while it lives. */
  readonly endedMs: number;
}

type NamedAsk = Exclude<ArbiterAsk, { kind: "births" }>;

interface Waiting {
  readonly from: SiteId;
  readonly ask: ArbiterAsk;
  readonly resolve: (reply: Reply) => void;
}

const ROWS = "a", BIRTHS = "b", COUNTS = "n";
const FLOOR_KEY = packKey(["f", "floor"]);
const SCAN_ROWS = 256;

/** See the file's header. */
export class Arbiter {
  readonly #ports: ArbiterPorts;
  #waiting: Waiting[] = [];
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();
  /** A6, or its disk has failed. */
  #isOver = false;
  #position = 0;
  /** Rows that live, by app (A5). */
  readonly #living = new Map<string, number>();

  private constructor(ports: ArbiterPorts) {
    this.#ports = ports;
  }

  static async open(ports: ArbiterPorts): Promise<Arbiter> {
    const arbiter = new Arbiter(ports);
    for (const space of [ROWS, BIRTHS, COUNTS, "f"]) {
      for await (const row of scan(ports.storage, prefixRange(packKey([space])))) {
        arbiter.#position = Math.max(arbiter.#position, row.position);
        if (space === ROWS && isLiving(row.value)) count(arbiter.#living, nameOf(row.key).app, 1);
      }
    }
    return arbiter;
  }

  /** Answers when it is on disk (A4); not at all once the disk has failed, or it is closed. */
  handle(from: SiteId, ask: ArbiterAsk): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    this.#waiting.push({ from, ask, resolve });
    if (this.#isRunning || this.#isOver) return promise;
    this.#isRunning = true;
    this.#running = this.#run();
    return promise;
  }

  /** Resolves when the batch that was begun is answered. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  /** Rows by name. */
  async rows(
    { app, after, limit }: { readonly app?: string; readonly after?: StatefulName; readonly limit: number },
  ): Promise<HomeRow[]> {
    const range = prefixRange(packKey(app === undefined ? [ROWS] : [ROWS, app]));
    const start = after === undefined ? range.start : keyAfter(keyOf(ROWS, after));
    const rows = await this.#ports.storage.scan({ start, end: range.end }, { limit });
    return rows.map(({ key, value }) => {
      const { grant: _, endedMs: __, ...row } = decodeRow(value ?? new Uint8Array());
      return { name: nameOf(key), ...row };
    });
  }

  /** Drops rows of what ended long ago; what is made under their names later has a higher epoch (A1). */
  async sweep(): Promise<void> {
    const oldest = this.#ports.clock.nowMs() - (this.#ports.endedMs ?? ENDED_MS);
    const names: StatefulName[] = [];
    for await (const { key, value } of scan(this.#ports.storage, prefixRange(packKey([ROWS])))) {
      const row = decodeRow(value ?? new Uint8Array());
      if (row.ended && row.endedMs < oldest) names.push(nameOf(key));
    }
    for (const name of names) {
      // In a batch, as all that changes rows: the row is read anew there.
      this.#sweeping.set(keyOf(ROWS, name), oldest);
      await this.handle("", { kind: "look", name });
    }
  }

  /** Rows to be dropped with the next batch, where they ended before this. */
  readonly #sweeping = new Map<Key, number>();

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
    const keys = new Set<Key>([FLOOR_KEY]);
    for (const { from, ask } of batch) for (const key of keysOf(from, ask)) keys.add(key);
    const wanted = [...keys];
    const found = await this.#ports.storage.getMany(wanted);
    const table = new Table(wanted, found, this.#living);
    const replies = batch.map(({ from, ask }) =>
      ask.kind === "births" ? table.births(from, ask.owners) : this.#named(table, from, ask)
    );
    for (const [key, oldest] of this.#sweeping) table.sweep(key, oldest);
    this.#sweeping.clear();
    const rows: Row[] = [], drop: Key[] = [];
    for (const [key, value] of table.changed) {
      if (value === null) drop.push(key);
      else rows.push(this.#row(key, value));
    }
    if (table.changed.size > 0) {
      await this.#ports.storage.commit({ rows, drop, records: new Map() });
    }
    batch.forEach(({ resolve }, i) => resolve(replies[i] ?? { kind: "nobody" }));
  }

  #row(key: Key, value: Uint8Array): Row {
    const position = ++this.#position;
    return { key, value, position, clock: 0, replica: 0, known: 0, expiresAtMs: 0 };
  }

  #named(table: Table, from: SiteId, ask: NamedAsk): Reply {
    const row = table.row(ask.name);
    if (ask.kind === "look") return answer("granted", row);
    if (ask.kind === "acquire") return this.#acquire(table, from, ask, row);
    if (row === null || row.site !== from || row.epoch !== ask.epoch) return answer("refused", row);
    const next = changedRow(row, ask, this.#ports.clock.nowMs());
    if (next === null) return answer("refused", row);
    if (next !== row) table.put(ask.name, next);
    return answer("granted", next);
  }

  #acquire(table: Table, from: SiteId, ask: NamedAsk & { kind: "acquire" }, row: StoredRow | null): Reply {
    const { name, grant, version, seen } = ask;
    const epoch = Math.max(row?.epoch ?? 0, table.floor) + 1;
    const config = row === null ? 0 : row.config + 1;
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

  /** A3 */
  #mayTake(from: SiteId, row: StoredRow, seen: number): "gone" | "here" | "unsure" {
    if (row.movesTo === from) return "gone";
    // Who has agreed runs it no more.
    if (row.movesTo !== "") return this.#ports.gone(row.movesTo);
    if (row.site === from) return seen === row.epoch ? "gone" : "here";
    return this.#ports.gone(row.site);
  }
}

/** The rows of one batch: those of the disk, and what has become of them. */
class Table {
  readonly #rows = new Map<Key, Uint8Array>();
  readonly changed = new Map<Key, Uint8Array | null>();
  readonly #living: Map<string, number>;

  /** @param living counts of rows that live, by app: kept as rows change. */
  constructor(keys: readonly Key[], found: readonly (Row | undefined)[], living: Map<string, number>) {
    this.#living = living;
    keys.forEach((key, i) => {
      const value = found[i]?.value;
      if (value) this.#rows.set(key, value);
    });
  }

  get floor(): number {
    const value = this.#rows.get(FLOOR_KEY);
    return value === undefined ? 0 : new Reader(value).uint();
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

  put(name: StatefulName, row: StoredRow): StoredRow {
    const key = keyOf(ROWS, name);
    count(this.#living, name.app, Number(!row.ended) - Number(isLiving(this.#rows.get(key))));
    this.#set(key, encodeRow(row));
    return row;
  }

  /** Owners of what is born at a site from now on: the number to put into its ids. */
  births(site: SiteId, owners: readonly Owner[]): Reply {
    const counter = packKey([COUNTS, site]);
    const value = this.#rows.get(counter);
    const number = (value === undefined ? 0 : new Reader(value).uint()) + 1;
    this.#set(counter, new Writer(8).uint(number).done());
    this.#set(birthKey(site, number), writeOwners(new Writer(64), owners).done());
    return { kind: "births", number };
  }

  /** A1 */
  sweep(key: Key, oldest: number): void {
    const value = this.#rows.get(key);
    const row = value === undefined ? null : decodeRow(value);
    if (row === null || !row.ended || row.endedMs >= oldest) return;
    this.#set(FLOOR_KEY, new Writer(8).uint(Math.max(this.floor, row.epoch)).done());
    this.#rows.delete(key);
    this.changed.set(key, null);
  }

  #set(key: Key, value: Uint8Array): void {
    this.#rows.set(key, value);
    this.changed.set(key, value);
  }
}

/** What the home of a row makes of it (A2); null: not from here. */
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

/** What has to be read for an ask. */
function keysOf(from: SiteId, ask: ArbiterAsk): Key[] {
  if (ask.kind === "births") return [packKey([COUNTS, from])];
  const birth = birthOf(ask.name.id);
  const row = keyOf(ROWS, ask.name);
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

/** @throws CodecError */
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

function decodeOwners(bytes: Uint8Array): Owner[] {
  const r = new Reader(bytes);
  const owners = readOwners(r);
  r.end();
  return owners;
}
