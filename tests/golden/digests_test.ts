/** Digests and what is said of them, against docs/protocol/digests.md (tests/golden/digests.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { digestOf } from "../../store/model/digest.ts";
import type { Key } from "../../store/model/key.ts";
import { decodeMessage, encodeMessage, type Message } from "../../store/wire/message.ts";
import { runPython, storedVectors } from "./python.ts";

const question = { id: z.number(), start: z.string(), end: z.string(), bytes: z.string() };
const Vectors = z.strictObject({
  digests: z.array(z.strictObject({
    rows: z.array(z.strictObject({
      key: z.string(),
      clock: z.number(),
      replica: z.number(),
      value: z.string().nullable(),
    })),
    digest: z.string(),
  })),
  compares: z.array(z.strictObject({ ...question, digest: z.string(), trace: z.string() })),
  compared: z.array(z.strictObject({
    ...question,
    parts: z.array(z.strictObject({ end: z.string(), digest: z.string() })),
  })),
});
const text = await storedVectors("digests.json");
const vectors = Vectors.parse(JSON.parse(text));

const bytesOf = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(hex, "hex"));
const rangeOf = (start: string, end: string) => ({ start: start as Key, end: end as Key });

function isWritten(message: Message, bytes: string): void {
  assert.equal(Buffer.from(encodeMessage(message)).toString("hex"), bytes);
  assert.deepEqual(decodeMessage(bytesOf(bytes)), message);
}

Deno.test("golden digests: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("digests.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden digests: rows have the digests that the document gives", () => {
  for (const { rows, digest } of vectors.digests) {
    const stored = rows.map(({ key, value, ...version }) => ({
      ...version,
      key: key as Key,
      value: value === null ? null : bytesOf(value),
    }));
    assert.equal(Buffer.from(digestOf(stored)).toString("hex"), digest);
  }
});

Deno.test("golden digests: comparisons have the bytes that the document gives", () => {
  for (const { id, start, end, digest, trace, bytes } of vectors.compares) {
    isWritten({ kind: "compare", id, range: rangeOf(start, end), digest: bytesOf(digest), trace }, bytes);
  }
  for (const { id, start, end, parts, bytes } of vectors.compared) {
    const told = parts.map((part) => ({ end: part.end as Key, digest: bytesOf(part.digest) }));
    isWritten({ kind: "compared", id, range: rangeOf(start, end), parts: told }, bytes);
  }
});
