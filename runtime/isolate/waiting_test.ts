/** What an isolate sends again and again counts for what it takes of its site's memory, and not for its bytes alone. */
import assert from "node:assert/strict";
import { AppQueues } from "./app_queues.ts";
import { BodyReceiver, BodySender, WINDOW_BYTES } from "./bodies.ts";
import type { ChannelSink } from "../../functions/sessions/serve/ports.ts";
import { receiveChannel } from "./channel.ts";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { HEADER_BYTES, ISOLATE_FRAME } from "./frames.ts";
import { HostSocket } from "./host_socket.ts";
import { CallsOfRequest } from "./session_calls.ts";
import { writeCheckpoint, writeSessionCommit } from "./session_frames.ts";
import { StatesComing } from "./state_frames.ts";

/** Nobody reads it. */
const nowhere = (sent: (batch: Uint8Array) => void = () => {}): FrameWriter =>
  new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      sent(batch);
      return Promise.resolve(batch.length);
    },
  }, () => {});

function payloadOf(write: (writer: FrameWriter) => void): Promise<Payload> {
  const { promise, resolve } = Promise.withResolvers<Payload>();
  const writer = nowhere((batch) => resolve(new Payload(batch.slice(HEADER_BYTES))));
  write(writer.begin(1, 1));
  writer.end();
  return promise.then((payload) => {
    const bytes = payload.view();
    payload.reset(bytes, 0, bytes.length);
    return payload;
  });
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
const CHUNKS_MAX = WINDOW_BYTES / 256;

Deno.test("chunks without bytes fill a body's window, too", () => {
  const queues = new AppQueues();
  const body = new BodyReceiver(nowhere(), 1, { granted: true, waits: { queues, queue: "response body" } });
  let taken = 0;
  while (taken < 10 * CHUNKS_MAX && body.data(new Uint8Array())) taken++;
  assert.ok(taken >= CHUNKS_MAX && taken < 2 * CHUNKS_MAX, `${taken} are taken`);
  assert.ok(queues.bytes >= WINDOW_BYTES, `${queues.bytes} count`);
});

Deno.test("a body of single bytes has as many chunks under way as take a window, and comes whole", async () => {
  const bytes = 5 * CHUNKS_MAX, got: number[] = [];
  let underWay = 0, most = 0;
  const sender: BodySender = new BodySender(
    nowhere((batch) => {
      for (let at = 0; at < batch.length;) {
        const length = new DataView(batch.buffer, batch.byteOffset).getUint32(at, true);
        if (batch[at + 4] === ISOLATE_FRAME.data) {
          underWay++;
          most = Math.max(most, underWay);
          assert.ok(body.data(batch.slice(at + HEADER_BYTES, at + 4 + length)), "the window is kept");
        } else if (batch[at + 4] === ISOLATE_FRAME.end) body.end();
        at += 4 + length;
      }
    }),
    1,
    { credit: WINDOW_BYTES },
  );
  const body: BodyReceiver = new BodyReceiver(
    nowhere((batch) => {
      const view = new DataView(batch.buffer, batch.byteOffset);
      for (let at = 0; at < batch.length; at += 4 + view.getUint32(at, true)) {
        sender.credit(view.getUint32(at + HEADER_BYTES, true));
      }
    }),
    1,
    { granted: true },
  );
  const sent = sender.send(ReadableStream.from(Array.from({ length: bytes }, (_, i) => Uint8Array.of(i))));
  for (let turns = 0; turns < 5_000 && underWay < CHUNKS_MAX; turns++) await turn();
  await turn();
  assert.equal(most, CHUNKS_MAX, "nobody reads");
  for await (const [byte = -1] of body.stream) {
    underWay--;
    got.push(byte);
  }
  assert.equal(await sent, bytes);
  assert.deepEqual(got, Array.from({ length: bytes }, (_, i) => i % 256));
});

Deno.test("a WebSocket that an isolate closes thousands of times is closed once, and nothing of the others waits", async () => {
  const gate = Promise.withResolvers<void>(), closed: number[] = [];
  let gates = 0;
  const socket = new HostSocket(nowhere(), 1, {
    protocol: "",
    gate: () => {
      gates++;
      return gate.promise;
    },
    closed: () => {},
    queues: new AppQueues(),
  });
  for (let i = 0; i < 1000; i++) socket.closeFromApp(4000 + i, "bye");
  await turn();
  gate.resolve();
  await turn();
  socket.bridge({ message: () => {}, close: (code) => closed.push(code) });
  for (let i = 0; i < 1000; i++) socket.closeFromApp(3000, "again");
  await turn();
  assert.deepEqual([closed, gates], [[4000], 1]);
});

Deno.test("calls of stateful sessions count until they are answered", async () => {
  const queues = new AppQueues(), answered: (() => void)[] = [];
  const calls = new CallsOfRequest(nowhere(), 1, queues.hold("isolate", () => {}), {
    call: () => new Promise((resolve) => answered.push(() => resolve(new Uint8Array()))),
  });
  for (let call = 0; call < 10; call++) {
    calls.start(
      await payloadOf((frame) => frame.u32(call).text("room").text("a").rest(new Uint8Array(1000))),
    );
  }
  assert.ok(queues.bytes > 10_000, `${queues.bytes}`);
  for (const answer of answered) answer();
  await turn();
  assert.equal(queues.bytes, 0);
});

Deno.test("segments of a state that have no bytes count, too", () => {
  let kept = 0;
  const coming = new StatesComing((bytes) => kept += bytes);
  const empty = new Uint8Array([1, 0, 0, 0, 0]), payload = new Payload(empty);
  for (let i = 0; i < 1000; i++) {
    payload.reset(empty, 0, empty.length);
    coming.add(1, payload);
  }
  assert.ok(kept >= 1000 * 256, `${kept}`);
  assert.equal(coming.take(1).length, 1000);
  assert.equal(kept, 0);
});

Deno.test("what a stateful session commits counts until it has left", async () => {
  const left = Promise.withResolvers<void>(), kept: number[] = [];
  const sink = { commit: () => left.promise, checkpointed: () => left.promise } as unknown as ChannelSink;
  const keep = (bytes: number, until: Promise<void>) => {
    assert.equal(until, left.promise);
    kept.push(bytes);
  };
  const commit = await payloadOf((frame) =>
    writeSessionCommit(frame, {
      ...{ first: 1, count: 1, through: 0, isPoint: true, isQuiescent: true, isEnded: false, rejected: null },
      ...{ entries: new Uint8Array(1000), outputs: [], effects: [], timers: [], calls: [] },
    })
  );
  receiveChannel(sink, ISOLATE_FRAME.sessionCommit, commit, () => [], keep);
  const checkpoint = await payloadOf((frame) =>
    writeCheckpoint(frame, { at: 1, on: null, bytes: new Uint8Array(100), state: [] })
  );
  receiveChannel(sink, ISOLATE_FRAME.sessionCheckpoint, checkpoint, () => [new Uint8Array(5000)], keep);
  const [ofCommit = 0, ofCheckpoint = 0] = kept;
  assert.ok(ofCommit > 1000 && ofCheckpoint > 5100, kept.join());
});
