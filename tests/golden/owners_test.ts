/** Messages of owners groups against docs/protocol/owners.md (tests/golden/owners.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { decodeMessage, encodeMessage } from "../../store/wire/message.ts";
import { decodeTuplePacket, encodeTuplePacket } from "../../store/owners/packet.ts";
import { runPython, storedVectors } from "./python.ts";

const Entry = z.strictObject({
  id: z.string(),
  version: z.number(),
  owners: z.array(z.string()),
  mark: z.strictObject({ dueMs: z.number(), note: z.string() }).nullable(),
  isUnsure: z.boolean(),
  goneUntilS: z.number(),
  content: z.strictObject({
    topic: z.string(),
    f: z.number(),
    rememberUntilS: z.number(),
    payload: z.string(),
  }).nullable(),
});
const Packet = z.strictObject({
  boot: z.number(),
  to: z.number(),
  seq: z.number(),
  greeting: z.number(),
  list: z.number(),
  part: z.number(),
  isListEnd: z.boolean(),
  receipts: z.array(z.strictObject({ seq: z.number(), full: z.boolean() })),
  missing: z.array(z.string()),
  entries: z.array(Entry),
  forget: z.array(z.string()),
});
const Vectors = z.strictObject({
  packets: z.array(z.strictObject({ packet: Packet, bytes: z.string() })),
  beats: z.array(z.strictObject({ stamp: z.number(), isAnswer: z.boolean(), bytes: z.string() })),
});
const text = await storedVectors("owners.json");
const vectors = Vectors.parse(JSON.parse(text));

Deno.test("golden owners: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("owners.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden owners: beats have the bytes that the document gives", () => {
  for (const { bytes, ...beat } of vectors.beats) {
    const message = { kind: "beat", ...beat } as const;
    assert.equal(Buffer.from(encodeMessage(message)).toString("hex"), bytes);
    assert.deepEqual(decodeMessage(Buffer.from(bytes, "hex")), message);
  }
});

Deno.test("golden owners: packets have the bytes that the document gives", () => {
  for (const { bytes, packet: { entries, ...rest } } of vectors.packets) {
    const packet = {
      ...rest,
      entries: entries.map((entry) => ({
        ...entry,
        content: entry.content === null
          ? null
          : { ...entry.content, payload: Uint8Array.from(Buffer.from(entry.content.payload, "hex")) },
      })),
    };
    assert.equal(Buffer.from(encodeTuplePacket(packet)).toString("hex"), bytes);
    assert.deepEqual(decodeTuplePacket(Uint8Array.from(Buffer.from(bytes, "hex"))), packet);
  }
});
