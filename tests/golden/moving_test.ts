/** Messages about sites that move, against docs/protocol/moving.md (tests/golden/moving.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import type { Key } from "../../store/model/key.ts";
import { decodeMessage, encodeMessage, type Message } from "../../store/wire/message.ts";
import { runPython, storedVectors } from "./python.ts";

const ids = z.array(z.string());
const Vectors = z.strictObject({
  hellos: z.array(z.strictObject({
    moved: z.strictObject({ floor: z.number(), from: z.string(), siblings: ids, lost: ids }),
    bytes: z.string(),
  })),
  gathers: z.array(z.strictObject({ id: z.number(), replica: z.number(), bytes: z.string() })),
  gathered: z.array(z.strictObject({
    id: z.number(),
    need: z.number(),
    clock: z.number(),
    parent: z.string(),
    parentReplica: z.number(),
    more: z.boolean(),
    rows: z.array(z.strictObject({
      key: z.string(),
      clock: z.number(),
      replica: z.number(),
      known: z.number(),
      expiresAtMs: z.number(),
      value: z.string().nullable(),
    })),
    bytes: z.string(),
  })),
});
const text = await storedVectors("moving.json");
const vectors = Vectors.parse(JSON.parse(text));

function isWritten(message: Message, bytes: string): void {
  assert.equal(Buffer.from(encodeMessage(message)).toString("hex"), bytes);
  assert.deepEqual(decodeMessage(Uint8Array.from(Buffer.from(bytes, "hex"))), message);
}

Deno.test("golden moving: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("moving.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden moving: hellos of sites that moved have the bytes that the document gives", () => {
  for (const { bytes, moved } of vectors.hellos) {
    isWritten({
      kind: "hello",
      attempt: 3,
      replica: 9,
      parentReplica: 4,
      cursor: 300,
      clock: 129171456000000,
      tier: "edge",
      url: "https://e.example",
      linkAddress: "tcp://10.0.0.2:7000",
      coverage: [],
      moved,
    }, bytes);
  }
});

Deno.test("golden moving: gathers and their answers have the bytes that the document gives", () => {
  for (const { bytes, ...gather } of vectors.gathers) isWritten({ kind: "gather", ...gather }, bytes);
  for (const { bytes, rows, ...gathered } of vectors.gathered) {
    const encoded = rows.map((row) => ({
      ...row,
      key: row.key as Key,
      value: row.value === null ? null : new TextEncoder().encode(row.value),
    }));
    isWritten({ kind: "gathered", ...gathered, rows: encoded }, bytes);
  }
});
