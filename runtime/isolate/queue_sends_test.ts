import assert from "node:assert/strict";
import { COMMIT_BURST_BYTES } from "./app_turns.ts";
import { AppQueues } from "./app_queues.ts";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { HEADER_BYTES, type IsolateConnection } from "./frames.ts";
import { writeSend } from "./queue_frames.ts";
import { SendsOfRequest } from "./queue_sends.ts";

/** Connection that takes all that is written, and keeps the last batch. */
class Taking implements IsolateConnection {
  last = new Uint8Array();

  read(): Promise<null> {
    return Promise.resolve(null);
  }

  write(batch: Uint8Array): Promise<number> {
    this.last = batch.slice(HEADER_BYTES);
    return Promise.resolve(batch.length);
  }
}

/** Payload of a frame that sends so many messages of so many bytes. */
async function sendOf(messages: number, bytes: number): Promise<Payload> {
  const connection = new Taking(), writer = new FrameWriter(connection, () => {});
  const frame = writer.begin(1, 1).u32(0);
  writeSend(frame, "jobs", Array.from({ length: messages }, () => ({ body: new Uint8Array(bytes) })));
  writer.end();
  await writer.drained();
  return new Payload(connection.last);
}

Deno.test("messages count for what their app may commit, and its frames wait for no owner of theirs (QS2)", async () => {
  const stored: (() => void)[] = [], queues = new AppQueues(), { turns } = queues;
  const port = { send: () => new Promise<void>((resolve) => stored.push(resolve)) };
  const writer = new FrameWriter(new Taking(), () => {});
  const sends = new SendsOfRequest(writer, 1, queues.hold("isolate", () => {}), port);
  // Made before any is sent: what counts over a while counts the time that passes meanwhile.
  const frames: Payload[] = [];
  for (let bytes = 0; bytes < COMMIT_BURST_BYTES; bytes += 1 << 19) frames.push(await sendOf(1, 1 << 19));
  sends.start(await sendOf(1, 1 << 19));
  assert.deepEqual([stored.length, turns.heldBytes, turns.mayGo], [1, 0, true]);
  for (const frame of frames) sends.start(frame);
  assert.ok(!turns.mayGo);
  for (const done of stored) done();
  await writer.drained();
  assert.ok(!turns.mayGo, "time pays for it, and not its end");
});
