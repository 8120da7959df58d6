/**
 * What a site's disk can do: rows written by 1, 16 and 64 writers who share commits, reads by key, by range and
 * by journal, per engine; and what sealing and opening a session token costs.
 */
import { type Key, packKey } from "../../store/model/key.ts";
import type { Storage } from "../../store/model/ports.ts";
import { pointRange, prefixRange } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";
import { deriveKeyRing, openToken, sealToken } from "../../store/session/token.ts";
import { openDenoKv } from "../../runtime/storage/denokv.ts";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { openSqlite } from "../../runtime/storage/sqlite.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { type BenchRecord, record } from "./record.ts";

const WRITERS = [1, 16, 64];
const SCAN_ROWS = 100;

const ENGINES: readonly [string, (folder: string) => Promise<Storage>][] = [
  ["memory", () => Promise.resolve(new MemoryStorage())],
  ["sqlite", (folder) => Promise.resolve(openSqlite(folder))],
  ["denokv", (folder) => openDenoKv({ folder })],
];

interface Sizes {
  readonly rows: number;
  /** Commits per measurement: a commit costs a sync, whatever is in it. */
  readonly commitsMax: number;
  readonly valueBytes: number;
}

/** Rows a second for each case of one engine, a sample a run. */
class Samples {
  readonly #byCase = new Map<string, number[]>();

  add(name: string, perSecond: number): void {
    const samples = this.#byCase.get(name) ?? [];
    samples.push(perSecond);
    this.#byCase.set(name, samples);
  }

  records(unit: string): BenchRecord[] {
    return [...this.#byCase].map(([name, samples]) =>
      record({ bench: "storage", case: name, unit, samples })
    );
  }
}

/** One storage with rows in it, and a position that goes on. */
class Filled {
  #position = 0;
  readonly #keys: readonly Key[];
  readonly #value: Uint8Array;

