/** One connection, and a member at its other end that keeps to no rule but the records' keys. */
import { strict as assert } from "node:assert";
import { Connection, type ConnectionHandlers } from "../../../runtime/link/connection.ts";
import { zeroCounters } from "../../../runtime/link/counters.ts";
import { Emulation } from "../../../runtime/link/emulation.ts";
import { encodeFrame, LINK_FRAME } from "../../../runtime/link/frame.ts";
import { DEFAULT_LINK_LIMITS } from "../../../runtime/link/limits.ts";
import { RecordWriter } from "../../../runtime/link/record.ts";
import { Wire } from "../../../runtime/link/wire.ts";
import { bytes, textOf } from "./sites.ts";

const KEY = new Uint8Array(32).fill(3);

interface Bench {
  readonly connection: Connection;
  readonly counters: ReturnType<typeof zeroCounters>;
  /** Lengths of the writes so far. */
  readonly writes: number[];
  /** Has the other side send frames, in one record. */
  receive(...frames: Uint8Array[]): void;
}

/** Runs with a connection; what comes over it is told here. */
async function withConnection(
  handlers: Partial<ConnectionHandlers>,
  run: (bench: Bench) => Promise<void>,
): Promise<void> {
  const incoming: Uint8Array[] = [], writes: number[] = [];
  let wake = () => {}, isClosed = false;
  const emulation = new Emulation(() => null, Math.random), counters = zeroCounters();
  const wire = new Wire({
    read: async (into) => {
      while (incoming.length === 0 && !isClosed) await new Promise<void>((resolve) => wake = resolve);
      const [next] = incoming;
      if (next === undefined) return null;
      const count = Math.min(into.length, next.length);
      into.set(next.subarray(0, count));
      if (count === next.length) incoming.shift();
      else incoming[0] = next.subarray(count);
      return count;
    },
    write: (data) => (writes.push(data.length), Promise.resolve(data.length)),
    close: () => {
      isClosed = true;
      wake();
    },
  }, emulation);
  const connection = new Connection({
    ...{ wire, dialer: true, limits: DEFAULT_LINK_LIMITS, counters, nowMs: () => performance.now() },
    acquaintance: {
      ...{ site: "edge", incarnation: "i", boot: new Uint8Array(8), sendKey: KEY, receiveKey: KEY },
      leftover: new Uint8Array(),
    },
    handlers: {
      message: () => {},
      request: ({ head, body }) => Promise.resolve({ head, body }),
      ...handlers,
    },
  });
  const writer = new RecordWriter(KEY);
  const receive = (...frames: Uint8Array[]) => {
    writer.begin();
    for (const frame of frames) writer.append(frame);
    incoming.push(writer.seal().slice());
    wake();
  };
  try {
    await run({ connection, counters, writes, receive });
  } finally {
    connection.abort("the test is over");
    await emulation.timer.close();
  }
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
const message = (text: string) => encodeFrame(LINK_FRAME.message, [], bytes(text));

Deno.test("frames that are sent in one turn of the event loop leave as one record (connection.ts CX1)", () =>
  withConnection({}, async ({ connection, writes }) => {
    const running = connection.run();
    await turn();
    writes.length = 0; // a ping
    for (let i = 0; i < 100; i++) void connection.send(bytes(`message ${i}`));
    await turn();
    assert.equal(writes.length, 1);
    connection.abort("enough");
    await running;
  }));

Deno.test("who sends more than it was given credit for loses the connection, and little is held of it (connection.ts CX2, messages.ts LM2)", async () => {
  const window = DEFAULT_LINK_LIMITS.messageWindowBytes, BYTES = 20_000;
  let delivered = 0;
  const never = new Promise<void>(() => {});
  await withConnection({ message: () => (delivered++, never) }, async ({ connection, counters, receive }) => {
    const running = connection.run(), frame = encodeFrame(LINK_FRAME.message, [], new Uint8Array(BYTES));
    for (let sent = 0; sent < 2 * window; sent += BYTES) receive(frame);
    const ending = await running;
    assert.deepEqual([ending.violation, ending.reason], [true, "store messages beyond the credit"]);
    assert.equal(delivered, 1);
    assert.ok(counters.storeBytesIn <= window + 2 * BYTES, `${counters.storeBytesIn} bytes were taken`);
  });
});

for (
  const [what, frames] of [
    ["a frame of no type", [new Uint8Array([77, 0, 0, 0])]],
    ["credit beyond the window", [encodeFrame(LINK_FRAME.messageCredit, [0xffffffff])]],
    ["a part of no message", [encodeFrame(LINK_FRAME.messagePart, [], new Uint8Array(10))]],
    ["a message beyond the limit", [encodeFrame(LINK_FRAME.messageBegin, [0xfffffff0], new Uint8Array(10))]],
    ["a frame that ends too soon", [new Uint8Array([LINK_FRAME.message, 0, 0, 9, 1])]],
  ] as const
) {
  Deno.test(`a breach of the protocol ends its connection, and is said to be one: ${what} (connection.ts CX2)`, () =>
    withConnection({}, async ({ connection, receive }) => {
      const running = connection.run();
      receive(...frames);
      assert.equal((await running).violation, true);
    }));
}

Deno.test("nothing is delivered when a connection has ended, and it ends once (connection.ts CX3)", async () => {
  const heard: string[] = [];
  const bench = { connection: null as Connection | null };
  await withConnection({
    message: (data) => {
      heard.push(textOf(data));
      if (heard.length === 2) bench.connection?.abort("the second was too much");
    },
    request: () => (heard.push("a request"), Promise.resolve({ head: bytes("") })),
  }, async ({ connection, receive }) => {
    bench.connection = connection;
    const running = connection.run();
    receive(...["one", "two", "three"].map(message), encodeFrame(LINK_FRAME.goodbye, [], bytes("bye")));
    receive(message("four"));
    assert.deepEqual(await running, {
      ...{ planned: false, violation: false },
      reason: "the second was too much",
    });
    receive(message("five"));
    await turn();
    assert.deepEqual(heard, ["one", "two"]);
  });
});
