/**
 * A replica as in PathStore with SessionStore's tracking (sections V.A and V.B.2), for comparison only: rows by
 * query from the parent, writes up to the root in the background, the newest version wins, the queries of each
 * session remembered. Over links and disks in virtual time.
 *
 * T1  A read that no cached query subsumes is fetched from the parent, recursively, then cached.
 * T2  A write is on this site's disk when it resolves; the push daemon sends it on at once, one batch at a time.
 * T3  No pull daemon runs: the paper gives no period, and a switch that needs newer rows asks for them itself.
 */
import type { Key } from "../../../store/model/key.ts";
import { chunks } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { pointRange, type Range, WHOLE } from "../../../store/model/range.ts";
import { CLOCK_TICKS_PER_MS, compareVersions, type Row } from "../../../store/model/row.ts";
import { MemoryRows } from "../../../runtime/storage/memory.ts";
import type { World } from "../../sim/world.ts";
import type { VirtualLinks } from "./links.ts";
import { ACK_BYTES, queryBytes, rowsBytes } from "./messages.ts";
import { type Datum, intervalRead, Queries, type Query, rangesOf } from "./queries.ts";
import { COMMIT_MS } from "./topology.ts";

/** Where a site lives. */
export interface Around {
  readonly world: World;
  readonly links: VirtualLinks;
}

/** Rows of one message. */
const CHUNK_BYTES = 256 * 1024;
/** A clock of the year after the epoch of store/model/row.ts, so that versions take the bytes that they take today. */
const CLOCK_MS = 365 * 24 * 3_600_000;

/** One site of the baselines' tree. */
export class TreeSite {
  readonly id: SiteId;
  readonly around: Around;
  readonly #parent: TreeSite | null;
  readonly #rows = new MemoryRows();
  /** The query cache. */
  readonly queries: Queries;
  /** The command cache. */
  readonly #commands = new Map<string, Queries>();
  readonly #unpushed = new Map<Key, Row>();
  readonly #fetching = new Map<string, Promise<void>>();
  #pushing = false;
  #position = 0;
  #written = 0;

  constructor(id: SiteId, around: Around, parent: TreeSite | null, queries: readonly Range[] = []) {
    this.id = id;
    this.around = around;
    this.#parent = parent;
    this.queries = new Queries(parent === null ? [WHOLE] : queries);
  }

  /** The same rows and queries under the same parent, without sessions. */
  copy(): TreeSite {
    const copy = new TreeSite(this.id, this.around, this.#parent, this.queries.list());
    for (const row of this.all()) copy.#put(row);
    return copy;
  }

  get parent(): TreeSite | null {
    return this.#parent;
  }

  all(): Row[] {
    return this.#rows.scan(WHOLE);
  }

  get(key: Key): Row | undefined {
    return this.#rows.get(key);
  }

  /** Rows that match a query of somebody's command cache. */
  matching(range: Range): Row[] {
    return this.#rows.scan(range);
  }

  /** What a session did here, as queries. */
  commands(session: string): Range[] {
    return this.#commands.get(session)?.list() ?? [];
  }

  /** Rows that the parent does not have yet. */
  unpushed(): Row[] {
    return [...this.#unpushed.values()];
  }

  /** Rows as they are at the root from the beginning. */
  load(data: Iterable<Datum>): void {
    for (const { key, value } of data) this.#put(this.#versioned({ key, value }));
  }

  #put(row: Row): void {
    this.#rows.put({ ...row, position: ++this.#position });
  }

  #versioned({ key, value }: Datum): Row {
    const clock = Math.floor(CLOCK_MS + this.around.world.nowMs) * CLOCK_TICKS_PER_MS +
      this.#written++ % CLOCK_TICKS_PER_MS;
    const replica = REPLICAS.indexOf(this.id) + 1;
    return { key, value, clock, replica, known: 0, expiresAtMs: 0, position: 0 };
  }

