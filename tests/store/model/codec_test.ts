/** Binary forms: what a reader takes, and what it refuses (codec.ts B1). */
import assert from "node:assert/strict";
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import type { Key } from "../../../store/model/key.ts";

const bytes = (...values: number[]): Uint8Array<ArrayBuffer> => Uint8Array.from(values);
const text = "a name that is longer than what is read unit by unit, beyond its forty-eight";

/** What is written, and read again. */
const FORMS:
  readonly (readonly [string, (writer: Writer) => unknown, (reader: Reader) => unknown, unknown])[] = [
    ["a byte", (writer) => writer.byte(0xff), (reader) => reader.byte(), 0xff],
    ["a flag", (writer) => writer.flag(true), (reader) => reader.flag(), true],
    ["a number of one group", (writer) => writer.uint(0x7f), (reader) => reader.uint(), 0x7f],
    ["a number of two groups", (writer) => writer.uint(0x80), (reader) => reader.uint(), 0x80],
    [
      "the largest number",
      (writer) => writer.uint(Number.MAX_SAFE_INTEGER),
      (reader) => reader.uint(),
      Number.MAX_SAFE_INTEGER,
    ],
    ["bytes", (writer) => writer.bytes(bytes(1, 2)), (reader) => reader.bytes(), bytes(1, 2)],
    ["a view", (writer) => writer.bytes(bytes(1, 2)), (reader) => reader.view(), bytes(1, 2)],
    ["fixed bytes", (writer) => writer.raw(bytes(1, 2)), (reader) => reader.fixed(2), bytes(1, 2)],
    ["raw bytes", (writer) => writer.raw(bytes(1, 2)), (reader) => reader.raw(2), bytes(1, 2)],
    ["a key", (writer) => writer.key("\x00\xff"), (reader) => reader.key(), "\x00\xff" as Key],
    ["a short text", (writer) => writer.text("name"), (reader) => reader.text(), "name"],
    ["a short text beyond ASCII", (writer) => writer.text("Zürich"), (reader) => reader.text(), "Zürich"],
    ["a long text", (writer) => writer.text(text), (reader) => reader.text(), text],
    [
      "a list",
      (writer) => writer.list([1, 2], (each) => writer.uint(each)),
      (reader) => reader.list(() => reader.uint()),
      [1, 2],
    ],
  ];

for (const [name, write, read, value] of FORMS) {
  Deno.test(`codec: ${name} is read as it was written, and refused wherever it is cut (B1)`, () => {
    const writer = new Writer(1);
    write(writer);
    const whole = writer.done();
    const reader = new Reader(whole);
    assert.deepEqual(read(reader), value);
    reader.end();
    assert.ok(reader.isAtEnd);
    assert.equal(reader.position, whole.length);
    for (let length = 0; length < whole.length; length++) {
      assert.throws(() => read(new Reader(whole.subarray(0, length))), CodecError, `${length} bytes of it`);
    }
    const longer = new Reader(bytes(...whole, 0));
    assert.deepEqual(read(longer), value);
    assert.throws(() => longer.end(), CodecError);
  });
}

/** Bytes that stand for nothing, or for what has another form. */
const REFUSED: readonly (readonly [string, Uint8Array, (reader: Reader) => unknown])[] = [
  ["a flag of 2", bytes(2), (reader) => reader.flag()],
  ["a zero of two groups", bytes(0x80, 0), (reader) => reader.uint()],
  ["a number with a leading zero group", bytes(0xff, 0x80, 0), (reader) => reader.uint()],
  ["the first number beyond 53 bits", bytes(...Array(7).fill(0x80), 0x10), (reader) => reader.uint()],
  ["a number that never ends", bytes(...Array(16).fill(0x80), 1), (reader) => reader.uint()],
  ["a long text that is not UTF-8", bytes(60, ...Array(60).fill(0xff)), (reader) => reader.text()],
  ["a short text that is not UTF-8", bytes(1, 0xff), (reader) => reader.text()],
];

for (const [name, input, read] of REFUSED) {
  Deno.test(`codec: ${name} is refused (B1)`, () => {
    assert.throws(() => read(new Reader(input)), CodecError);
  });
}

Deno.test("codec: a list that is longer than the message is refused before anything is read of it (B1)", () => {
  let read = 0;
  assert.throws(() => new Reader(bytes(3, 1, 1)).list(() => read++), CodecError);
  assert.equal(read, 0);
});

Deno.test("codec: what no reader would take is not written (B1)", () => {
  for (const value of [-1, 0.5, NaN, Infinity, Number.MAX_SAFE_INTEGER + 1]) {
    assert.throws(() => new Writer().uint(value), CodecError, `${value}`);
  }
});

Deno.test("codec: what is read as a copy does not change with the message, what is read as a view does", () => {
  const message = bytes(2, 1, 2);
  const copy = new Reader(message).bytes(), view = new Reader(message).view();
  message[1] = 9;
  assert.deepEqual(copy, bytes(1, 2));
  assert.deepEqual(view, bytes(9, 2));
});
