/** Messages of queues against docs/protocol/queues.md (tests/golden/queues.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { decodeEnvelope, encodeEnvelope } from "../../functions/queues/envelope.ts";
import { decodeNote, encodeNote } from "../../functions/queues/note.ts";
import { decodeQueuePacket, encodeQueuePacket } from "../../functions/queues/words.ts";
import { runPython, storedVectors } from "./python.ts";

const bytes = z.string().transform((hex) => Uint8Array.from(Buffer.from(hex, "hex")));
const count = z.number();
const Envelope = z.strictObject({
  id: z.string(),
  sentMs: count,
  trace: z.string(),
  backoffMs: z.array(count).nullable(),
  undelivered: bytes,
  format: z.enum(["bytes", "text", "json", "value"]),
  body: bytes,
});
const Note = z.strictObject({
  attempts: count,
  expiresAtMs: count,
  death: z.strictObject({ cause: z.enum(["attempts", "expired", "rejected"]), error: z.string() }).nullable(),
});
const Message = z.strictObject({
  id: z.string(),
  lease: count,
  attempt: count,
  expiresAtMs: count,
  owners: z.array(z.string()),
  payload: bytes,
});
const Word = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("offer"), queue: z.string(), count }),
  z.strictObject({
    kind: z.literal("batch"),
    queue: z.string(),
    number: count,
    left: count,
    leaseMs: count,
    messages: z.array(Message),
  }),
  z.strictObject({
    kind: z.literal("settled"),
    results: z.array(z.strictObject({ number: count, result: z.enum(["done", "over", "unknown"]) })),
  }),
  z.strictObject({
    kind: z.literal("want"),
    queue: z.string(),
    number: count,
    seen: count,
    messages: count,
    bytes: count,
    isPull: z.boolean(),
  }),
  z.strictObject({ kind: z.literal("got"), batch: count }),
  z.strictObject({
    kind: z.literal("verdicts"),
    verdicts: z.array(z.strictObject({
      number: count,
      id: z.string(),
      lease: count,
      sentMs: count,
      kind: z.enum(["ack", "retry", "reject", "extend", "release"]),
      ms: count.nullable(),
      error: z.string(),
    })),
  }),
]);
const Vectors = z.strictObject({
  envelopes: z.array(z.strictObject({ envelope: Envelope, bytes: z.string() })),
  notes: z.array(z.strictObject({ note: Note, text: z.string() })),
  packets: z.array(z.strictObject({
    packet: z.strictObject({ boot: count, to: count, words: z.array(Word) }),
    bytes: z.string(),
  })),
});
const text = await storedVectors("queues.json");
const vectors = Vectors.parse(JSON.parse(text));

Deno.test("golden queues: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("queues.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden queues: envelopes and notes are what the document gives", () => {
  for (const { bytes: hex, envelope } of vectors.envelopes) {
    assert.equal(Buffer.from(encodeEnvelope(envelope)).toString("hex"), hex);
    assert.deepEqual(decodeEnvelope(Uint8Array.from(Buffer.from(hex, "hex"))), envelope);
  }
  for (const { text, note } of vectors.notes) {
    assert.equal(encodeNote(note), text);
    assert.deepEqual(decodeNote(text), note);
  }
});

Deno.test("golden queues: packets have the bytes that the document gives", () => {
  for (const { bytes: hex, packet } of vectors.packets) {
    assert.equal(Buffer.from(encodeQueuePacket(packet)).toString("hex"), hex);
    assert.deepEqual(decodeQueuePacket(Uint8Array.from(Buffer.from(hex, "hex"))), packet);
  }
});
