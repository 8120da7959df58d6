/** What an isolate may say in a field, one by one: a value that is none is a FrameError before anything is done with it (F4). */
import assert from "node:assert/strict";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import { packKey } from "../../store/model/key.ts";
import { AppQueues } from "./app_queues.ts";
import { BodySender, WINDOW_BYTES } from "./bodies.ts";
import { HostEgress } from "./egress.ts";
import { EgressRules } from "./egress_rules.ts";
import { JSON_DEPTH_MAX, readJson, readLogLine, readMessage, readNumber, readStack } from "./frame_fields.ts";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { FETCH_ID_BASE, FrameError, HEADER_BYTES } from "./frames.ts";
import { BODY, readAppHead, writeRequestHead, writeResponseHead } from "./heads.ts";
import { HostSocket } from "./host_socket.ts";
import { readSaid, readSend, writeSaid, writeSend } from "./queue_frames.ts";
import {
  DELAY_MS_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  SEND_BYTES_MAX,
  SEND_MESSAGES_MAX,
} from "../../functions/queues/limits.ts";
import { SOCKET_WINDOW_BYTES } from "./socket_window.ts";
import { StoreCalls } from "./store_calls.ts";
import { writeWatch } from "./store_frames.ts";

const writerTo = (sent: (batch: Uint8Array) => void): FrameWriter =>
  new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      sent(batch);
      return Promise.resolve(batch.length);
    },
  }, () => {});
const nowhere = (): FrameWriter => writerTo(() => {});

async function payloadOf(write: (writer: FrameWriter) => unknown): Promise<Payload> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const writer = writerTo((batch) => resolve(batch.slice(HEADER_BYTES)));
  write(writer.begin(1, 1));
  writer.end();
  const bytes = await promise, payload = new Payload(bytes);
  payload.reset(bytes, 0, bytes.length);
  return payload;
}

Deno.test("JSON is as deep as may be, and no deeper", async () => {
  const nested = (depth: number) => payloadOf((to) => to.text("[".repeat(depth) + "]".repeat(depth)));
  assert.ok(Array.isArray(readJson(await nested(JSON_DEPTH_MAX))));
  const deeper = await nested(JSON_DEPTH_MAX + 1), text = await payloadOf((to) => to.text('"[[["]'));
  assert.throws(() => readJson(deeper), FrameError);
  assert.throws(() => readJson(text), FrameError);
});

Deno.test("a number is an unsigned integer that JavaScript has exactly", async () => {
  for (
    const [value, isOne] of [[0, true], [2 ** 53 - 1, true], [2 ** 53, false], [-1, false], [
      0.5,
      false,
    ]] as const
  ) {
    const payload = await payloadOf((to) => to.f64(value));
    if (isOne) assert.equal(readNumber(payload), value);
    else assert.throws(() => readNumber(payload), FrameError, `${value}`);
  }
  for (const value of [NaN, Infinity]) {
    const payload = await payloadOf((to) => to.f64(value));
    assert.throws(() => readNumber(payload), FrameError);
  }
});

Deno.test("of what an error says, of its stack and of a line so much is read", async () => {
  const long = "x".repeat(1 << 20);
  const payload = () => payloadOf((to) => to.text(long));
  assert.ok(readMessage(await payload()).length < 9_000);
  assert.ok(readStack(await payload()).length < 33_000);
  assert.ok(readLogLine(await payloadOf((to) => to.text("info").text(long))).text.length < 33_000);
});

Deno.test("a response's head has names and values that a Response can have", async () => {
  const head = (statusText: string, ...headers: [string, string][]) =>
    payloadOf((to) => writeResponseHead(to, 200, statusText, headers, BODY.none));
  assert.deepEqual(readAppHead(await head("OK", ["X-A", "b"])).head.headers, [["x-a", "b"]]);
  for (
    const payload of [
      await head("OK\r\nset-cookie: a=b"),
      await head("", ["x a", "b"]),
      await head("", ["", "b"]),
      await head("", ["x-a", "b\r\nset-cookie: a=b"]),
      await head("", ["x-a", "b\nc"]),
      await head("", ["x-a", "€"]),
    ]
  ) assert.throws(() => readAppHead(payload), FrameError);
});

