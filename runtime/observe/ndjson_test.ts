import { strict as assert } from "node:assert";
import { readNdjson } from "./ndjson.ts";

const encoder = new TextEncoder();

/** A body of pieces; `left` tells whether its reader has gone. */
function bodyOf(pieces: Iterable<string>) {
  const state = { left: false, taken: 0 };
  const from = pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = from.next();
      if (done === true) return controller.close();
      state.taken++;
      controller.enqueue(encoder.encode(value));
    },
    cancel: () => void (state.left = true),
  }, { highWaterMark: 0 });
  return { state, body };
}

Deno.test("lines are read whole, wherever they are cut, and a blank one is a sign of life", async () => {
  const { body } = bodyOf(['{"a"', ":1}\n\n", '{"a":2}\n{"a":3}']);
  assert.deepEqual(await Array.fromAsync(readNdjson(body)), [{ a: 1 }, undefined, { a: 2 }, { a: 3 }]);
});

Deno.test("a line that does not end is read so far and no further (J1)", async () => {
  const piece = "x".repeat(1 << 16);
  const { state, body } = bodyOf((function* () {
    for (let i = 0; i < 1_000; i++) yield piece;
  })());
  await assert.rejects(Array.fromAsync(readNdjson(body)), /a line of more than/);
  assert.ok(state.left, "what comes is not waited for");
  assert.ok(state.taken <= 17, `${state.taken} pieces`);
});
