/**
 * What is on which disk, and what was lost with disks. Effects of what is lost may outlive it: a site below may have got
 * a row from the lost disk, and not the row that it depends on.
 *
 * S1  A write is lost with a disk that held it when no other disk does, among its rows or among those that it holds
 *     for others (owners), nor anything newer; and never once the root has had it: the root loses no disk.
 * S2  What is lost may come back: a message was on its way. For a site that shows it from then on, and for everybody
 *     in the end, it is not lost any more.
 */
import type { Held, History, HistoryEvent, Stamp } from "./history.ts";
import type { Ledger, WriteRecord } from "./ledger.ts";
import type { SumSet } from "./past.ts";

/** A disk. */
interface Disk {
  readonly rows: Map<number, Held>;
  /** Of deletions that it has shown and forgotten since, by key, their versions: the root has them. */
  readonly forgotten: Map<number, Stamp>;
  /** By incarnation and key: what it holds for others. */
  readonly wards: Map<string, Held>;
}

/** Follows the disks of a history. */
export class Losses {
  /** Lost, and not shown by any disk since; with whose disk, and when. */
  readonly gone = new Map<WriteRecord, { readonly site: string; readonly atMs: number }>();
  readonly #ledger: Ledger;
  readonly #root: string;
  readonly #disks = new Map<string, Disk>();
  /** By key: the newest version that the root has ever had; and all sum writes that it has. */
  readonly #atRoot: Stamp[];
  readonly #sumsAtRoot = new Set<number>();
  /** By site: when its disk was lost last. */
  readonly #lostMs = new Map<string, number>();
  /** Lost and back: the sites that have shown it since. */
  readonly #back = new Map<WriteRecord, Set<string>>();

  constructor(ledger: Ledger, history: History) {
    this.#ledger = ledger;
    this.#root = history.root;
    this.#atRoot = Array.from({ length: history.keys }, () => "");
  }

  /** Takes in commits and lost disks; call it after the ledger has taken the event in. */
  step(event: HistoryEvent): void {
    // What its disk holds for others is told anew.
    if (event.kind === "start") this.#disks.get(event.site)?.wards.clear();
    else if (event.kind === "commit") this.#commit(event);
    else if (event.kind === "emptied") this.#disks.delete(event.site);
    else if (event.kind === "lost") {
      // An older copy that is set aside goes with the disk that it was made of (lives.ts, V4).
      if (event.isAside !== true) this.#lostMs.set(event.site, event.atMs);
      this.#lose(event.site, this.#lostMs.get(event.site) ?? event.atMs);
    }
  }

  /** The rows on a site's disk. */
  rows(site: string): ReadonlyMap<number, Held> {
    return this.#disks.get(site)?.rows ?? NOTHING;
  }

  /** What a key's absence on a site's disk stands for at least, where that has forgotten the deletion of what it holds. */
  forgotten(site: string): ReadonlyMap<number, Stamp> {
    return this.#disks.get(site)?.forgotten ?? NONE;
  }

  /** Whether the root has, or has had, a write or something newer. */
  hasReachedRoot(record: WriteRecord): boolean {
    if (record.what === "sum") return this.#sumsAtRoot.has(record.write);
    return record.stamp !== null && this.isAtRoot(record.key, record.stamp);
  }

  /** The same of a version. */
  isAtRoot(key: number, stamp: Stamp): boolean {
    return (this.#atRoot[key] ?? "") >= stamp;
  }

  /** The sites whose disks have a write, or something newer. */
  holders(record: What): string[] {
    return [...this.#disks].flatMap(([site, disk]) => holds(disk, record) ? [site] : []);
  }

  /** Whether a version of a key that something depends on need not show at a site, since it went with a disk (S2). */
  isLost(key: number, stamp: Stamp, site: string, isFinal: boolean): boolean {
    if (this.gone.size + this.#back.size === 0) return false;
    return this.#ledger.of(key).some((record) =>
      record.stamp === stamp && this.#isLost(record, site, isFinal)
    );
  }

  /** The same of sum writes. */
  lostSums(site: string, isFinal: boolean): SumSet {
    let bits = 0n;
    for (const record of this.gone.keys()) bits |= record.bit;
    for (const record of this.#back.keys()) if (this.#isLost(record, site, isFinal)) bits |= record.bit;
    return bits;
  }

  #isLost(record: WriteRecord, site: string, isFinal: boolean): boolean {
    if (this.gone.has(record)) return true;
    const shown = this.#back.get(record);
    return shown !== undefined && !isFinal && !shown.has(site);
  }

  #commit(event: HistoryEvent & { kind: "commit" }): void {
    const { rows, forgotten, wards } = this.#disk(event.site);
    for (const key of event.gone) {
      const row = rows.get(key);
      if (row?.write === null && this.isAtRoot(key, row.stamp)) forgotten.set(key, row.stamp);
      rows.delete(key);
    }
    // What it does not hold any more comes as the site above has it.
    for (const [key, isCovered] of event.covers) if (!isCovered) forgotten.delete(key);
    for (const row of event.rows) {
      rows.set(row.key, row);
      this.#shown(row, event.site);
      if (event.site !== this.#root) continue;
      if (row.stamp > (this.#atRoot[row.key] ?? "")) this.#atRoot[row.key] = row.stamp;
      for (const write of row.sums ?? []) this.#sumsAtRoot.add(write);
    }
    for (const { of, key, row } of event.wards ?? []) {
      if (row === null) wards.delete(`${of} ${key}`);
      else {
        wards.set(`${of} ${key}`, row);
        this.#shown(row, null);
      }
    }
  }

  /** What was lost is back, and shown by a site, where it is among its own rows. */
  #shown(row: Held, site: string | null): void {
    if (this.gone.size + this.#back.size === 0) return;
    for (const record of this.gone.keys()) {
      if (!isIn(row, record)) continue;
      this.gone.delete(record);
      this.#back.set(record, new Set());
    }
    if (site === null) return;
    for (const [record, sites] of this.#back) if (isIn(row, record)) sites.add(site);
  }

  #disk(site: string): Disk {
    let disk = this.#disks.get(site);
    if (disk === undefined) {
      this.#disks.set(site, disk = { rows: new Map(), forgotten: new Map(), wards: new Map() });
    }
    return disk;
  }

  #lose(site: string, atMs: number): void {
    const disk = this.#disks.get(site);
    this.#disks.delete(site);
    for (const sites of this.#back.values()) sites.delete(site);
    if (disk === undefined) return;
    for (const record of this.#ledger.writes.values()) {
      if (!holds(disk, record) || this.hasReachedRoot(record)) continue;
      if (this.holders(record).length > 0) continue;
      this.gone.set(record, { site, atMs });
      this.#back.delete(record);
    }
  }
}

const NOTHING: ReadonlyMap<number, Held> = new Map();
const NONE: ReadonlyMap<number, Stamp> = new Map();

/** What a disk may have of a key: a version, or a sum write. */
type What = Pick<WriteRecord, "key" | "what" | "stamp" | "write">;

function holds({ rows, wards }: Disk, record: What): boolean {
  if (shows(rows.get(record.key), record)) return true;
  return wards.values().some((row) => isIn(row, record));
}

const isIn = (row: Held, record: What): boolean => row.key === record.key && shows(row, record);

/** Whether a row includes a write or supersedes it. */
export function shows(row: Held | undefined, record: What): boolean {
  if (record.what === "sum") return row?.sums?.includes(record.write) ?? false;
  return row !== undefined && record.stamp !== null && row.stamp >= record.stamp;
}