  constructor(readonly storage: Storage, readonly sizes: Sizes) {
    const scatter = (i: number) => (i * 7_919) % sizes.rows; // neighbours in time are not neighbours by key
    this.#keys = Array.from(
      { length: sizes.rows },
      (_, i) => packKey(["a", "board", "t", "orders", scatter(i)]),
    );
    this.#value = crypto.getRandomValues(new Uint8Array(Math.min(sizes.valueBytes, 65_536)));
  }

  /** Writes rows in commits of so many; rows a second. */
  async write(perCommit: number, commits: number): Promise<number> {
    const began = performance.now();
    for (let n = 0; n < commits; n++) {
      const rows = Array.from({ length: perCommit }, () => this.#next());
      await this.storage.commit({
        rows,
        drop: [],
        records: new Map([["cursor", this.#value.subarray(0, 16)]]),
      });
    }
    return perSecond(perCommit * commits, began);
  }

  #next(): Row {
    const position = ++this.#position;
    const value = new Uint8Array(this.sizes.valueBytes);
    value.set(this.#value.subarray(0, Math.min(value.length, this.#value.length)));
    new DataView(value.buffer).setFloat64(0, position);
    const key = this.#keyAt(position);
    return { key, position, value, clock: position, replica: 1, known: 1, expiresAtMs: 0 };
  }

  #keyAt(i: number): Key {
    return this.#keys[i % this.#keys.length] ?? packKey([]);
  }

  async get(count: number): Promise<number> {
    const began = performance.now();
    for (let i = 0; i < count; i++) await this.storage.get(this.#keyAt(i * 31));
    return perSecond(count, began);
  }

  async getMany(count: number): Promise<number> {
    const began = performance.now();
    for (let i = 0; i < count; i += SCAN_ROWS) {
      await this.storage.getMany(Array.from({ length: SCAN_ROWS }, (_, j) => this.#keyAt((i + j) * 31)));
    }
    return perSecond(count, began);
  }

  async scan(count: number): Promise<number> {
    const { end } = prefixRange(packKey(["a", "board", "t", "orders"]));
    const began = performance.now();
    let found = 0;
    for (let i = 0; found < count; i++) {
      const { start } = pointRange(this.#keyAt(i * 31));
      found += Math.max(1, (await this.storage.scan({ start, end }, { limit: SCAN_ROWS })).length);
    }
    return perSecond(found, began);
  }

  async journal(count: number): Promise<number> {
    const began = performance.now();
    let found = 0;
    for (let after = this.#position - this.#keys.length; found < count;) {
      const rows = await this.storage.journal(after, this.#position, SCAN_ROWS);
      found += Math.max(1, rows.length);
      after = rows.at(-1)?.position ?? this.#position - this.#keys.length;
    }
    return perSecond(found, began);
  }
}

const perSecond = (count: number, beganMs: number): number => count / (performance.now() - beganMs) * 1000;

async function measure(name: string, storage: Storage, sizes: Sizes, samples: Samples): Promise<void> {
  const filled = new Filled(storage, sizes);
  const kb = `${sizes.valueBytes / 1000} KB`;
  await filled.write(Math.min(64, sizes.rows), Math.ceil(sizes.rows / 64));
  for (const writers of WRITERS) {
    const commits = Math.min(sizes.commitsMax, Math.ceil(sizes.rows / writers));
    samples.add(`${name}, ${kb}: write, ${writers} a commit`, await filled.write(writers, commits));
  }
  samples.add(`${name}, ${kb}: get`, await filled.get(sizes.rows));
  samples.add(`${name}, ${kb}: getMany of ${SCAN_ROWS}`, await filled.getMany(sizes.rows));
  samples.add(`${name}, ${kb}: scan of ${SCAN_ROWS}`, await filled.scan(sizes.rows));
  samples.add(`${name}, ${kb}: journal by ${SCAN_ROWS}`, await filled.journal(sizes.rows));
}

function tokens(runs: number, count: number): BenchRecord[] {
  const ring = deriveKeyRing([crypto.getRandomValues(new Uint8Array(32))]);
  const random = { bytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)) };
  const nowMs = Date.now();
  const session = random.bytes(16);
  const state = { session, sequence: 70, replica: 7, clock: 2 ** 47, path: [1e6, 2e6, 3e6], open: false };
  const samples = new Samples();
  for (let run = 0; run < runs; run++) {
    let text = "";
    let began = performance.now();
    for (let i = 0; i < count; i++) text = sealToken(state, ring, { nowMs, random });
    samples.add("token: seal", perSecond(count, began));
    began = performance.now();
    for (let i = 0; i < count; i++) openToken(text, ring, nowMs);
    samples.add("token: open", perSecond(count, began));
    const forged = text.slice(0, -4) + "AAAA";
    began = performance.now();
    for (let i = 0; i < count; i++) openToken(forged, ring, nowMs);
    samples.add("token: refuse a forged one", perSecond(count, began));
  }
  return samples.records("tokens/s");
}

/** See the file's header. */
export const bench: Bench = {
  name: "storage",
  summary: "rows and journal on disk, per engine; session tokens",
  notMeasured:
    "more than one storage on one disk; databases larger than memory; a disk that is busy otherwise",
  byDefault: true,
  run: async ({ quick, folder, say }: BenchContext): Promise<BenchRecord[]> => {
    const runs = quick ? 1 : 3;
    const small: Sizes = { rows: quick ? 1_000 : 20_000, commitsMax: quick ? 30 : 1_000, valueBytes: 1_000 };
    const large: Sizes = { rows: quick ? 20 : 400, commitsMax: quick ? 5 : 100, valueBytes: 100_000 };
    const samples = new Samples();
    for (let run = 0; run < runs; run++) {
      for (const [name, open] of run % 2 === 0 ? ENGINES : ENGINES.toReversed()) {
        for (const sizes of [small, large]) {
          const place = `${folder}/${name}-${sizes.valueBytes}-${run}`;
          const storage = await open(place);
          try {
            await measure(name, storage, sizes, samples);
          } finally {
            await storage.close();
          }
        }
        say(`run ${run + 1} of ${runs}: ${name}`);
      }
    }
    return [...samples.records("rows/s"), ...tokens(runs, quick ? 1_000 : 20_000)];
  },
};
