import { strict as assert } from "node:assert";
import fc from "fast-check";
import { CodecError } from "../../../store/model/codec.ts";
import { F_MAX, OWNERS_MAX, TUPLE_BYTES_MAX, TUPLE_TOPIC_BYTES_MAX } from "../../../store/model/limits.ts";
import {
  decodeTuplePacket,
  encodeTuplePacket,
  type Entry,
  type TuplePacket,
} from "../../../store/owners/packet.ts";
import { anyPacket } from "./packet_arbitrary.ts";

const EMPTY: TuplePacket = {
  boot: 1,
  to: 0,
  seq: 1,
  greeting: 0,
  list: 0,
  part: 0,
  isListEnd: false,
  receipts: [],
  missing: [],
  entries: [],
  forget: [],
};
const mark = { dueMs: 1_790_000_000_000, note: "" };
const entry: Entry = {
  id: "t",
  version: 1,
  owners: ["a", "b"],
  mark,
  isUnsure: false,
  goneUntilS: 0,
  content: null,
};
const content = { topic: "app/mail", f: 1, rememberUntilS: 0, payload: new Uint8Array(64) };

Deno.test("packet: what is encoded decodes to the same", () => {
  fc.assert(fc.property(anyPacket, (packet) => {
    assert.deepEqual(decodeTuplePacket(encodeTuplePacket(packet)), structuredClone(packet));
  }));
});

Deno.test("packet: tuples beyond their limits, owners twice and bad ids are refused", () => {
  const rows: [Partial<Entry>, RegExp][] = [
    [
      { content: { ...content, payload: new Uint8Array(TUPLE_BYTES_MAX + 1) } },
      /a tuple has 1048577 bytes, more than 1048576/,
    ],
    [{ owners: [] }, /0 owners/],
    [{ owners: ["a", "a"] }, /2 owners: expected up to 17, each once/],
    [{ owners: Array.from({ length: OWNERS_MAX + 1 }, (_, i) => `s${i}`) }, /18 owners/],
    [{ content: { ...content, topic: "" } }, /bad topic/],
    [{ content: { ...content, topic: "x".repeat(TUPLE_TOPIC_BYTES_MAX + 1) } }, /bad topic/],
    [{ content: { ...content, f: F_MAX + 1 } }, /wants 9 other owners, more than 8/],
    [{ content: { ...content, rememberUntilS: 2 ** 32 } }, /for too long/],
    [{ mark: null, goneUntilS: 2 ** 32 }, /for too long/],
    [{ mark: { ...mark, note: "é".repeat(33) } }, /a note has more than 64 bytes/],
    [{ id: "" }, /bad id/],
    [{ id: "x".repeat(101) }, /bad id/],
  ];
  for (const [change, says] of rows) {
    const bytes = encodeTuplePacket({ ...EMPTY, entries: [{ ...entry, ...change }] });
    assert.throws(
      () => decodeTuplePacket(bytes),
      (error) => error instanceof CodecError && says.test(error.message),
    );
  }
});

Deno.test("packet: a hundred small tuples cost some 30 bytes each beside their payloads", () => {
  const entries = Array.from({ length: 100 }, (_, i) => ({
    ...entry,
    id: `2k9f8z3q1.${i.toString(36)}`,
    content,
  }));
  const bytes = encodeTuplePacket({ ...EMPTY, entries }).length / 100 - 64;
  assert.ok(bytes < 31, `${bytes}`);
});
