/**
 * All writes of a history, replayed in its order: what each one's past was, and which deletions can explain an
 * absence. The sessions' and the sites' checkers read it side by side.
 *
 * L1  A write is known from its "write" event on, which comes before any site can show it; its version from its
 *     "wrote" event on, or from the first time that someone sees it.
 * L2  A write whose version never became known explains an absence if it is a deletion: the benefit of the doubt.
 */
import type { HistoryEvent, Seen, Stamp, Written } from "./history.ts";
import { Past, type SumSet } from "./past.ts";

/** One write as far as the history has come. */
export interface WriteRecord {
  readonly write: number;
  readonly key: number;
  readonly what: Written["what"];
  readonly session: number;
  readonly request: number;
  readonly past: Past;
  stamp: Stamp | null;
  /** Its bit among the sum writes; 0n for others. */
  readonly bit: SumSet;
  state: "open" | "written" | "refused";
}

/** The writes. */
export class Ledger {
  readonly writes = new Map<number, WriteRecord>();
  readonly #byKey: WriteRecord[][];
  readonly #sums: WriteRecord[] = [];

  constructor(readonly keys: number) {
    this.#byKey = Array.from({ length: keys }, () => []);
  }

  /** A write begins, with everything its session had seen. */
  begin(event: HistoryEvent & { kind: "write" }, session: number, past: Past): void {
    for (const { write, key, what } of event.writes) {
      const bit = what === "sum" ? 1n << BigInt(this.#sums.length) : 0n;
      const record: WriteRecord = {
        write,
        key,
        what,
        session,
        request: event.request,
        past: past.copy(),
        stamp: null,
        bit,
        state: "open",
      };
      this.writes.set(write, record);
      this.#byKey[key]?.push(record);
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

  /**
   * Deletions of a key that explain an absence where `least` must be visible: those at or above it, and those
   * whose version nobody knows. What expires explains an absence at any time (no clock is checked).
   */
  deletions(key: number, least: Stamp): WriteRecord[] {
    return (this.#byKey[key] ?? []).filter((record) =>
      (record.what === "delete" || record.what === "expiring") && record.state !== "refused" &&
      (record.stamp === null || record.stamp >= least)
    );
  }

  /** All writes to a key. */
  of(key: number): readonly WriteRecord[] {
    return this.#byKey[key] ?? [];
  }
}