Deno.test("no two watches of a request have one number, and no two fetches of an isolate one channel", async () => {
  const store = { watch: async function* () {} } as unknown as StoreClient;
  const queues = new AppQueues();
  const calls = new StoreCalls(nowhere(), 1, store, () => {}, queues.hold("isolate", () => {}));
  const range = { start: packKey(["kv", "x"]), end: packKey(["kv", "y"]) };
  const watch = () => payloadOf((to) => writeWatch(to.u32(1), [range]));
  const [first, second] = [await watch(), await watch()];
  calls.start(first);
  assert.throws(() => calls.start(second), FrameError);
  calls.end();
  const egress = new HostEgress(new EgressRules({ fetchHosts: [] }));
  const request = { method: "GET", url: "http://a.example/", headers: [] };
  const fetched = () => payloadOf((to) => writeRequestHead(to, ["follow"], request, BODY.none));
  const [one, other] = [await fetched(), await fetched()], writer = nowhere();
  egress.start(writer, FETCH_ID_BASE, one, undefined, queues);
  assert.throws(() => egress.start(writer, FETCH_ID_BASE, other, undefined, queues), FrameError);
  await new Promise((resolve) => setTimeout(resolve, 1));
  egress.close();
});

Deno.test("no body is asked for beyond its window, and no WebSocket sends beyond its own", () => {
  const sender = new BodySender(nowhere(), 1, { credit: 0 });
  sender.credit(WINDOW_BYTES);
  assert.throws(() => sender.credit(1), FrameError);
  const socket = new HostSocket(nowhere(), 1, {
    ...{ protocol: "", gate: () => new Promise(() => {}), closed: () => {} },
    queues: new AppQueues(),
  });
  socket.fromApp("x", SOCKET_WINDOW_BYTES);
  assert.throws(() => socket.fromApp("x", 1), FrameError);
});

Deno.test("what is sent to a queue is what the library lets an app send, and no more (QF1)", async () => {
  const body = (bytes: number) => new Uint8Array(bytes).fill(1);
  const sent = (...messages: Parameters<typeof writeSend>[2]) =>
    payloadOf((to) => writeSend(to, "jobs", messages));
  const all = [{ body: body(2), id: "a", delayMs: 0, ttlMs: 1 }, { body: body(QUEUE_MESSAGE_BYTES_MAX) }];
  assert.deepEqual(readSend(await sent(...all)), { queue: "jobs", messages: all });
  const big = { body: body(QUEUE_MESSAGE_BYTES_MAX) };
  for (
    const payload of [
      await sent(),
      await sent({ body: body(2), delayMs: -1 }),
      await sent({ body: body(2), delayMs: DELAY_MS_MAX + 1 }),
      await sent({ body: body(2), ttlMs: 0 }),
      await sent({ body: body(2), id: "x".repeat(201) }),
      await sent({ body: body(QUEUE_MESSAGE_BYTES_MAX + 1) }),
      await sent(...Array.from({ length: Math.ceil(SEND_BYTES_MAX / big.body.length) + 1 }, () => big)),
      await sent(...Array.from({ length: SEND_MESSAGES_MAX + 1 }, () => ({ body: body(2) }))),
    ]
  ) assert.throws(() => readSend(payload), FrameError);
});

Deno.test("what is said of a message is a verdict on one that was given out", async () => {
  const said = (place: number, verdict: Parameters<typeof writeSaid>[2]) =>
    payloadOf((to) => writeSaid(to, place, verdict));
  const rows = [{ kind: "ack" }, { kind: "retry" }, { kind: "retry", delayMs: 5 }] as const;
  for (const verdict of rows) {
    assert.deepEqual(readSaid(await said(1, verdict), 2), { place: 1, verdict });
  }
  const late = await said(2, { kind: "ack" }), early = await said(0, { kind: "retry", delayMs: -1 });
  assert.throws(() => readSaid(late, 2), FrameError);
  assert.throws(() => readSaid(early, 2), FrameError);
  const none = await payloadOf((to) => to.u32(0).u8(2).f64(NaN));
  assert.throws(() => readSaid(none, 2), FrameError);
});
