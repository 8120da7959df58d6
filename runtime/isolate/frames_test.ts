import assert from "node:assert/strict";
import fc from "fast-check";
import type { Key } from "../../store/model/key.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import { Payload, readFrames } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import {
  BACKLOG_BYTES_MAX,
  FRAME_TO_ISOLATE_BYTES_MAX,
  FrameError,
  HEADER_BYTES,
  ISOLATE_FRAME,
  type IsolateConnection,
} from "./frames.ts";
import { CONSOLE_LINE_BYTES_MAX, readLogLine } from "./frame_fields.ts";
import {
  readAtomic,
  readGet,
  readList,
  readStoredRows,
  writeAtomic,
  writeGet,
  writeList,
  writeStoredRows,
} from "./store_frames.ts";

/** A connection that keeps what is written, and gives it back in pieces of some sizes. */
class Loop implements IsolateConnection {
  readonly written: number[] = [];
  #at = 0;
  #pieces: number[];

  constructor(pieces: readonly number[] = [], given: readonly number[] = []) {
    this.#pieces = [...pieces];
    this.written.push(...given);
  }

  read(into: Uint8Array): Promise<number | null> {
    const piece = Math.max(1, this.#pieces.shift() ?? into.length);
    const part = this.written.slice(this.#at, this.#at + Math.min(piece, into.length));
    into.set(part);
    this.#at += part.length;
    return Promise.resolve(part.length === 0 ? null : part.length);
  }

  /** Takes at most 1,000 bytes at once, as a full socket would. */
  write(bytes: Uint8Array): Promise<number> {
    const taken = bytes.subarray(0, 1_000);
    for (const byte of taken) this.written.push(byte);
    return Promise.resolve(taken.length);
  }
}

/** A payload as the other end reads it. */
async function payloadOf(write: (writer: FrameWriter) => void): Promise<Payload> {
  const loop = new Loop();
  const writer = new FrameWriter(loop, () => {});
  write(writer.begin(1, 1));
  writer.end();
  await writer.drained();
  let found: Payload | undefined;
  await readFrames(
    loop,
    FRAME_TO_ISOLATE_BYTES_MAX,
    (_type, _id, payload) => found = new Payload(payload.rest()),
  );
  if (found === undefined) throw new Error("no frame came");
  return found;
}

Deno.test("frames come out as they went in, however the connection cuts them", async () => {
  const frame = fc.record({
    type: fc.integer({ min: 0, max: 255 }),
    id: fc.integer({ min: 0, max: 0xffffffff }),
    text: fc.string({ unit: "binary" }),
    bytes: fc.uint8Array({ maxLength: 3_000 }),
    number: fc.double(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(frame, { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 5_000 }), { maxLength: 50 }),
      async (frames, pieces) => {
        const loop = new Loop(pieces);
        const writer = new FrameWriter(loop, () => {});
        for (const { type, id, text, bytes, number } of frames) {
          writer.begin(type, id).text(text).f64(number).bytes(bytes).restText(text).end();
        }
        await writer.drained();
        const got: unknown[] = [];
        await readFrames(loop, FRAME_TO_ISOLATE_BYTES_MAX, (type, id, payload) => {
          const text = payload.text();
          const number = payload.f64();
          const bytes = payload.bytes();
          assert.equal(new TextDecoder().decode(payload.rest()), text);
          got.push({ type, id, text, bytes, number });
        });
        assert.deepEqual(got, frames.map((f) => ({ ...f, text: f.text.toWellFormed() })));
      },
    ),
    { numRuns: 50, seed: 1 },
  );
});

Deno.test("what is taken of a frame as a copy stays as it is while others come into its buffer (F2)", async () => {
  const loop = new Loop([10_000]), count = 200;
  const writer = new FrameWriter(loop, () => {});
  for (let i = 0; i < count; i++) {
    const bytes = new Uint8Array(3_000).fill(i);
    writer.begin(1, i).bytes(bytes).rest(bytes).end();
  }
  await writer.drained();
  const kept: Uint8Array[] = [];
  await readFrames(loop, FRAME_TO_ISOLATE_BYTES_MAX, (_type, _id, payload) => {
    kept.push(payload.bytes(), payload.rest());
  });
  assert.equal(kept.length, 2 * count);
  for (const [i, bytes] of kept.entries()) {
    assert.ok(bytes.every((byte) => byte === Math.floor(i / 2)), `copy ${i}`);
  }
});

Deno.test("a frame larger than the buffer, and one after it, come through", async () => {
  const loop = new Loop();
  const writer = new FrameWriter(loop, () => {});
  writer.begin(1, 1).rest(new Uint8Array(200_000).fill(5)).end();
  writer.begin(2, 2).u8(9).end();
  await writer.drained();
  const got: number[] = [];
  await readFrames(loop, FRAME_TO_ISOLATE_BYTES_MAX, (_type, _id, payload) => got.push(payload.left));
  assert.deepEqual(got, [200_000, 1]);
});

Deno.test("a frame whose writing threw half-way is dropped, the next one is whole", async () => {
  const loop = new Loop();
  const writer = new FrameWriter(loop, () => {});
  writer.begin(1, 1).text("half");
  writer.begin(2, 2).text("whole").end();
  await writer.drained();
  const got: [number, string][] = [];
  await readFrames(
    loop,
    FRAME_TO_ISOLATE_BYTES_MAX,
    (type, _id, payload) => got.push([type, payload.text()]),
  );
  assert.deepEqual(got, [[2, "whole"]]);
});

Deno.test("garbage is refused, and never read beyond its end (F3)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 400 }), async (bytes) => {
      const readers = [readGet, readList, readAtomic, readStoredRows, (p: Payload) => p.text()];
      for (const read of readers) {
        try {
          read(new Payload(Uint8Array.from(bytes)));
        } catch (error) {
          assert.ok(error instanceof FrameError, String(error));
        }
      }
      try {
        await readFrames(new Loop([7, 1, 30], bytes), 10_000, (_type, _id, payload) => payload.rest());
      } catch (error) {
        assert.ok(error instanceof FrameError, String(error));
      }
    }),
    { numRuns: 300, seed: 2 },
  );
});

