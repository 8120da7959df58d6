/** What a message and its note are as bytes (functions/queues/envelope.ts, note.ts). */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { CodecError } from "../../../store/model/codec.ts";
import { isNote } from "../../../store/owners/packet.ts";
import { decodeEnvelope, encodeEnvelope, type MessageEnvelope } from "../../../functions/queues/envelope.ts";
import {
  cutText,
  decodeNote,
  encodeNote,
  FRESH_NOTE,
  type MessageNote,
} from "../../../functions/queues/note.ts";

const uint = fc.nat(Number.MAX_SAFE_INTEGER);
const bytes = fc.uint8Array({ maxLength: 30 });
const envelopes: fc.Arbitrary<MessageEnvelope> = fc.record({
  id: fc.string({ maxLength: 20, unit: "grapheme" }),
  sentMs: uint,
  trace: fc.string({ maxLength: 20, unit: "grapheme-ascii" }),
  backoffMs: fc.option(fc.array(uint, { maxLength: 4 }), { nil: null }),
  undelivered: bytes,
  format: fc.constantFrom("bytes", "text", "json", "value"),
  body: bytes,
});
const notes: fc.Arbitrary<MessageNote> = fc.record({
  attempts: fc.nat(10_000),
  expiresAtMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 43 })),
  death: fc.option(
    fc.record({
      cause: fc.constantFrom("attempts", "expired", "rejected"),
      error: fc.string({ maxLength: 60, unit: "grapheme" }),
    }),
    { nil: null },
  ),
});

Deno.test("an envelope is read as it was written", () => {
  fc.assert(fc.property(envelopes, (envelope) => {
    const read = decodeEnvelope(encodeEnvelope(envelope));
    assert.deepEqual({ ...read, body: [...read.body], undelivered: [...read.undelivered] }, {
      ...envelope,
      body: [...envelope.body],
      undelivered: [...envelope.undelivered],
    });
  }));
});

Deno.test("bytes that are no envelope are refused, and those that are have one form", () => {
  fc.assert(fc.property(envelopes, fc.nat(), fc.nat(255), (envelope, place, byte) => {
    const changed = encodeEnvelope(envelope);
    changed[place % changed.length] = byte;
    try {
      assert.deepEqual([...encodeEnvelope(decodeEnvelope(changed))], [...changed]);
    } catch (error) {
      assert.ok(error instanceof CodecError, String(error));
    }
  }));
  assert.throws(() => decodeEnvelope(new Uint8Array([2])), /form 2, not 1/);
});

Deno.test("a note fits a tuple's, and is read as it was written but for a long error (NT1)", () => {
  fc.assert(fc.property(notes, (note) => {
    const text = encodeNote(note);
    assert.ok(isNote(text), text);
    const death = note.death === null ? null : { ...note.death, error: cutText(note.death.error, 40) };
    assert.deepEqual(decodeNote(text), { ...note, death });
  }));
  assert.equal(encodeNote(FRESH_NOTE), "");
});

Deno.test("a text that is no note is refused", () => {
  for (const text of ["01", "x!", ",", ",,", "1,0", "1,,z", "1.5", "-1", " 1", "1,2,aé".repeat(9)]) {
    assert.throws(() => decodeNote(text), CodecError, text);
  }
});

Deno.test("a text is cut between letters", () => {
  assert.equal(cutText("aé€😀", 10), "aé€😀");
  for (const [most, cut] of [[9, "aé€"], [6, "aé€"], [5, "aé"], [2, "a"], [0, ""]] as const) {
    assert.equal(cutText("aé€😀", most), cut);
  }
});
