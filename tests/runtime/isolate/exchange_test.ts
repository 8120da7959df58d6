/** A request inside the isolate: what leaves for it, whatever its handler does. */
import assert from "node:assert/strict";
import { IsolateExchange, type LoadedApp } from "../../../runtime/isolate/inside/exchange.ts";
import { Payload } from "../../../runtime/isolate/frame_reader.ts";
import { FrameWriter } from "../../../runtime/isolate/frame_writer.ts";
import { HEADER_BYTES, ISOLATE_FRAME } from "../../../runtime/isolate/frames.ts";
import { BODY, SETTLED, writeRequestHead } from "../../../runtime/isolate/heads.ts";

const HEADS: ReadonlySet<number> = new Set([
  ISOLATE_FRAME.response,
  ISOLATE_FRAME.upgrade,
  ISOLATE_FRAME.failed,
]);

/** Collects frames; credit of bodies is not asked for. */
function recorded(): { writer: FrameWriter; frames: () => Promise<{ type: number; payload: Uint8Array }[]> } {
  const sent: number[] = [];
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      for (const byte of batch) sent.push(byte);
      return Promise.resolve(batch.length);
    },
  }, () => {});
  const frames = async () => {
    await writer.drained();
    const bytes = Uint8Array.from(sent), view = new DataView(bytes.buffer);
    const found: { type: number; payload: Uint8Array }[] = [];
    for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at, true)) {
      const end = at + 4 + view.getUint32(at, true);
      found.push({ type: bytes[at + 4] ?? -1, payload: bytes.slice(at + HEADER_BYTES, end) });
    }
    return found;
  };
  return { writer, frames };
}

async function requestPayload(): Promise<Payload> {
  const { writer, frames } = recorded();
  const own = ["session", "edge-1", "1", ""];
  writeRequestHead(
    writer.begin(ISOLATE_FRAME.request, 1),
    own,
    { method: "GET", url: "http://localhost/", headers: [] },
    BODY.none,
  );
  writer.end();
  const [frame] = await frames();
  return new Payload(frame?.payload ?? new Uint8Array());
}

type Handler = (exchange: IsolateExchange) => unknown;

/** Numbers of heads and of ends that leave for a request with this handler. */
async function leaves(handler: Handler): Promise<{ heads: number; ends: number; failed: number }> {
  const { writer, frames } = recorded();
  const app: LoadedApp = {
    fetch: (_request, _env, ctx) => {
      void ctx;
      return handler(exchange);
    },
    scheduled: () => {},
    queue: () => {},
    env: () => ({}),
    waitUntilMs: 1_000,
  };
  const exchange: IsolateExchange = new IsolateExchange(app, writer, 1, () => {});
  const request = exchange.open(await requestPayload());
  assert.ok(request !== null);
  await exchange.run(request);
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 0));
  const all = await frames();
  const isEnd = ({ type, payload }: { type: number; payload: Uint8Array }) =>
    type === ISOLATE_FRAME.settled ||
    type === ISOLATE_FRAME.response && ((payload[2] ?? 0) & SETTLED) !== 0;
  return {
    heads: all.filter(({ type }) => HEADS.has(type)).length,
    ends: all.filter(isEnd).length,
    failed: all.filter(({ type }) => type === ISOLATE_FRAME.failed).length,
  };
}

const soon = () => new Promise((resolve) => setTimeout(resolve, 1));

const ANSWERS: readonly (readonly [what: string, handler: Handler])[] = [
  ["a text", () => new Response("x")],
  ["nothing", () => new Response(null, { status: 204 })],
  ["a promise", async () => (await soon(), new Response("x"))],
  ["a stream", () => new Response(new Blob(["x"]).stream())],
  ["an empty stream", () => new Response(new ReadableStream({ start: (stream) => stream.close() }))],
  ["a stream that breaks", () => new Response(new ReadableStream({ start: (stream) => stream.error(1) }))],
  ["a text, and more to do", (exchange) => (exchange.waitUntil(soon()), new Response("x"))],
  ["a stream, and more to do that fails", (exchange) => {
    exchange.waitUntil(soon().then(() => Promise.reject(new Error("late"))));
    return new Response(new Blob(["x"]).stream());
  }],
  ["a text, and it is cancelled then", (exchange) => {
    queueMicrotask(() => queueMicrotask(() => exchange.cancel()));
    return new Response("x");
  }],
];

const FAULTS: readonly (readonly [what: string, handler: Handler])[] = [
  ["throws", () => {
    throw new Error("at once");
  }],
  ["rejects", async () => {
    await soon();
    throw new Error("later");
  }],
  ["throws no error", () => Promise.reject(null)],
  ["answers nothing", () => undefined],
  ["answers a text", () => "x"],
  ["answers a body that was read", async () => {
    const response = new Response(new Blob(["x"]).stream());
    await response.text();
    return response;
  }],
  ["fails with more to do", (exchange) => {
    exchange.waitUntil(soon());
    throw new Error("at once");
  }],
];

Deno.test("one answer and one end leave for a request, whatever its handler answers (X1)", async () => {
  const { error } = console;
  console.error = () => {}; // what fails late is logged
  try {
    for (const [what, handler] of ANSWERS) {
      assert.deepEqual(await leaves(handler), { heads: 1, ends: 1, failed: 0 }, what);
    }
  } finally {
    console.error = error;
  }
});

Deno.test("of a request that is cancelled its end leaves, and nothing that its handler does then (X1)", async () => {
  const { error } = console;
  console.error = () => {};
  try {
    for (const late of [() => new Response("x"), () => Promise.reject(new Error("late"))]) {
      const handler: Handler = async (exchange) => {
        exchange.cancel();
        await soon();
        return await late();
      };
      assert.deepEqual(await leaves(handler), { heads: 0, ends: 1, failed: 0 });
    }
  } finally {
    console.error = error;
  }
});

Deno.test("a fault of a handler is its request's failure, and nobody's error (X1, X2)", async () => {
  for (const [what, handler] of FAULTS) {
    assert.deepEqual(await leaves(handler), { heads: 1, ends: 1, failed: 1 }, what);
  }
});
