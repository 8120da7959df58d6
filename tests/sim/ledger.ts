/**
 * All writes of a history, replayed in its order: what each one's past was, and what can explain an absence.
 *
 * L1  A write is known from its "write" event on, which comes before any site can show it; its version from its
 *     "wrote" event on, or from the first time that someone sees it.
 * L2  An absence is explained by a deletion that some disk has shown, or that the very process which is read from has
 *     taken in: nothing leaves a site before its disk has it. So a deletion whose process died with it, and whose
 *     version nobody was told, explains nothing until a disk shows it. One that was overtaken there before its turn came
 *     no disk shows: its process has it on disk when a newer row of the key is, and what rested on it may leave then.
 * L3  What expires explains an absence from its time on, by the clock of who looks; and where any clock has passed that
 *     time by the horizon it may have been collected.
 * L4  Where it is not known at which site something was done, it may have been at any.
 */
import { type HistoryEvent, NOWHERE, type Seen, type Stamp, type Written } from "./history.ts";
import { Past, type SumSet } from "./past.ts";

/** One write as far as the history has come. */
export interface WriteRecord {
  readonly write: number;
  readonly key: number;
  readonly what: Written["what"];
  readonly session: number;
  readonly request: number;
  readonly site: string;
  readonly past: Past;
  readonly expiresAtMs: number;
  stamp: Stamp | null;
  /** Its bit among the sum writes; 0n for others. */
  readonly bit: SumSet;
  state: "open" | "written" | "refused";
  /** The process that took it in still runs. */
  isHere: boolean;
  /** Some disk has shown it, or still does; or a newer row in its place (L2). */
  isDown: boolean;
}

/** What explains an absence: a version, where it is known, and whose write that is. */
export interface Explanation {
  readonly stamp: Stamp | null;
  readonly record: WriteRecord | undefined;
}

/** Where and when something is absent: at a process, by its clock; or on a disk. */
export interface Absence {
  readonly site: string | null;
  readonly clockMs: number | null;
}

/** The writes. */
export class Ledger {
  readonly writes = new Map<number, WriteRecord>();
  readonly #byKey: WriteRecord[][];
  readonly #sums: WriteRecord[] = [];
  /** By key: versions of deletions that some disk has shown. */
  readonly #tombs: Set<Stamp>[];
  /** By site: what its process has taken in. */
  readonly #here = new Map<string, WriteRecord[]>();
  /** By site and key: what of that its disk has neither shown nor gone beyond. */
  readonly #ahead = new Map<string, Map<number, Set<WriteRecord>>>();
  readonly #horizonMs: number;
  /** The greatest that any site's clock has shown. */
  #clockMs = 0;

  constructor(readonly keys: number, horizonMs = 0) {
    this.#byKey = Array.from({ length: keys }, () => []);
    this.#tombs = Array.from({ length: keys }, () => new Set());
    this.#horizonMs = horizonMs;
  }

  /** Disks, processes and clocks; writes have methods of their own. */
  step(event: HistoryEvent): void {
    if (event.kind === "commit" || event.kind === "reading" || event.kind === "read") {
      this.sawClock(event.clockMs ?? 0);
    }
    if (event.kind === "start" || event.kind === "lost") {
      for (const record of this.#here.get(event.site) ?? []) record.isHere = false;
      this.#here.delete(event.site);
      this.#ahead.delete(event.site);
    } else if (event.kind === "commit") {
      for (const row of event.rows) {
        this.#shown(row);
        this.#reached(event.site, row);
      }
      for (const { row } of event.wards ?? []) if (row !== null) this.#shown(row);
    }
  }

  /** Some site's clock has shown this. */
  sawClock(clockMs: number): void {
    this.#clockMs = Math.max(this.#clockMs, clockMs);
  }

  #shown(row: Seen): void {
    const records = row.sums?.map((write) => this.writes.get(write)) ?? [this.seen(row)];
    for (const record of records) if (record !== undefined) record.isDown = true;
    if (row.write === null && row.sums === undefined) this.#tombs[row.key]?.add(row.stamp);
  }

