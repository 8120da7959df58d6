import assert from "node:assert/strict";
import { FrameWriter } from "../../../runtime/isolate/frame_writer.ts";
import { ISOLATE_FRAME } from "../../../runtime/isolate/frames.ts";
import { IsolateSocket } from "../../../runtime/isolate/inside/sockets.ts";
import { SOCKET_WINDOW_BYTES } from "../../../runtime/isolate/socket_window.ts";

/** Types of the frames that leave. */
function recorded(): { writer: FrameWriter; types: () => Promise<number[]> } {
  const found: number[] = [];
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      const view = new DataView(batch.buffer, batch.byteOffset, batch.length);
      for (let at = 0; at < batch.length; at += 4 + view.getUint32(at, true)) {
        found.push(view.getUint8(at + 4));
      }
      return Promise.resolve(batch.length);
    },
  }, () => {});
  return { writer, types: async () => (await writer.drained(), found) };
}

Deno.test("what is sent before a socket's upgrade has left goes with it, in its order (K1)", async () => {
  const [client, server] = IsolateSocket.pair();
  const { writer, types } = recorded();
  server.send("a");
  server.send(new Uint8Array(1));
  server.send("b");
  server.close();
  assert.deepEqual(await types(), []);
  IsolateSocket.ofUpgrade(client).connect(writer, 1, () => {});
  const { socketText, socketBytes, socketClose } = ISOLATE_FRAME;
  assert.deepEqual(await types(), [socketText, socketBytes, socketText, socketClose]);
});

Deno.test("a socket that its site does not empty keeps the rest, counts it, and sends it when there is room (K2)", async () => {
  const [client, server] = IsolateSocket.pair(), BYTES = 1 << 16;
  const { writer, types } = recorded();
  IsolateSocket.ofUpgrade(client).connect(writer, 1, () => {});
  const count = 4 * SOCKET_WINDOW_BYTES / BYTES;
  for (let i = 0; i < count; i++) server.send(new Uint8Array(BYTES));
  const sent = (await types()).length;
  assert.ok(sent > 0 && sent <= SOCKET_WINDOW_BYTES / BYTES + 1, `${sent} messages of ${count}`);
  assert.equal(server.bufferedAmount, count * BYTES);
  server.taken(sent, sent * BYTES);
  assert.equal(server.bufferedAmount, (count - sent) * BYTES);
  assert.ok((await types()).length > sent);
});
