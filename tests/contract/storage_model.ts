/**
 * Random histories of steps, reads and reopenings against a model that is a plain map: whatever the storage
 * does inside, it must answer as the map does.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { type Key, packKey } from "../../store/model/key.ts";
import type { Storage } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";
import { row, step, type StorageSubject } from "./storage_contract.ts";

/** Few keys, so that histories overwrite and drop; some are others' prefixes, some are long. */
const KEYS: readonly Key[] = [
  packKey([]),
  ...["a", "b", "a\u0000", "ü"].flatMap((name) => [
    packKey([name]),
    packKey([name, 1]),
    packKey([name, 2n]),
    packKey([name, "x".repeat(1990)]),
    packKey([name, "x".repeat(1990), "y".repeat(30)]),
  ]),
];
/** Around every size at which an engine may change its ways (pages, chunks). */
const SIZES = [0, 1, 100, 4_000, 4_096, 59_999, 61_440, 65_536, 65_537, 200_000];

type Action =
  | {
    kind: "commit";
    puts: { key: number; size: number | null }[];
    drop: number[];
    records: [number, number | null][];
  }
  | { kind: "scan"; from: number; to: number; limit: number | undefined; reverse: boolean }
  | { kind: "journal"; after: number; upTo: number; limit: number }
  | { kind: "reopen" };

const keyIndex = fc.nat(KEYS.length - 1);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("commit" as const),
      puts: fc.array(fc.record({ key: keyIndex, size: fc.option(fc.constantFrom(...SIZES)) }), {
        maxLength: 12,
      }),
      drop: fc.array(keyIndex, { maxLength: 3 }),
      records: fc.array(fc.tuple(fc.nat(4), fc.option(fc.nat(70_000))), { maxLength: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("scan" as const),
      from: keyIndex,
      to: keyIndex,
      limit: fc.option(fc.nat(9), { nil: undefined }),
      reverse: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("journal" as const),
      after: fc.nat(60),
      upTo: fc.nat(90),
      limit: fc.nat(9),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "reopen" as const }) },
);

/** The map that a storage must agree with. */
class Model {
  readonly rows = new Map<Key, Row>();
  readonly records = new Map<string, Uint8Array>();
  position = 0;

  /** Draws a step out of an action and applies it. */
  commit(drawn: Action & { kind: "commit" }) {
    const rows = drawn.puts.map(({ key, size }) => {
      const position = ++this.position;
      return row(keyAt(key), position, size === null ? null : new Uint8Array(size).fill(position));
    });
    const drop = drawn.drop.map(keyAt);
    const records = drawn.records.map(([name, size]): [string, Uint8Array | null] => [
      `record ${name}`,
      size === null ? null : new Uint8Array(size).fill(this.position),
    ]);
    for (const key of drop) this.rows.delete(key);
    for (const one of rows) this.rows.set(one.key, one);
    for (const [name, value] of records) {
      if (value === null) this.records.delete(name);
      else this.records.set(name, value);
    }
    return step(rows, drop, records);
  }

  scan({ start, end }: Range, limit: number, reverse: boolean): Row[] {
    const found = [...this.rows.values()].filter((r) => r.key >= start && r.key < end);
    found.sort((a, b) => (a.key < b.key ? -1 : 1) * (reverse ? -1 : 1));
    return found.slice(0, limit);
  }

  journal(after: number, upTo: number, limit: number): Row[] {
    const found = [...this.rows.values()].filter((r) => r.position > after && r.position <= upTo);
    return found.sort((a, b) => a.position - b.position).slice(0, limit);
  }

  bytes(): number {
    return [...this.rows.values()].reduce((sum, r) => sum + r.key.length + (r.value?.length ?? 0), 0);
  }
}

const keyAt = (index: number): Key => KEYS[index] ?? packKey([]);
const digest = (r: Row | undefined) =>
  r && [r.key, r.position, r.clock, r.value === null ? null : [r.value.length, r.value[0], r.value.at(-1)]];

/** The storage answers as the model does, in all its ways of being asked. */
async function agree(storage: Storage, model: Model): Promise<void> {
  const got = await storage.getMany(KEYS);
  assert.deepEqual(got.map(digest), KEYS.map((key) => digest(model.rows.get(key))));
  assert.equal(await storage.bytes(), model.bytes());
  const records = await storage.load();
  assert.deepEqual(
    [...records].map(([name, value]) => [name, value.length, value[0]]).sort(),
    [...model.records].map(([name, value]) => [name, value.length, value[0]]).sort(),
  );
}

/** Declares the property for one subject. */
export function storageModel(subject: StorageSubject): void {
  Deno.test(`storage: ${subject.name}: agrees with a map over random histories (denokv.ts K2)`, async () => {
    const property = fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 14 }), async (actions) => {
      const opened = await subject.open();
      const model = new Model();
      let storage = opened.storage;
      try {
        for (const one of actions) {
          if (one.kind === "commit") await storage.commit(model.commit(one));
          else if (one.kind === "reopen") storage = await opened.reopen?.(storage) ?? storage;
          else if (one.kind === "journal") {
            const { after, upTo, limit } = one;
            const got = await storage.journal(after, upTo, limit);
            assert.deepEqual(got.map(digest), model.journal(after, upTo, limit).map(digest));
          } else {
            const range = { start: keyAt(one.from), end: keyAt(one.to) };
            const { limit, reverse } = one;
            const got = await storage.scan(range, limit === undefined ? { reverse } : { limit, reverse });
            assert.deepEqual(got.map(digest), model.scan(range, limit ?? Infinity, reverse).map(digest));
          }
        }
        await agree(storage, model);
      } finally {
        await opened.discard();
      }
    });
    await fc.assert(property, { numRuns: Number(Deno.env.get("SOJOURN_STORAGE_RUNS") ?? 25) });
  });
}
