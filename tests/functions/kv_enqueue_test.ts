/** `enqueue` and `listenQueue` of a KV, without a site. */
import assert from "node:assert/strict";
import { OpenedKv } from "../../functions/context.ts";
import { RequestKv } from "../../functions/kv.ts";
import { enqueued } from "../../functions/kv_enqueue.ts";
import type { KvEnqueueOptions } from "../../functions/kv_interface.ts";
import { KvListeners } from "../../functions/kv_listeners.ts";
import { parseManifest, readManifest } from "../../functions/manifest.ts";
import {
  decodeKvMessage,
  encodeKeys,
  encodeKvMessage,
  ENQUEUED_BYTES_MAX,
  KV_QUEUE,
} from "../../functions/queues/kv_queue.ts";
import { ENVELOPE_BYTES_MAX, QUEUE_MESSAGE_BYTES_MAX } from "../../functions/queues/limits.ts";
import { decodeValue, encodeValue } from "../../functions/values/value.ts";
import type { QueuedMessage } from "../../functions/vocabulary/queue_sender.ts";
import type { Check, CommitResult, Mutation } from "../../functions/vocabulary/store_client.ts";
import { packKey } from "../../store/model/key.ts";
import { MemoryStore } from "./memory_store.ts";

/** A store that keeps what is sent with its writes. */
class SendingStore extends MemoryStore {
  readonly sent: QueuedMessage[] = [];

  override async commit(
    checks: readonly Check[],
    mutations: readonly Mutation[],
    sends: readonly QueuedMessage[] = [],
  ): Promise<CommitResult> {
    const result = await super.commit(checks, mutations);
    if (result.ok) this.sent.push(...sends);
    return result;
  }
}

Deno.test("enqueue sends a value with what was said of it, in one step with rows or alone", async () => {
  const store = new SendingStore(), kv = new RequestKv(store);
  const { ok, versionstamp } = await kv.enqueue({ a: 1 });
  assert.deepEqual([ok, versionstamp.length], [true, 20]);
  const options = { delay: 7.9, backoffSchedule: [1, 2.5], keysIfUndelivered: [["lost", 1n]] };
  assert.ok((await kv.atomic().set(["row"], 1).enqueue("x", options).enqueue(undefined).commit()).ok);
  const failed = await kv.atomic().check({ key: ["row"], versionstamp: null }).enqueue("never").commit();
  assert.deepEqual(failed, { ok: false });
  const read = store.sent.map(({ queue, body, delayMs }) => {
    const { value, backoffMs, keys } = decodeKvMessage(body);
    return { queue, delayMs, value: decodeValue(value), backoffMs, keys };
  });
  assert.deepEqual(read, [
    { queue: KV_QUEUE, delayMs: undefined, value: { a: 1 }, backoffMs: null, keys: [] },
    { queue: KV_QUEUE, delayMs: 7, value: "x", backoffMs: [1, 2], keys: [packKey(["lost", 1n])] },
    { queue: KV_QUEUE, delayMs: undefined, value: undefined, backoffMs: null, keys: [] },
  ]);
});

Deno.test("enqueue refuses a value or an option before anything is sent (EQ1)", async () => {
  const store = new SendingStore(), kv = new RequestKv(store);
  const large = new Uint8Array(ENQUEUED_BYTES_MAX + 1);
  const rows: [value: unknown, options: KvEnqueueOptions, code: string][] = [
    [1, { delay: -1 }, "message_invalid"],
    [1, { delay: "5" as never }, "message_invalid"],
    [1, { delay: 30 * 86_400_000 + 1 }, "message_invalid"],
    [1, { backoffSchedule: [1, 2, 3, 4, 5, 6] }, "message_invalid"],
    [1, { backoffSchedule: [3_600_001] }, "message_invalid"],
    [1, { backoffSchedule: [1, , 2] as never }, "message_invalid"],
    [1, { backoffSchedule: null as never }, "message_invalid"],
    [1, { keysIfUndelivered: "a" as never }, "message_invalid"],
    [1, { keysIfUndelivered: [[]] }, "key_invalid"],
    [1, { keysIfUndelivered: [[{}] as never] }, "key_invalid"],
    [1, { keysIfUndelivered: [["x".repeat(3_000)]] }, "limit_key"],
    [1, { keysIfUndelivered: Array.from({ length: 7 }, (_, i) => [i, "x".repeat(2_000)]) }, "limit_key"],
    [() => {}, {}, "value_invalid"],
    [large, {}, "limit_message"],
    [new Uint8Array(2 << 20), {}, "limit_message"],
  ];
  for (const [value, options, code] of rows) {
    const atomic = kv.atomic();
    assert.throws(() => atomic.enqueue(value, options), { name: "TypeError", code }, JSON.stringify(options));
    await assert.rejects(kv.enqueue(value, options), { name: "TypeError", code });
    await atomic.commit();
  }
  assert.deepEqual(store.sent, []);
  const atomic = kv.atomic();
  for (let i = 0; i < 1_000; i++) atomic.enqueue(i);
  assert.throws(() => atomic.enqueue(1_000), { code: "limit_atomic" });
});

