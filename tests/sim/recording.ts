/**
 * A storage that tells the history what is on its disk: each commit once it has resolved, and everything when a
 * process starts, since a crash may have kept the commit that was under way.
 *
 * Coverage is read from the records of the commit, as bytes on a disk: `cover/` and the start of a range in
 * base64 → since when, and its end (store/rows/coverage.ts V2). So is what the disk holds for other sites: `ward/`, the
 * incarnation, and a key in base64 → the row (store/wards/ward.ts). Which incarnation has owners is a system row
 * (store/members/configuration.ts). That a site is about to be away is a system row of its own (store/change/members.ts).
 */
import { Reader } from "../../store/model/codec.ts";
import type { Key } from "../../store/model/key.ts";
import type { DiskCommit, ScanOptions, SiteId, Storage } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import type { Position, Row } from "../../store/model/row.ts";
import { awayKey, decodeJson } from "../../store/members/topology.ts";
import { SOURCE_RECORD } from "../../store/wards/source.ts";
import { readWardRows } from "../../store/wire/ward_message.ts";
import type { Held, HistoryEvent, Ward } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import type { SimDisk } from "./disk.ts";
import type { ProcessClock } from "./world.ts";

const COVER = "cover/";
/** And the key of a row that was dropped, since it was damaged (store/core/damage.ts): whatever covers it. */
const DAMAGED = "damaged/";
const WARD = /^ward\/(\d+)\/(.+)$/;

/** Watches all rows on the disks of sites, those that are no keys of the history too. */
export interface DiskWatch {
  /** These are on the disk of a site: its own, or what it holds for others (a ward). */
  holds(site: SiteId, rows: readonly Row[], isOwn: boolean): void;
  /** The disk of a site is lost with all that was on it, or set aside. */
  lost(site: SiteId): void;
}

/** Where a process may be when it dies at its disk. */
export type DiskPoint = "commit begins" | "commit ends" | "read begins" | "read ends";

/** What a recording storage belongs to. */
export interface RecordingOptions {
  readonly site: SiteId;
  /** The root covers everything without a record. */
  readonly isRoot: boolean;
  readonly keyspace: Keyspace;
  readonly record: (event: HistoryEvent) => void;
  readonly nowMs: () => number;
  /** What the clock of the process shows. */
  readonly clockMs: () => number;
  /** Hears where the process yields to its disk, and where it goes on. */
  readonly passed: (point: DiskPoint) => void;
  readonly disks?: DiskWatch | undefined;
  /** Hears of each commit, when it is recorded. */
  readonly committed: () => void;
}

/** Storage whose process may stand still: it hears of its disk when it goes on. */
export function heardBy(storage: Storage, clock: ProcessClock): Storage {
  const heard = async <T>(promise: Promise<T>): Promise<T> => {
    const value = await promise;
    if (clock.isStanding) await new Promise<void>((resolve) => clock.whenRunning(resolve));
    return value;
  };
  return {
    load: () => heard(storage.load()),
    get: (key) => heard(storage.get(key)),
    getMany: (keys, bytesMax) => heard(storage.getMany(keys, bytesMax)),
    scan: (range, options) => heard(storage.scan(range, options)),
    journal: (after, upTo, limit, bytesMax) => heard(storage.journal(after, upTo, limit, bytesMax)),
    bytes: () => heard(storage.bytes()),
    close: () => storage.close(),
    commit: (commit) => heard(storage.commit(commit)),
  };
}

/** Storage over a simulated disk, observed. */
export class RecordingStorage implements Storage {
  readonly #disk: SimDisk;
  readonly #options: RecordingOptions;
  readonly #ranges = new Map<string, string>();
  readonly #damaged = new Set<string>();
  #covered = new Set<number>();
  /** What is on the disk, as of the last commit that resolved. */
  readonly rows = new Map<number, Held>();
  /** Whether a commit is under way. */
  isCommitting = false;

  constructor(disk: SimDisk, options: RecordingOptions) {
    this.#disk = disk;
    this.#options = options;
  }

  /** How many rows are on the disk, those of the system too. */
  get size(): number {
    return this.#disk.size;
  }

  get covered(): ReadonlySet<number> {
    return this.#covered;
  }

  /** Records all that the disk holds: call it before a process starts over it. */
  async start(blank: boolean): Promise<void> {
    const { site, nowMs, clockMs, record, keyspace, disks } = this.#options;
    record({ kind: "start", atMs: nowMs(), site, blank });
    const found = this.#disk.held();
    disks?.holds(site, found, true);
    const held = found.flatMap((row) => keyspace.seen(row) ?? []);
    const keys = new Set(held.map((row) => row.key));
    const gone = keyspace.keys.keys().filter((key) => !keys.has(key)).toArray();
    this.#covered.clear();
    const records = await this.#disk.load();
    const covers = this.#applyRecords(records);
    const none = keyspace.keys.keys().filter((key) => !this.#covered.has(key));
    for (const row of held) this.rows.set(row.key, row);
    record({
      kind: "commit",
      atMs: nowMs(),
      site,
      rows: held,
      gone,
      covers: [...covers, ...none.map((key) => [key, false] as const)],
      wards: this.#wards(records),
      owned: ownedOf(records),
      clockMs: clockMs(),
    });
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#read(() => this.#disk.load());
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(() => this.#disk.get(key));
  }

  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]> {
    return this.#read(() => this.#disk.getMany(keys, bytesMax));
  }

  scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    return this.#read(() => this.#disk.scan(range, options));
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]> {
    return this.#read(() => this.#disk.journal(after, upTo, limit, bytesMax));
  }