  #goesAhead(record: WriteRecord): void {
    const { site, key } = record, keys = this.#ahead.get(site) ?? new Map<number, Set<WriteRecord>>();
    this.#ahead.set(site, keys.set(key, (keys.get(key) ?? new Set()).add(record)));
  }

  /** L2: what a process has taken in before a row that its disk shows. */
  #reached(site: string, { key, stamp }: Seen): void {
    const ahead = this.#ahead.get(site)?.get(key);
    for (const record of ahead ?? []) {
      if (record.stamp === null || record.stamp > stamp) continue;
      ahead?.delete(record);
      record.isDown = true;
      if (record.what === "delete") this.#tombs[key]?.add(record.stamp);
    }
  }

  /** A write begins, with everything its session had seen. */
  begin(
    event: HistoryEvent & { kind: "write" },
    { session, site, past }: { readonly session: number; readonly site: string; readonly past: Past },
  ): void {
    for (const { write, key, what, expiresAtMs } of event.writes) {
      const bit = what === "sum" ? 1n << BigInt(this.#sums.length) : 0n;
      const record: WriteRecord = {
        write,
        key,
        what,
        session,
        request: event.request,
        site,
        past: past.copy(),
        expiresAtMs: expiresAtMs ?? 0,
        stamp: null,
        bit,
        state: "open",
        isHere: true,
        isDown: false,
      };
      this.writes.set(write, record);
      this.#byKey[key]?.push(record);
      this.#here.set(site, [...this.#here.get(site) ?? [], record]);
      if (what !== "sum") this.#goesAhead(record);
      if (what === "sum") this.#sums.push(record);
    }
  }

  /** Its versions are known; the rows of one write are each other's past (they become visible together). */
  end(event: HistoryEvent & { kind: "wrote" }): void {
    for (const { write } of event.writes) {
      const record = this.writes.get(write);
      if (record === undefined) continue;
      record.state = event.stamp === null ? "refused" : "written";
      record.stamp = event.stamp;
      if (event.stamp === null) continue;
      for (const other of event.writes) {
        const bit = this.writes.get(other.write)?.bit ?? 0n;
        if (other.what === "sum") record.past.noteSums("own", bit);
        else record.past.note("own", other.key, event.stamp);
      }
    }
  }

  /** The write that a row shows; learns its version when nobody was told it. */
  seen(row: Seen): WriteRecord | undefined {
    if (row.write === null) return undefined;
    const record = this.writes.get(row.write);
    if (record !== undefined && record.stamp === null && record.what !== "sum") record.stamp = row.stamp;
    return record;
  }

  sumBits(numbers: readonly number[]): SumSet {
    return numbers.reduce((all, write) => all | (this.writes.get(write)?.bit ?? 0n), 0n);
  }

  sumsOf(bits: SumSet): WriteRecord[] {
    return this.#sums.filter((record) => (record.bit & bits) !== 0n);
  }

  /** Sum writes to one key. */
  sumMask(key: number): SumSet {
    return (this.#byKey[key] ?? []).reduce((all, record) => all | record.bit, 0n);
  }

  /** What explains an absence where `least` must be visible: deletions and what has expired, at or above it (L2, L3). */
  explains(key: number, least: Stamp, absence: Absence): Explanation[] {
    const found: Explanation[] = [];
    for (const stamp of this.#tombs[key] ?? []) {
      if (stamp >= least) found.push({ stamp, record: this.deletionOf(key, stamp) });
    }
    for (const record of this.#byKey[key] ?? []) {
      const { what, stamp, state, isDown, isHere, site } = record;
      if (what !== "delete" && what !== "expiring" || state === "refused") continue;
      if (stamp !== null && stamp < least) continue;
      const isThere = isHere && (site === absence.site || site === NOWHERE || absence.site === NOWHERE); // L4
      if (what === "delete" && isThere && !(stamp !== null && this.#tombs[key]?.has(stamp))) {
        found.push({ stamp, record });
      }
      if (what === "expiring" && (isDown || isThere) && this.#hasExpired(record, absence.clockMs)) {
        found.push({ stamp, record });
      }
    }
    return found;
  }

  #hasExpired({ expiresAtMs }: WriteRecord, clockMs: number | null): boolean {
    return (clockMs !== null && clockMs >= expiresAtMs) || this.#clockMs > expiresAtMs + this.#horizonMs;
  }

  /** The deletion of a key that has a version. */
  deletionOf(key: number, stamp: Stamp): WriteRecord | undefined {
    return this.of(key).find((record) => record.what === "delete" && record.stamp === stamp);
  }

  /** All writes to a key. */
  of(key: number): readonly WriteRecord[] {
    return this.#byKey[key] ?? [];
  }
}