Deno.test("store calls and rows come out as they went in", async () => {
  const key = fc.uint8Array({ maxLength: 40 }).map((bytes) => String.fromCharCode(...bytes) as Key);
  const value = fc.uint8Array({ maxLength: 100 }).map((bytes) => Uint8Array.of(VALUE_TAG.json, ...bytes));
  const amount = fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) =>
    Uint8Array.of(VALUE_TAG.u64, ...bytes)
  );
  const versionstamp = fc.stringMatching(/^[0-9a-f]{20}$/);
  const level = fc.constantFrom("eventual", "session", "strong");
  const plain = { noNullPrototype: true };
  const mutation = fc.oneof(
    fc.record({ kind: fc.constant("set"), key, value }, plain),
    fc.record({ kind: fc.constant("set"), key, value, expireInMs: fc.nat() }, plain),
    fc.record({ kind: fc.constant("delete"), key }, plain),
    fc.record({ kind: fc.constantFrom("sum", "min", "max"), key, value: amount }, plain),
  );
  const check = fc.record({ key, versionstamp: fc.option(versionstamp) }, plain);
  const request = fc.record({
    start: key,
    end: key,
    limit: fc.oneof(fc.constant(Infinity), fc.nat()),
    reverse: fc.boolean(),
    level,
  }, plain);
  const row = fc.option(fc.record({ key, value, versionstamp }, plain));
  const send = fc.record({
    queue: fc.stringMatching(/^[a-z]{1,8}$/),
    body: value,
    id: fc.stringMatching(/^[a-z]{1,8}$/),
    delayMs: fc.nat(1_000),
  }, { ...plain, requiredKeys: ["queue", "body"] });
  await fc.assert(
    fc.asyncProperty(
      fc.array(key),
      level,
      request,
      fc.array(check),
      fc.array(mutation),
      fc.array(row),
      fc.array(send),
      async (keys, level, request, checks, mutations, rows, sends) => {
        const get = await payloadOf((writer) => writeGet(writer, keys, level));
        assert.equal(get.u8(), 1);
        assert.deepEqual(readGet(get), { keys, level });
        const list = await payloadOf((writer) => writeList(writer, request));
        assert.equal(list.u8(), 2);
        assert.deepEqual(readList(list), request);
        const commit = await payloadOf((writer) => writeAtomic(writer, checks, mutations as never, sends));
        assert.equal(commit.u8(), 3);
        assert.deepEqual(readAtomic(commit), { checks, mutations, sends });
        assert.deepEqual(readStoredRows(await payloadOf((writer) => writeStoredRows(writer, rows))), rows);
      },
    ),
    { numRuns: 50, seed: 3 },
  );
});

