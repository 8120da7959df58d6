import assert from "node:assert/strict";
import { AppTurns } from "./app_turns.ts";
import { BodySender, WINDOW_BYTES } from "./bodies.ts";
import { FrameWriter } from "./frame_writer.ts";
import { CHUNK_BYTES_MAX, HEADER_BYTES } from "./frames.ts";

Deno.test("many bodies that a site sends its isolate take turns of the app (AT5)", async () => {
  const count = 40, chunks = WINDOW_BYTES / CHUNK_BYTES_MAX;
  const batches: number[] = [];
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      batches.push(Math.round(batch.length / (CHUNK_BYTES_MAX + HEADER_BYTES)));
      return Promise.resolve(batch.length);
    },
  }, () => {});
  const turns = new AppTurns();
  const sent = await Promise.all(Array.from({ length: count }, (_, id) => {
    const body = new BodySender(writer, id, { credit: WINDOW_BYTES, turns });
    return body.send(
      ReadableStream.from(Array.from({ length: chunks }, () => new Uint8Array(CHUNK_BYTES_MAX))),
    );
  }));
  await writer.drained();
  assert.deepEqual(sent, Array.from({ length: count }, () => WINDOW_BYTES));
  assert.equal(batches.reduce((sum, each) => sum + each, 0), count * chunks);
  assert.ok(Math.max(...batches) <= 30, `${batches} chunks in a turn each`);
});
