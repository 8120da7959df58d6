/** Versions, journals and the root engine's records against docs/protocol/journal.md (tests/golden/journal.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { z } from "zod";
import { keyFromBytes } from "../../store/model/key.ts";
import { WHOLE } from "../../store/model/range.ts";
import {
  CLOCK_EPOCH_MS,
  CLOCK_TICKS_PER_MS,
  parseVersionstamp,
  versionstamp,
} from "../../store/model/row.ts";
import { decodeRedo, encodeRedo } from "../../runtime/storage/denokv_batch.ts";
import { rowSum } from "../../runtime/storage/checksum.ts";
import {
  decodeFormerRow,
  decodeRow,
  encodeRow,
  type KvPart,
  rowKey,
} from "../../runtime/storage/denokv_layout.ts";
import { row } from "../contract/storage_contract.ts";
import { storageSubjects } from "../contract/storage_subjects.ts";
import { runPython, storedVectors } from "./python.ts";

const Size = z.number().nullable();
const Step = z.strictObject({
  rows: z.array(z.strictObject({ key: z.string(), position: z.number(), size: Size })),
  drop: z.array(z.string()),
  records: z.record(z.string(), Size),
  after: z.strictObject({
    journal: z.array(z.number()),
    byKey: z.array(z.number()),
    bytes: z.number(),
    records: z.record(z.string(), z.number()),
  }),
});
const Fields = z.strictObject({
  key: z.string(),
  position: z.number(),
  clock: z.number(),
  replica: z.number(),
  known: z.number(),
  expiresAtMs: z.number(),
});
const RowRecord = z.strictObject({
  row: Fields,
  size: Size,
  value: z.string().nullable(),
  parts: z.array(z.string()),
  pieces: z.number(),
  record: z.string().optional(),
  recordBytes: z.number().optional(),
  recordSha256: z.string().optional(),
  /** With its sums: what is written now; without them is the format before. */
  sealed: z.string().optional(),
  sealedBytes: z.number().optional(),
  sealedSha256: z.string().optional(),
});
const Part = z.union([z.string(), z.number(), z.strictObject({ bytes: z.string() })]);
const Vectors = z.strictObject({
  versions: z.array(z.strictObject({
    ms: z.number(),
    logical: z.number(),
    replica: z.number(),
    clock: z.number(),
    versionstamp: z.string(),
  })),
  history: z.array(Step),
  rowSums: z.array(z.strictObject({ row: Fields, value: z.string().nullable(), sum: z.number() })),
  rowRecords: z.array(RowRecord),
  redo: z.strictObject({
    mutations: z.array(z.strictObject({ key: z.array(Part), size: Size, value: z.string().nullable() })),
    pieces: z.array(z.strictObject({ bytes: z.number(), sha256: z.string() })),
  }),
});

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));
const keyOf = (hex: string) => keyFromBytes(bytes(hex));
const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");
const valueOf = (hex: string | null, size: number | null) =>
  size === null ? null : hex === null ? new Uint8Array(size) : bytes(hex);
const partOf = (part: z.infer<typeof Part>): KvPart => typeof part === "object" ? bytes(part.bytes) : part;

const vectors = Vectors.parse(JSON.parse(await storedVectors("journal.json")));

Deno.test("golden journal: clocks and versionstamps", () => {
  for (const { ms, logical, replica, clock, versionstamp: text } of vectors.versions) {
    assert.equal((ms - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS + logical, clock);
    assert.equal(versionstamp({ clock, replica }), text);
    assert.deepEqual(parseVersionstamp(text), { clock, replica });
  }
});

for (const subject of storageSubjects) {
  Deno.test(`golden journal: ${subject.name} holds what the definition says, step by step`, async () => {
    const { storage, discard } = await subject.open();
    try {
      for (const { rows, drop, records, after } of vectors.history) {
        await storage.commit({
          rows: rows.map(({ key, position, size }) => row(keyOf(key), position, valueOf(null, size))),
          drop: drop.map(keyOf),
          records: new Map(Object.entries(records).map(([name, size]) => [name, valueOf(null, size)])),
        });
        const journal = await storage.journal(0, Infinity, Infinity);
        assert.deepEqual(journal.map((one) => one.position), after.journal);
        assert.deepEqual((await storage.scan(WHOLE)).map((one) => one.position), after.byKey);
        assert.equal(await storage.bytes(), after.bytes);
        const sizes = [...await storage.load()].map(([name, value]) => [name, value.length]);
        assert.deepEqual(Object.fromEntries(sizes), after.records);
      }
    } finally {
      await discard();
    }
  });
}

Deno.test("golden journal: the records of rows in Deno KV", () => {
  for (
    const { row: fields, size, value, parts, pieces, record, sealed, sealedBytes, sealedSha256 } of vectors
      .rowRecords
  ) {
    const whole = { ...fields, key: keyOf(fields.key), value: valueOf(value, size) };
    const encoded = encodeRow(whole);
    if (sealed !== undefined) assert.equal(Buffer.from(encoded).toString("hex"), sealed);
    else assert.deepEqual([encoded.length, sha256(encoded)], [sealedBytes, sealedSha256]);
    const [space, ...rest] = rowKey(whole.key);
    assert.equal(space, "r");
    assert.deepEqual(
      rest.map((part) => Buffer.from(z.instanceof(Uint8Array).parse(part)).toString("hex")),
      parts,
    );
    const [first = "", hash] = parts;
    const read = decodeRow(encoded, bytes(first), hash === undefined ? undefined : bytes(hash));
    assert.ok("row" in read, "it is as it was written");
    const former = record === undefined ? null : decodeFormerRow(bytes(record), bytes(first));
    for (const decoded of former === null ? [read] : [read, former]) {
      assert.deepEqual(decoded.head, { position: fields.position, valueBytes: size ?? 0, pieces });
      const { value: wholeValue, ...others } = whole;
      assert.deepEqual(decoded.row, others);
      assert.deepEqual(
        decoded.value && [...decoded.value],
        pieces > 0 ? undefined : wholeValue && [...wholeValue],
      );
    }
    const changed = encoded.with(encoded.length - 5, (encoded.at(-5) ?? 0) ^ 1);
    assert.ok("damaged" in decodeRow(changed, bytes(first), hash === undefined ? undefined : bytes(hash)));
    assert.ok("damaged" in decodeRow(encoded, bytes("026200"), undefined), "under another key");
  }
});

Deno.test("golden journal: the sums of rows in SQLite", () => {
  for (const { row: fields, value, sum } of vectors.rowSums) {
    const whole = { ...fields, key: keyOf(fields.key), value: value === null ? null : bytes(value) };
    assert.equal(rowSum(bytes(fields.key), whole), sum);
  }
});

Deno.test("golden journal: the redo log of a large step", () => {
  const mutations = vectors.redo.mutations.map(({ key, size, value }) => ({
    key: key.map(partOf),
    value: valueOf(value, size),
  }));
  const pieces = encodeRedo(mutations);
  assert.deepEqual(pieces.map((one) => ({ bytes: one.length, sha256: sha256(one) })), vectors.redo.pieces);
  assert.deepEqual(decodeRedo(pieces), mutations);
});

Deno.test("golden journal: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("journal.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(Vectors.parse(JSON.parse(made)), vectors);
});
