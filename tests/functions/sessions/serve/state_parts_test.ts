/** The state of a stateful session on its way: segments in frames, and as parts at keepers. */
import assert from "node:assert/strict";
import { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { map, SessionState, StateSegments } from "../../../../functions/tracked/mod.ts";
import { STATE_PART_BYTES_MAX } from "../../../../functions/sessions/log/limits.ts";
import { Payload, readFrames } from "../../../../runtime/isolate/frame_reader.ts";
import { FrameWriter } from "../../../../runtime/isolate/frame_writer.ts";
import { FRAME_TO_ISOLATE_BYTES_MAX, FrameError, ISOLATE_FRAME } from "../../../../runtime/isolate/frames.ts";
import { StatesComing, StateSender } from "../../../../runtime/isolate/state_frames.ts";
import { packState, unpackState } from "../../../../functions/sessions/serve/state_parts.ts";
import { CodecError } from "../../../../store/model/codec.ts";

const MIB = 1 << 20;
const text = (length: number) => Uint8Array.from({ length }, (_, i) => 97 + (i * i) % 7);
const noise = (length: number) => {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
};

Deno.test("segments are the same when their parts are unpacked (SC1)", async () => {
  const bytes = fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.nat(9_000).map(text), fc.nat(9_000).map(noise));
  await fc.assert(
    fc.asyncProperty(fc.array(bytes, { maxLength: 4 }), async (segments) => {
      assert.deepEqual(await unpackState(await packState(segments)), segments.map((one) => one.slice()));
    }),
    { numRuns: 50 },
  );
  const large = [text(2.5 * MIB), new Uint8Array(0), noise(MIB), noise(MIB + 1)];
  const parts = await packState(large);
  assert.equal(parts.length, 3 + 1 + 1 + 2);
  assert.ok(parts.every(({ length }) => length <= STATE_PART_BYTES_MAX));
  assert.deepEqual(await unpackState(parts), large);
});

Deno.test("what shrinks is kept small, what does not is left as it is", async () => {
  const [small, packed, random] = await packState([text(1_000), text(100_000), noise(100_000)]);
  assert.deepEqual([small?.length, random?.length], [1_001, 100_001]);
  assert.ok((packed?.length ?? Infinity) < 10_000, `${packed?.length}`);
});

Deno.test("parts that are cut, of another form, or grow beyond their bounds are refused (SC2)", async () => {
  const bomb = zstdCompressSync(new Uint8Array(64 * MIB));
  assert.ok(bomb.length < 64 * 1024);
  const headed = (head: number, bytes: Uint8Array) => new Uint8Array([head, ...bytes]);
  const packed = zstdCompressSync(text(50_000));
  const sized = (length: number, bytes: Uint8Array) =>
    new Uint8Array([...new Uint8Array(new Uint32Array([length]).buffer), ...bytes]);
  const rows: [string, Uint8Array[]][] = [
    ["a bomb", [headed(0x81, sized(MIB, bomb))]],
    ["a bomb that says so", [headed(0x81, sized(64 * MIB, bomb))]],
    ["another codec", [headed(0x82, sized(50_000, packed))]],
    ["nothing", [new Uint8Array(0)]],
    ["no length", [headed(0x81, new Uint8Array(3))]],
    ["half of it", [headed(0x81, sized(50_000, packed.subarray(0, packed.length / 2)))]],
    ["less than it says", [headed(0x81, sized(50_001, packed))]],
    ["no end", [headed(0x01, sized(50_000, packed))]],
    ["more than a part", [headed(0x80, new Uint8Array(MIB + 1))]],
    ["no zstd", [headed(0x81, sized(100, noise(100)))]],
  ];
  for (const [what, parts] of rows) {
    const before = Deno.memoryUsage().rss;
    await assert.rejects(unpackState(parts), (error) => error instanceof CodecError, what);
    assert.ok(Deno.memoryUsage().rss - before < 48 * MIB, `${what} takes no memory`);
  }
});

/** A connection whose other end takes its time: what was written, and how much waited at most. */
function slowly() {
  const chunks: Uint8Array[] = [];
  const writer: FrameWriter = new FrameWriter({
    read: () => Promise.resolve(null),
    write: async (bytes) => {
      await new Promise((resolve) => setTimeout(resolve));
      chunks.push(bytes.slice());
      return bytes.length;
    },
  }, (error) => {
    throw error;
  });
  return { writer, chunks };
}

const SECOND = 99;