Deno.test("the largest value that is enqueued fits a message, with all that goes with it", () => {
  const keysIfUndelivered = Array.from({ length: 6 }, (_, i) => [i, "x".repeat(2_000)]);
  const options = { backoffSchedule: [1, 2, 3, 4, 3_600_000], keysIfUndelivered };
  const { body } = enqueued(new Uint8Array(ENQUEUED_BYTES_MAX), options);
  assert.ok(body.length <= QUEUE_MESSAGE_BYTES_MAX, `${body.length}`);
  assert.ok(decodeKvMessage(body).undelivered.length < ENVELOPE_BYTES_MAX - 1_024);
});

Deno.test("bytes that enqueue does not make are no message of the KV's queue (KQ2)", () => {
  const value = encodeValue("x");
  const forged: readonly Uint8Array[] = [
    new Uint8Array(0),
    value,
    encodeKvMessage({ value: new Uint8Array(0), backoffMs: null, keys: [] }),
    encodeKvMessage({ value: new Uint8Array([0x10, 1]), backoffMs: null, keys: [] }), // a merge value
    encodeKvMessage({ value, backoffMs: [3_600_001], keys: [] }),
    encodeKvMessage({ value, backoffMs: [1, 1, 1, 1, 1, 1], keys: [] }),
    encodeKvMessage({ value, backoffMs: null, keys: ["" as never] }),
    encodeKvMessage({ value, backoffMs: null, keys: ["\x7f" as never] }),
    encodeKvMessage({ value, backoffMs: null, keys: [packKey(["x".repeat(2_100)])] }),
    encodeKvMessage({
      value,
      backoffMs: null,
      keys: Array.from({ length: 2_000 }, () => packKey(["abcdefg"])),
    }),
    new Uint8Array([...encodeKvMessage({ value, backoffMs: null, keys: [] }), 0]),
  ];
  for (const [i, body] of forged.entries()) {
    assert.throws(() => decodeKvMessage(body), { code: "message_malformed" }, `${i}`);
  }
  assert.equal(encodeKeys([]).length, 0);
});

Deno.test("the bytes of what is enqueued are those of docs/protocol/queues.md", () => {
  const plain = encodeKvMessage({ value: encodeValue("x"), backoffMs: null, keys: [] });
  assert.equal(plain.toHex(), "03010000020278");
  const whole = encodeKvMessage({ value: encodeValue("x"), backoffMs: [5, 300], keys: [packKey(["k"])] });
  assert.equal(whole.toHex(), "03010102" + "05ac02" + "050103026b00" + "020278");
});

Deno.test("no app can declare a queue of the KV's name (KQ1)", () => {
  const fetch = () => new Response();
  assert.throws(() => parseManifest({ handlers: ["fetch"], queues: { [KV_QUEUE]: {} } }), {
    code: "deploy_invalid",
  });
  assert.deepEqual(readManifest({ fetch }, true).handlers, ["fetch", "listenQueue"]);
  assert.deepEqual(readManifest({}, true).handlers, ["listenQueue"]);
  assert.deepEqual(readManifest({ fetch }).handlers, ["fetch"]);
});

Deno.test("listeners are added while the module loads, and at no other time (KVL1)", async () => {
  const listeners = new KvListeners(), kv = new OpenedKv(listeners);
  await assert.rejects(kv.listenQueue("no function" as never), TypeError);
  void kv.listenQueue(() => {});
  assert.equal(listeners.loaded(), true);
  await assert.rejects(kv.listenQueue(() => {}), { code: "not_available" });
  await assert.rejects(new RequestKv(new MemoryStore()).listenQueue(), { code: "not_available" });
  assert.equal(new KvListeners().loaded(), false);
});

Deno.test("each value is handled by one listener, in turn, and by none of a closed handle (KVL2)", async () => {
  const listeners = new KvListeners(), kv = new OpenedKv(listeners), other = new OpenedKv(listeners);
  const seen: string[] = [];
  const ends = [
    kv.listenQueue((value) => void seen.push(`a ${value}`)),
    kv.listenQueue(async (value) => {
      await Promise.resolve();
      seen.push(`b ${value}`);
      if (value === 1) throw new RangeError("on purpose");
    }),
    other.listenQueue((value) => void seen.push(`c ${value}`)),
  ];
  assert.equal(listeners.loaded(), true);
  await listeners.handle(0);
  await assert.rejects(listeners.handle(1), RangeError);
  await listeners.handle(2);
  assert.deepEqual(seen, ["a 0", "b 1", "c 2"]);
  kv.close();
  await Promise.all(ends.slice(0, 2));
  await listeners.handle(3);
  await listeners.handle(4);
  assert.deepEqual(seen.slice(3), ["c 3", "c 4"]);
  {
    using _ = other;
  }
  await ends[2];
  await other.listenQueue(() => {});
  await assert.rejects(listeners.handle(5), { code: "not_available" });
  await assert.rejects(kv.listenQueue(() => {}), { message: "Queue already closed" });
  kv.close();
});
