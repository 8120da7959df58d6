/** What owners and outlets say to each other as bytes (functions/queues/words.ts). */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { CodecError } from "../../../store/model/codec.ts";
import {
  decodeQueuePacket,
  encodeQueuePacket,
  type QueuePacket,
  type QueueWord,
  wordBytes,
} from "../../../functions/queues/words.ts";

const uint = fc.nat(Number.MAX_SAFE_INTEGER);
const queue = fc.constantFrom("app/mail", "app/sms");
const id = fc.string({ minLength: 1, maxLength: 20, unit: "grapheme-ascii" });
const word: fc.Arbitrary<QueueWord> = fc.oneof(
  fc.record({ kind: fc.constant("offer"), queue, count: uint }),
  fc.record({
    kind: fc.constant("batch"),
    queue,
    number: uint,
    left: uint,
    leaseMs: uint,
    messages: fc.array(
      fc.record({
        id,
        lease: uint,
        attempt: uint,
        expiresAtMs: uint,
        owners: fc.array(fc.constantFrom("a", "edge-1", "é"), { minLength: 1, maxLength: 3 }),
        payload: fc.uint8Array({ maxLength: 20 }),
      }),
      { maxLength: 3 },
    ),
  }),
  fc.record({
    kind: fc.constant("settled"),
    results: fc.array(fc.record({ number: uint, result: fc.constantFrom("done", "over", "unknown") }), {
      maxLength: 3,
    }),
  }),
  fc.record({
    kind: fc.constant("want"),
    queue,
    number: uint,
    seen: uint,
    messages: uint,
    bytes: uint,
    isPull: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("got"), batch: uint }),
  fc.record({
    kind: fc.constant("verdicts"),
    verdicts: fc.array(
      fc.record({
        number: uint,
        id,
        lease: uint,
        sentMs: uint,
        kind: fc.constantFrom("ack", "retry", "reject", "extend", "release"),
        ms: fc.option(uint, { nil: null }),
        error: fc.string({ maxLength: 40, unit: "grapheme" }),
      }),
      { maxLength: 3 },
    ),
  }),
);
const packets: fc.Arbitrary<QueuePacket> = fc.record({
  boot: uint,
  to: uint,
  words: fc.array(word, { maxLength: 5 }),
});

/** Bytes compare as lists. */
const plain = (packet: QueuePacket): unknown =>
  JSON.parse(JSON.stringify(packet, (_, value) => value instanceof Uint8Array ? [...value] : value));

Deno.test("a queue's packet is read as it was written", () => {
  fc.assert(fc.property(packets, (packet) => {
    assert.deepEqual(plain(decodeQueuePacket(encodeQueuePacket(packet))), plain(packet));
  }));
});

Deno.test("bytes that are no packet are refused, and those that are have one form", () => {
  fc.assert(fc.property(packets, fc.nat(), fc.nat(255), (packet, place, byte) => {
    const changed = encodeQueuePacket(packet);
    changed[place % changed.length] = byte;
    try {
      assert.deepEqual([...encodeQueuePacket(decodeQueuePacket(changed))], [...changed]);
    } catch (error) {
      assert.ok(error instanceof CodecError, String(error));
    }
  }));
});

Deno.test("the size of a word is guessed within a few bytes of each of its parts", () => {
  fc.assert(fc.property(word, (one) => {
    const bytes = encodeQueuePacket({ boot: 0, to: 0, words: [one] }).length;
    const parts = one.kind === "batch"
      ? one.messages.length
      : one.kind === "verdicts"
      ? one.verdicts.length
      : 1;
    const most = one.kind === "settled" ? 10 * one.results.length : wordBytes(one);
    assert.ok(bytes <= most + 60 * (1 + parts), `${bytes} for ${wordBytes(one)}`);
  }));
});

Deno.test("a message without an owner, and an error that is too long, are refused", () => {
  const message = { id: "x", lease: 1, attempt: 1, expiresAtMs: 0, owners: [], payload: new Uint8Array() };
  const batch = { kind: "batch", queue: "q", number: 1, left: 0, leaseMs: 1, messages: [message] } as const;
  assert.throws(() => decodeQueuePacket(encodeQueuePacket({ boot: 1, to: 1, words: [batch] })), /no owner/);
  const told = {
    number: 1,
    id: "x",
    lease: 1,
    sentMs: 0,
    kind: "ack",
    ms: null,
    error: "é".repeat(200),
  } as const;
  const packet = encodeQueuePacket({ boot: 1, to: 1, words: [{ kind: "verdicts", verdicts: [told] }] });
  const [said] = decodeQueuePacket(packet).words;
  assert.equal(said?.kind === "verdicts" && said.verdicts[0]?.error, "é".repeat(100));
});