Deno.test("a state leaves in parts between other frames, and comes whole before what it belongs to", async () => {
  const { writer, chunks } = slowly();
  const sender = new StateSender(writer);
  const state = [noise(30 * MIB), new Uint8Array(0), noise(100)];
  const done = Promise.withResolvers<void>();
  sender.send(7, state, () => writer.signal(ISOLATE_FRAME.sessionCheckpoint, 7));
  assert.ok(writer.backlogBytes < 6 * MIB, `${writer.backlogBytes} bytes wait`);
  sender.send(8, [noise(MIB)], () => assert.fail("it was closed before"));
  writer.signal(SECOND, 7);
  sender.drop(8);
  sender.send(9, [], () => {
    writer.signal(ISOLATE_FRAME.sessionCheckpoint, 9);
    done.resolve();
  });
  await done.promise;
  await writer.drained();
  const coming = new StatesComing();
  const order: [number, number][] = [];
  let got: readonly Uint8Array[] = [];
  await readFrames(
    {
      write: () => Promise.resolve(0),
      read: (into) => {
        const chunk = chunks.shift();
        if (chunk === undefined) return Promise.resolve(null);
        const taken = Math.min(chunk.length, into.length);
        into.set(chunk.subarray(0, taken));
        if (taken < chunk.length) chunks.unshift(chunk.subarray(taken));
        return Promise.resolve(taken);
      },
    },
    FRAME_TO_ISOLATE_BYTES_MAX,
    (type, channel, payload) => {
      if (type === ISOLATE_FRAME.sessionState) return coming.add(channel, payload);
      order.push([type, channel]);
      if (channel === 7 && type === ISOLATE_FRAME.sessionCheckpoint) got = coming.take(7);
    },
  );
  assert.deepEqual(order, [[SECOND, 7], [ISOLATE_FRAME.sessionCheckpoint, 7], [
    ISOLATE_FRAME.sessionCheckpoint,
    9,
  ]]);
  assert.deepEqual(got.map(({ length }) => length), state.map(({ length }) => length));
  assert.deepEqual(got[0], state[0]);
});

Deno.test("states that are not whole, or more than one may be, are refused before they take room", () => {
  const frame = (isFirst: boolean, length: number, bytes: number) => {
    const payload = new Uint8Array((isFirst ? 5 : 1) + bytes);
    payload[0] = isFirst ? 1 : 0;
    if (isFirst) new DataView(payload.buffer).setUint32(1, length, true);
    const reader = new Payload(payload);
    reader.reset(payload, 0, payload.length);
    return reader;
  };
  const refused = (run: (coming: StatesComing) => unknown) =>
    assert.throws(() => run(new StatesComing()), (error) => error instanceof FrameError);
  refused((coming) => coming.add(1, frame(false, 0, 3)));
  refused((coming) => coming.add(1, frame(true, 2, 3)));
  refused((coming) => coming.add(1, frame(true, 300 * MIB, 0)));
  refused((coming) => {
    coming.add(1, frame(true, 5, 3));
    coming.take(1);
  });
  refused((coming) => {
    coming.add(1, frame(true, 5, 3));
    coming.add(1, frame(true, 5, 3));
  });
  const coming = new StatesComing();
  for (let channel = 0; channel < 50; channel++) {
    coming.add(channel, frame(true, 100 * MIB, 0));
    coming.drop(channel);
  }
  assert.deepEqual(coming.take(1), []);
});

Deno.test("segments are merged when more of them is void than is not, and say the same then", () => {
  const instance = { big: map<number, string>(), small: 0 };
  const state = new SessionState(instance);
  for (let i = 0; i < 500; i++) instance.big.set(i, `value ${i}`);
  let segments = new StateSegments([state.checkpoint()]);
  let merges = 0, most = 0;
  for (let round = 0; round < 300; round++) {
    instance.small = round;
    for (let i = 0; i < 20; i++) instance.big.set((round * 20 + i) % 500, `${round}`);
    segments.add(state.checkpoint());
    most = Math.max(most, segments.bytes);
    if (!segments.isWasteful) continue;
    segments = segments.merged();
    merges++;
    assert.equal(segments.length, 1);
  }
  assert.ok(merges > 2 && merges < 60, `${merges} merges`);
  assert.ok(most < 100_000, `${most} bytes at most`);
  const again = { big: map<number, string>(), small: -1 };
  new SessionState(again).load(...segments.all);
  assert.deepEqual([[...again.big], again.small], [[...instance.big], 299]);
});

Deno.test("segments are merged when the last one says nearly all, and else not before more is void", () => {
  const instance = { grows: map<number, string>(), stays: map<number, string>() };
  const state = new SessionState(instance);
  const rows: readonly (readonly [stays: number, most: number])[] = [[3, 1.35], [400, 2.1]];
  for (const [stays, most] of rows) {
    instance.grows.clear();
    instance.stays.clear();
    for (let i = 0; i < stays; i++) instance.stays.set(i, `value ${i} that stays as it is`);
    let segments = new StateSegments([state.checkpoint(true)]);
    for (let round = 1; round <= 40; round++) {
      for (let i = 0; i < 50; i++) instance.grows.set(round * 50 + i, `value ${round} of ${i}, one of many`);
      segments.add(state.checkpoint());
      if (segments.isWasteful) segments = segments.merged();
      const again = { grows: map<number, string>(), stays: map<number, string>() };
      const loaded = new SessionState(again);
      loaded.load(...segments.all);
      assert.deepEqual([again.grows.size, again.stays.size], [round * 50, stays]);
      const share = segments.bytes / loaded.checkpoint(true).length;
      assert.ok(share <= most, `in round ${round} ${share} times the state`);
    }
  }
});