Deno.test("frames: who does not read is told of before the memory of the writer fills", () => {
  const told: number[] = [];
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: () => new Promise(() => {}),
  };
  const writer = new FrameWriter(connection, () => {}, (bytes) => told.push(bytes));
  const chunk = new Uint8Array(BACKLOG_BYTES_MAX / 8);
  for (let i = 0; i < 8; i++) writer.begin(1, 1).rest(chunk).end();
  assert.deepEqual(told, []);
  for (let i = 0; i < 8; i++) writer.begin(1, 1).rest(chunk).end();
  assert.ok(told.length > 0 && told.every((bytes) => bytes > BACKLOG_BYTES_MAX));
  writer.close();
});

Deno.test("what waits for a slow reader is kept once, and comes as it was written (FW1)", async () => {
  const reader = Promise.withResolvers<void>(), sent: Uint8Array[] = [];
  let isReading = false, most = 0;
  const writer = new FrameWriter(
    {
      read: () => Promise.resolve(null),
      write: async (bytes) => {
        if (!isReading) await reader.promise;
        const taken = bytes.subarray(0, 100_000);
        sent.push(taken.slice());
        return taken.length;
      },
    },
    () => {},
    undefined,
    (kept) => most = Math.max(most, kept),
  );
  const lengths = Array.from(
    { length: 400 },
    (_, i) => i % 9 === 0 ? 1_000_000 - i : i % 5 === 0 ? 30_000 : i,
  );
  let waiting = 0;
  for (const [i, length] of lengths.entries()) {
    const fields = writer.begin(1, i);
    for (let at = 0; at < length; at += 65_536) {
      fields.rest(new Uint8Array(Math.min(65_536, length - at)).fill(i));
    }
    if (i % 7 === 3) continue; // its writing threw half-way: the next one begins where it did
    fields.end();
    waiting += HEADER_BYTES + length;
    if (i === 20) await new Promise((resolve) => setTimeout(resolve)); // a write begins, and waits
  }
  assert.ok(waiting > 40_000_000 && most < waiting * 1.3 + 4_000_000, `${most} bytes are kept of ${waiting}`);
  isReading = true;
  reader.resolve();
  await writer.drained();
  assert.equal(writer.backlogBytes, 0);
  const came = new Loop([], [0]);
  const bytes = new Uint8Array(await new Blob(sent as never).arrayBuffer());
  let at = 0;
  came.read = (into) => {
    const part = bytes.subarray(at, at + into.length);
    into.set(part);
    at += part.length;
    return Promise.resolve(part.length === 0 ? null : part.length);
  };
  const read: number[] = [];
  await readFrames(came, 2_000_000, (_type, id, payload) => {
    read.push(id);
    const body = payload.rest();
    assert.equal(body.length, lengths[id]);
    assert.ok(body.every((byte) => byte === (id & 0xff)));
  });
  assert.deepEqual(read, lengths.map((_, i) => i).filter((i) => i % 7 !== 3));
});

Deno.test("what an app says is read as far as it is kept, however long it is, and never half a character", async () => {
  let sent = new Uint8Array();
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (bytes) => {
      sent = bytes.slice(HEADER_BYTES);
      return Promise.resolve(bytes.length);
    },
  }, () => {});
  const line = "x" + "€".repeat(1_000_000);
  writer.begin(ISOLATE_FRAME.log, 1).text("info").text(line).end();
  await writer.drained();
  const payload = new Payload(sent);
  const read = readLogLine(payload);
  assert.equal(payload.left, 0);
  const [kept = "", more = ""] = read.text.split("…");
  assert.ok(
    line.startsWith(kept) && kept.length > 10_000 && kept.length <= CONSOLE_LINE_BYTES_MAX / 3 + 1,
    `${kept.length}`,
  );
  assert.equal(more, " (3000001 bytes)");
});
