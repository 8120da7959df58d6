import { strict as assert } from "node:assert";
import { encodeSocketFrame, LinkSocket } from "./link_socket.ts";
import { bridge, type SocketEvent } from "./message_socket.ts";

type Bytes = Uint8Array<ArrayBuffer>;
const through = () => new TransformStream<Bytes, Bytes>();

/** Two ends over streams that cut their bytes anywhere. */
function pair(cut: number): [LinkSocket, LinkSocket] {
  const a = through(), b = through();
  const recut = () =>
    new TransformStream<Bytes, Bytes>({
      transform(chunk, controller) {
        for (let at = 0; at < chunk.length; at += cut) controller.enqueue(chunk.slice(at, at + cut));
      },
    });
  return [
    new LinkSocket(b.readable.pipeThrough(recut()), a),
    new LinkSocket(a.readable.pipeThrough(recut()), b),
  ];
}

Deno.test("messages cross a link whole and in order, then the close (MK1)", async () => {
  for (const cut of [1, 3, 7, 4096]) {
    const [left, right] = pair(cut);
    const messages: (string | Bytes)[] = [
      "",
      "grüße",
      new Uint8Array(),
      new Uint8Array([1, 2, 3]),
      "x".repeat(10_000),
    ];
    const sent = (async () => {
      for (const message of messages) await left.send(message);
      left.close(4002, "enough");
      await left.send("after the close");
    })();
    for (const message of messages) assert.deepEqual(await right.next(), { kind: "message", data: message });
    const close: SocketEvent = { kind: "close", code: 4002, reason: "enough" };
    assert.deepEqual(await right.next(), close);
    assert.deepEqual(await right.next(), close);
    await sent;
    right.close(1000, "");
    await left.next();
  }
});

Deno.test("a stream that breaks off reads as closed abnormally (LKS1)", async () => {
  const rows: Bytes[] = [
    new Uint8Array(),
    new Uint8Array([0, 0]),
    encodeSocketFrame(1, new TextEncoder().encode("cut")).slice(0, 6),
    new Uint8Array([255, 255, 255, 255, 1]),
    new Uint8Array([0, 0, 0, 1, 9]),
    encodeSocketFrame(3, new Uint8Array([1])),
  ];
  for (const bytes of rows) {
    const out = through();
    const socket = new LinkSocket(ReadableStream.from([bytes]), out);
    assert.deepEqual(await socket.next(), { kind: "close", code: 1006, reason: "" });
    socket.close(1000, "");
    await out.readable.cancel();
  }
});

Deno.test("a bridge closes the other side with the same code (MK2)", async () => {
  const [client, mine] = pair(100);
  const [theirs, app] = pair(100);
  const bridged = bridge(mine, theirs);
  await client.send("hello");
  assert.deepEqual(await app.next(), { kind: "message", data: "hello" });
  await app.send("hi");
  assert.deepEqual(await client.next(), { kind: "message", data: "hi" });
  app.close(4003, "done");
  assert.deepEqual(await client.next(), { kind: "close", code: 4003, reason: "done" });
  client.close(1000, "");
  await bridged;
  await app.next();
});
