import assert from "node:assert/strict";
import fc from "fast-check";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { HandClock } from "./peer_pair.ts";
import {
  feed,
  FORWARDED_FRAME_BYTES_MAX,
  type FrameWay,
  localWay,
  StreamWay,
} from "../../../../functions/sessions/attach/frame_way.ts";

/** Two ends over streams, as a link has them; chunks are cut where `cut` says. */
function overStreams(cut: number): [FrameWay, FrameWay] {
  const here = new StreamWay(SYSTEM_CLOCK), there = new StreamWay(SYSTEM_CLOCK);
  const chunks = () =>
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, to) => {
        for (let at = 0; at < chunk.length; at += cut) to.enqueue(chunk.slice(at, at + cut));
      },
    });
  here.read(there.outgoing.pipeThrough(chunks()));
  there.read(here.outgoing.pipeThrough(chunks()));
  return [here, there];
}

const frames = fc.array(fc.uint8Array({ maxLength: 300 }).map((from) => Uint8Array.from(from)), {
  maxLength: 20,
});

for (const name of ["local", "streams"] as const) {
  Deno.test(`a way within a site or over a link brings each frame whole and in order (FW1): ${name}`, async () => {
    await fc.assert(
      fc.asyncProperty(frames, fc.integer({ min: 1, max: 400 }), async (sent, cut) => {
        const [a, b] = name === "local" ? localWay() : overStreams(cut);
        for (const frame of sent) a.send(frame);
        for (const frame of sent) assert.deepEqual(await b.next(), frame);
        b.send(Uint8Array.of(7));
        b.close();
        assert.deepEqual(await a.next(), Uint8Array.of(7), "FW2");
        assert.equal(await a.next(), null);
        assert.equal(await b.next(), null);
      }),
      { numRuns: 50 },
    );
  });
}

Deno.test("what is no frame, and a way that ends within one, end the way (FW1)", async () => {
  const head = (length: number) => {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, length);
    return bytes;
  };
  const of = (...chunks: Uint8Array[]) => {
    const way = new StreamWay(SYSTEM_CLOCK).read(ReadableStream.from(chunks));
    way.outgoing.cancel();
    return way;
  };
  assert.equal(await of(head(FORWARDED_FRAME_BYTES_MAX + 1), new Uint8Array(9)).next(), null);
  assert.equal(await of(head(2 ** 32 - 1)).next(), null);
  assert.equal(await of(head(3), Uint8Array.of(1, 2)).next(), null);
  assert.equal(await of(Uint8Array.of(0)).next(), null);
  assert.deepEqual(await of(head(0)).next(), new Uint8Array(0));
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 40 }), async (bytes) => {
      const way = of(Uint8Array.from(bytes));
      for (let i = 0; i < 12; i++) if (await way.next() === null) return;
      assert.fail("garbage does not end");
    }),
    { numRuns: 200 },
  );
});

Deno.test("a frame that is longer than one can be ends the way though all of it would come, and little of it is read (FW1)", async () => {
  const piece = new Uint8Array(1024 * 1024);
  let pieces = 0;
  const chunks = function* () {
    const head = new Uint8Array(4);
    new DataView(head.buffer).setUint32(0, FORWARDED_FRAME_BYTES_MAX + 1);
    yield head;
    for (; pieces * piece.length <= FORWARDED_FRAME_BYTES_MAX; pieces++) yield piece;
  };
  const way = new StreamWay(SYSTEM_CLOCK).read(ReadableStream.from(chunks()));
  way.outgoing.cancel();
  assert.ok(await way.next() === null);
  assert.ok(pieces <= 2, `${pieces} pieces`);
});

Deno.test("who closes reads on for a while, and then no more, though the other end never ends its half (FW2)", async () => {
  for (const isRead of [true, false]) {
    const clock = new HandClock(), way = new StreamWay(clock);
    way.outgoing.cancel();
    if (isRead) way.read(new ReadableStream({}));
    const frame = isRead ? way.next() : null;
    let isEnded = false;
    void way.ended.then(() => isEnded = true);
    way.close();
    clock.turn(4_000);
    await Promise.resolve();
    assert.equal(isEnded, false, "what was sent before may still come");
    clock.turn(2_000);
    await Promise.resolve();
    // Where nobody reads yet whoever comes to read does so as long as it takes.
    assert.equal(isEnded, isRead);
    assert.equal(await frame, null);
  }
});

Deno.test("a long frame that comes in small pieces costs its bytes, not their square", async () => {
  const length = 12 * 1024 * 1024, piece = new Uint8Array(256).fill(7);
  const chunks = function* () {
    const head = new Uint8Array(4);
    new DataView(head.buffer).setUint32(0, length);
    yield head;
    for (let at = 0; at < length; at += piece.length) yield piece;
  };
  const way = new StreamWay(SYSTEM_CLOCK).read(ReadableStream.from(chunks()));
  way.outgoing.cancel();
  const late = setTimeout(() => way.break(), 60_000); // copied anew with each piece it is minutes
  const frame = await way.next();
  clearTimeout(late);
  assert.equal(frame?.length, length);
  assert(frame?.every((byte) => byte === 7));
  assert.equal(await way.next(), null);
});

Deno.test("who sends faster than is read waits, and goes on when it is", async () => {
  const [a, b] = localWay();
  const big = new Uint8Array(2 * 1024 * 1024);
  a.send(big);
  let isReady = false;
  const ready = a.ready().then(() => isReady = true);
  await Promise.resolve();
  assert.equal(isReady, false);
  await b.next();
  await ready;
  a.send(big);
  const closed = a.ready();
  b.close();
  await closed;
});

Deno.test("a side that throws at a frame ends its own way: who fed it is told, and its peer finds the way ended", async () => {
  const [mine, its] = localWay();
  const told: unknown[] = [];
  let broken = 0;
  const reader = {
    frame: (bytes: Uint8Array) => {
      if (bytes[0] === 2) throw new Error("a fault");
    },
    broken: () => void broken++,
  };
  const fed = feed(its, reader, (error) => void told.push(error));
  for (const byte of [1, 2, 3]) mine.send(Uint8Array.of(byte));
  await fed;
  assert.deepEqual(told.map(String), ["Error: a fault"]);
  assert.equal(broken, 1);
  assert.equal(await mine.next(), null);
});
