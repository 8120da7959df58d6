/**
 * Outcomes of requests to origins, kept for stateful sessions that ask again because their home was lost before its log
 * had them: in memory, and on a disk where there is one.
 *
 * KO1  A request that is asked for again with the same key, while it runs or its outcome is kept, is not made again.
 * KO2  The outcome of a failed request is not kept: it is not known whether the origin did it, and the session that
 *      asks again wants it done.
 * KO3  Where there is a disk an outcome is on it before it leaves: the next process with that disk has it, too.
 */
import { GroupCommit } from "../../functions/sessions/log/group_commit.ts";
import type { CallOutcome } from "../../functions/sessions/turn/mod.ts";
import { Reader, Writer } from "../../store/model/codec.ts";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import type { Clock, Storage } from "../../store/model/ports.ts";
import { keyAfter, prefixRange } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";

/**
 * Milliseconds that an outcome is kept: a home that is lost is taken over long before, unless an operator is needed.
 */
const KEPT_MS = 10 * 60_000;
/** Bytes of all outcomes together: a sixteenth of what a small root's process has. */
const KEPT_BYTES_MAX = 64 << 20;
/** Bytes that an outcome costs beside its own. */
const OVERHEAD_BYTES = 300;

interface Kept {
  readonly outcome: Promise<CallOutcome>;
  /** Bytes that it counts for; 0 while the request runs. */
  bytes: number;
  atMs: number;
}

/** Disk of the outcomes. */
export interface OutcomeDisk {
  readonly storage: Storage;
  /** Wall clock: it goes on while the process is away. */
  readonly clock: Clock;
  readonly fatal: (error: Error) => void;
}

/** Rows of one scan: an outcome has up to 1 MiB. */
const ROWS_AT_ONCE = 16;
const SPACE = "o";

/** Outcomes of requests, by key. */
export class KeptOutcomes {
  readonly #kept = new Map<string, Kept>();
  readonly #nowMs: () => number;
  readonly #bytesMax: number;
  readonly #disk: Pick<GroupCommit, "put" | "drop" | "durable" | "close"> | null;
  #bytes = 0;

  constructor(
    nowMs: () => number,
    bytesMax = KEPT_BYTES_MAX,
    disk: Pick<GroupCommit, "put" | "drop" | "durable" | "close"> | null = null,
  ) {
    this.#nowMs = nowMs;
    this.#bytesMax = bytesMax;
    this.#disk = disk;
  }

  /** Reads the outcomes that an earlier process has kept (KO3). */
  static async open({ storage, clock, fatal }: OutcomeDisk): Promise<KeptOutcomes> {
    const found: Row[] = [];
    let { start, end } = prefixRange(packKey([SPACE]));
    for (;;) {
      const rows = await storage.scan({ start, end }, { limit: ROWS_AT_ONCE });
      const last = rows.at(-1);
      if (last === undefined) break;
      found.push(...rows);
      start = keyAfter(last.key);
    }
    found.sort((a, b) => a.position - b.position); // in the order in which they ended
    const disk = new GroupCommit({ storage, clock, fatal }, found.at(-1)?.position ?? 0);
    const outcomes = new KeptOutcomes(() => clock.nowMs(), KEPT_BYTES_MAX, disk);
    for (const { key, value } of found) outcomes.#found(key, value ?? new Uint8Array());
    outcomes.#makeRoom();
    return outcomes;
  }

  /** Number of kept outcomes, for tests and metrics. */
  get size(): number {
    return this.#kept.size;
  }

  /** Makes a request, or returns the outcome of an earlier one with its key (KO1). */
  once(key: string, make: () => Promise<CallOutcome>): Promise<CallOutcome> {
    const known = this.#kept.get(key);
    if (known !== undefined) return known.outcome;
    const outcome = make().then(
      (made) => made.ok ? this.#keep(key, kept, made) : this.#forget(key, made),
      (error) => {
        this.#kept.delete(key);
        throw error;
      },
    );
    const kept: Kept = { outcome, bytes: 0, atMs: 0 };
    this.#kept.set(key, kept);
    return outcome;
  }

  /** Resolves when all outcomes so far are on the disk; later ones are not kept, and nobody hears of them. */
  async close(): Promise<void> {
    await this.#disk?.close();
  }

  /** Drops a failed request (KO2). */
  #forget(key: string, failed: CallOutcome): CallOutcome {
    this.#kept.delete(key);
    return failed;
  }

  async #keep(key: string, kept: Kept, outcome: CallOutcome & { readonly ok: true }): Promise<CallOutcome> {
    kept.bytes = outcome.bytes.length + OVERHEAD_BYTES;
    kept.atMs = this.#nowMs();
    this.#bytes += kept.bytes;
    // In the order in which they ended: the oldest come first.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    this.#disk?.put(rowKey(key), new Writer(64).uint(kept.atMs).bytes(outcome.bytes).done());
    this.#makeRoom();
    try {
      await this.#disk?.durable(); // KO3
      return outcome;
    } catch (error) {
      return { ok: false, code: "disk_failed", message: `an origin's answer could not be kept: ${error}` };
    }
  }

  #makeRoom(): void {
    const beforeMs = this.#nowMs() - KEPT_MS;
    for (const [key, { bytes, atMs }] of this.#kept) {
      if (bytes === 0) continue;
      if (this.#bytes <= this.#bytesMax && atMs > beforeMs) break;
      this.#kept.delete(key);
      this.#bytes -= bytes;
      this.#disk?.drop(rowKey(key));
    }
  }

  #found(row: Key, value: Uint8Array): void {
    const reader = new Reader(value);
    const atMs = reader.uint(), bytes = reader.bytes();
    reader.end();
    const outcome = Promise.resolve({ ok: true as const, bytes });
    const kept = { outcome, bytes: bytes.length + OVERHEAD_BYTES, atMs };
    this.#kept.set(String(unpackKey(row)[1]), kept);
    this.#bytes += kept.bytes;
  }
}

const rowKey = (key: string): Key => packKey([SPACE, key]);
