/** What is sent to queues, on its way to the broker of its site (runtime/queues/sends.ts). */
import { strict as assert } from "node:assert";
import {
  encodeKeys,
  encodeKvDelivery,
  encodeKvMessage,
  KV_QUEUE,
} from "../../../functions/queues/kv_queue.ts";
import { type NewMessage, QueueRefused } from "../../../functions/queues/broker.ts";
import type { SessionMessage } from "../../../functions/sessions/serve/ports.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { QueueSends, SendRefused } from "../../../runtime/queues/sends.ts";
import { packKey } from "../../../store/model/key.ts";
import { TupleRefused } from "../../../store/owners/tuples.ts";
import { OwnersError } from "../../../store/presence/choose.ts";

const body = new Uint8Array([7]);
const SENT: SessionMessage = { queue: "jobs", message: { body }, key: "k", place: 0, sentMs: 5 };

/** A broker that refuses all with an error, where it has one. */
function sending(refusal: Error | null = null) {
  const sent: [topic: string, message: NewMessage][] = [];
  const broker = {
    send: (topic: string, message: NewMessage) => {
      sent.push([topic, message]);
      return refusal === null ? Promise.resolve("id") : Promise.reject(refusal);
    },
  };
  return { sent, sends: new QueueSends(broker, { operated: () => {} }) };
}

Deno.test("a message of a stateful session has a tuple of its own for each effect and place, and the same one each time (SE2)", async () => {
  const { sent, sends } = sending();
  for (const more of [{}, {}, { place: 1 }, { key: "l" }, { queue: "others" }]) {
    await sends.storeOfSession("app", { ...SENT, ...more });
  }
  const tuples = sent.map(([, { tuple }]) => tuple ?? "");
  const [first, again, place, effect, queue] = tuples;
  assert.ok(tuples.every((tuple) => /^~[\w-]{24}$/.test(tuple)), tuples.join());
  assert.deepEqual([again, queue], [first, first]);
  assert.equal(new Set([first, place, effect]).size, 3);
  const [topic, message] = sent[0] ?? [];
  assert.deepEqual([topic, message], [
    "app/jobs",
    { body, format: "value", sentMs: 5, isKept: true, tuple: first ?? "" },
  ]);
});

Deno.test("a message of a stateful session with an id of its own has that, as one of a function has", async () => {
  const { sent, sends } = sending();
  await sends.storeOfSession("app", { ...SENT, message: { body, id: "mine", delayMs: 3, ttlMs: 4 } });
  assert.deepEqual(sent.map(([, message]) => message), [
    { body, id: "mine", delayMs: 3, ttlMs: 4, format: "value", sentMs: 5, isKept: true },
  ]);
});

Deno.test("what the broker refuses a stateful session has a code of the platform's, and a fault stays one", async () => {
  const rows: [error: Error, code: string][] = [
    [new QueueRefused("queue_full", "it is full"), "queue_full"],
    [new QueueRefused("queue_unknown", "there is none"), "queue_unknown"],
    [new TupleRefused("owners_missing", "they are away"), "owners_unreachable"],
    [new TupleRefused("tuples_full", "no room"), "queue_full"],
    [new OwnersError("owners_too_many", "there are not so many sites"), "owners_too_few"],
  ];
  for (const [error, code] of rows) {
    const { sends } = sending(error);
    await assert.rejects(
      sends.storeOfSession("app", SENT),
      (refused) =>
        refused instanceof SendRefused && refused.code === code && refused.message === error.message,
      code,
    );
  }
  const fault = new Error("it broke");
  await assert.rejects(sending(fault).sends.storeOfSession("app", SENT), fault);
});

Deno.test("what a KV enqueues is a message with pauses and keys of its own, and other bytes are refused (SE3)", async () => {
  const { sent, sends } = sending();
  const value = encodeValue("x"), keys = [packKey(["lost", 1])];
  const enqueued = (bytes: Uint8Array, seen?: string) =>
    sends.storeOfSession("app", { ...SENT, queue: KV_QUEUE, message: { body: bytes, delayMs: 5 } }, seen);
  await enqueued(encodeKvMessage({ value, backoffMs: [1, 2], keys }), "token");
  await enqueued(encodeKvMessage({ value, backoffMs: null, keys: [] }));
  const [own, plain] = sent.map(([topic, { tuple: _, ...message }]) => ({ topic, ...message }));
  const common = { topic: "app/kv.queue", body: value, delayMs: 5, format: "value", sentMs: 5, isKept: true };
  assert.deepEqual(own, {
    ...common,
    backoffMs: [1, 2],
    undelivered: encodeKvDelivery({ seen: "token", undelivered: encodeKeys(keys) }),
  });
  assert.deepEqual(plain, { ...common, undelivered: new Uint8Array(0) });
  for (const forged of [body, encodeValue("x"), new Uint8Array([3, 1, 0, 0, 1, 0x10])]) {
    await assert.rejects(enqueued(forged), { code: "message_invalid" });
    await assert.rejects(sends.send({ app: "app" }, KV_QUEUE, [{ body: forged }], ""), {
      code: "message_invalid",
    });
  }
  assert.equal(sent.length, 2);
});