  /** Installs rows, each where it is newer, with one commit. */
  async install(rows: readonly Row[]): Promise<Row[]> {
    const newer = rows.filter((row) => {
      const old = this.#rows.get(row.key);
      return old === undefined || compareVersions(row, old) > 0;
    });
    if (newer.length === 0) return [];
    for (const row of newer) this.#put(row);
    await this.around.world.sleep(COMMIT_MS);
    return newer;
  }

  // ── Reads ──

  async read(session: string, query: Query): Promise<Row[]> {
    const { rows, ranges } = await this.#execute(query);
    for (const range of ranges) this.#track(session, range);
    return rows;
  }

  #track(session: string, range: Range): void {
    const commands = this.#commands.get(session) ?? new Queries();
    this.#commands.set(session, commands);
    commands.add(range);
  }

  /** Takes over a session's commands. */
  adopt(session: string, ranges: readonly Range[]): void {
    for (const range of ranges) this.#track(session, range);
  }

  /** T1 */
  async #execute(query: Query): Promise<{ rows: Row[]; ranges: Range[] }> {
    const local = this.#look(query);
    const missing = local.ranges.filter((range) => !this.queries.covers(range));
    if (missing.length === 0) return local;
    if (query.kind === "list") await this.#fetch(query);
    else {await Promise.all(missing.map((range) =>
        this.#fetch({ kind: "list", range, limit: 0, reverse: false })
      ));}
    return this.#look(query);
  }

  #look(query: Query): { rows: Row[]; ranges: Range[] } {
    if (query.kind === "rows") {
      return { rows: query.keys.flatMap((key) => this.#rows.get(key) ?? []), ranges: rangesOf(query) };
    }
    const rows = this.#rows.scan(query.range, {
      ...query.limit === 0 ? {} : { limit: query.limit },
      reverse: query.reverse,
    });
    return { rows, ranges: [intervalRead(query, rows)] };
  }

  /** Concurrent misses of one query share one fetch. */
  #fetch(query: Query & { kind: "list" }): Promise<void> {
    const name = JSON.stringify([query.range, query.limit, query.reverse]);
    const known = this.#fetching.get(name);
    if (known !== undefined) return known;
    const fetching = this.#fetchNow(query).finally(() => this.#fetching.delete(name));
    this.#fetching.set(name, fetching);
    return fetching;
  }

  async #fetchNow(query: Query & { kind: "list" }): Promise<void> {
    const parent = this.#parent;
    if (parent === null) throw new Error("the root lacks a row of its own");
    await this.around.links.deliver(this.id, parent.id, queryBytes(query.range, query.limit));
    const { rows, ranges } = await parent.#execute(query);
    await this.takeFrom(parent.id, rows);
    for (const range of ranges) this.queries.add(range);
  }

  /** Rows come from another site, in as many messages as they take, and are installed. */
  async takeFrom(from: SiteId, rows: readonly Row[]): Promise<void> {
    const sent = [...chunks(rows, CHUNK_BYTES)].map((part) =>
      this.around.links.deliver(from, this.id, rowsBytes(part.rows))
    );
    await Promise.all(sent);
    await this.install(rows);
  }

  // ── Writes ──

  /** T2 */
  async write(session: string, data: readonly Datum[]): Promise<void> {
    const rows = data.map((datum) => this.#versioned(datum));
    for (const row of rows) this.#track(session, pointRange(row.key));
    await this.install(rows);
    this.#pushSoon(rows);
  }

  #pushSoon(rows: readonly Row[]): void {
    if (this.#parent === null) return;
    for (const row of rows) this.#unpushed.set(row.key, row);
    if (!this.#pushing) void this.#push(this.#parent);
  }

  async #push(parent: TreeSite): Promise<void> {
    this.#pushing = true;
    while (this.#unpushed.size > 0) {
      const rows = this.unpushed();
      await this.around.links.deliver(this.id, parent.id, rowsBytes(rows));
      parent.#pushSoon(await parent.install(rows));
      await this.around.links.deliver(parent.id, this.id, ACK_BYTES);
      for (const row of rows) if (this.#unpushed.get(row.key) === row) this.#unpushed.delete(row.key);
    }
    this.#pushing = false;
  }
}

const REPLICAS: readonly SiteId[] = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];