  bytes(): Promise<number> {
    return this.#read(() => this.#disk.bytes());
  }

  close(): Promise<void> {
    return this.#disk.close();
  }

  async commit(commit: DiskCommit): Promise<void> {
    const { keyspace, record, nowMs, clockMs, site, passed, disks } = this.#options;
    const own = disks === undefined ? [] : [...commit.rows];
    const rows = commit.rows.flatMap((row) => keyspace.seen(row) ?? []);
    const gone = commit.drop.flatMap((key) => keyspace.number(key) ?? []);
    const records = new Map(commit.records);
    const leaves = commit.rows.find((row) => row.key === awayKey(site) && row.value !== null);
    this.isCommitting = true;
    const done = this.#disk.commit(commit);
    // A process that dies here leaves a commit under way.
    passed("commit begins");
    await done;
    this.isCommitting = false;
    // Before a process may die here, with its disk.
    disks?.holds(site, own, true);
    const wards = this.#wards(records);
    passed("commit ends");
    for (const key of gone) this.rows.delete(key);
    for (const row of rows) this.rows.set(row.key, row);
    const covers = this.#applyRecords(records);
    const owned = ownedOf(records);
    if (rows.length + gone.length + covers.length + wards.length + owned.length > 0) {
      record({ kind: "commit", atMs: nowMs(), site, rows, gone, covers, wards, owned, clockMs: clockMs() });
    }
    if (leaves !== undefined) record({ kind: "leaves", atMs: nowMs(), site, behind: this.#behind(leaves) });
    this.#options.committed();
  }

  /** The keys of what stands behind a row in the journal. */
  #behind({ position }: Row): number[] {
    return this.#disk.held().flatMap((row) =>
      row.position > position ? this.#options.keyspace.number(row.key) ?? [] : []
    );
  }

  async #read<T>(look: () => Promise<T>): Promise<T> {
    const { passed } = this.#options;
    passed("read begins");
    const seen = await look();
    passed("read ends");
    return seen;
  }

  /** What changes of the rows that are held for others. */
  #wards(records: ReadonlyMap<string, Uint8Array | null>): Ward[] {
    const { keyspace, site, disks } = this.#options;
    return [...records].flatMap(([name, value]) => {
      const [, of = "", packed = ""] = WARD.exec(name) ?? [];
      if (packed === "") return [];
      const rows = value === null ? [] : readWardRows(new Reader(value));
      disks?.holds(site, rows, false);
      const key = keyspace.number(atob(packed));
      if (key === undefined) return [];
      return [{ of: Number(of), key, row: rows.map((row) => keyspace.seen(row) ?? null)[0] ?? null }];
    });
  }

  /** Takes in changes of coverage; says which keys that changed. */
  #applyRecords(records: ReadonlyMap<string, Uint8Array | null>): (readonly [number, boolean])[] {
    const { isRoot, keyspace } = this.#options;
    let changed = isRoot && this.#covered.size === 0;
    for (const [name, value] of records) {
      if (name.startsWith(DAMAGED)) {
        changed = true;
        const key = atob(name.slice(DAMAGED.length));
        if (value === null) this.#damaged.delete(key);
        else this.#damaged.add(key);
        continue;
      }
      if (!name.startsWith(COVER)) continue;
      changed = true;
      const start = atob(name.slice(COVER.length));
      if (value === null) this.#ranges.delete(start);
      else {
        const reader = new Reader(value);
        reader.uint();
        this.#ranges.set(start, reader.key());
      }
    }
    if (!changed) return [];
    const covered = new Set<number>();
    const ranges = [...this.#ranges];
    for (const [number, key] of keyspace.keys.entries()) {
      if (this.#damaged.has(key)) continue;
      if (isRoot || ranges.some(([start, end]) => key >= start && key < end)) covered.add(number);
    }
    const changes: (readonly [number, boolean])[] = [];
    for (const key of keyspace.keys.keys()) {
      if (covered.has(key) !== this.#covered.has(key)) changes.push([key, covered.has(key)]);
    }
    this.#covered = covered;
    return changes;
  }
}

/** The incarnation whose owners have all that it had told, as its own disk says; none: they may have nothing. */
function ownedOf(records: ReadonlyMap<string, Uint8Array | null>): number[] {
  const value = records.get(SOURCE_RECORD) ?? null;
  if (value === null) return [];
  const { replica, effective } = decodeJson(value) as { replica: number; effective: unknown };
  return effective === null ? [] : [replica];
}
