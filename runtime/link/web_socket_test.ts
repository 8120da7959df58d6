import { strict as assert } from "node:assert";
import type { ByteConnection } from "./byte_connection.ts";
import { overWebSocket } from "./web_socket.ts";

const HANDSHAKE = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/** A stranger over TCP, after his WebSocket handshake, and what his site has of him. */
async function stranger() {
  const taken = Promise.withResolvers<ByteConnection>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    overWebSocket(socket).then(taken.resolve, taken.reject);
    return response;
  });
  const tcp = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
  await tcp.write(new TextEncoder().encode(HANDSHAKE));
  const connection = await taken.promise;
  return {
    connection,
    /** A binary message, or the first bytes of one. */
    async say(length: number, sent = length) {
      const head = new Uint8Array([0x82, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
      new DataView(head.buffer).setUint32(6, length);
      await tcp.write(head);
      for (let at = 0; at < sent;) at += await tcp.write(new Uint8Array(Math.min(sent - at, 65_536)));
    },
    /** Resolves when his connection has ended. */
    async gone() {
      const into = new Uint8Array(65_536);
      while (await tcp.read(into).catch(() => null) !== null);
    },
    async [Symbol.asyncDispose]() {
      connection.close();
      tcp.close();
      await server.shutdown();
    },
  };
}

Deno.test("a stranger over WebSocket has room for a handshake, and is closed for more", async () => {
  await using one = await stranger();
  await one.say(1_000);
  const into = new Uint8Array(4_096);
  assert.equal(await one.connection.read(into), 1_000);
  await one.say(8_192);
  await one.gone();
  assert.equal(await one.connection.read(into), null);
});

Deno.test("who has proved to be a member has room for what a link carries", async () => {
  await using one = await stranger();
  one.connection.proved?.();
  await one.say(1 << 20);
  const into = new Uint8Array(2 << 20);
  let bytes = 0;
  while (bytes < 1 << 20) bytes += await one.connection.read(into) ?? assert.fail("it was closed");
  assert.equal(bytes, 1 << 20);
});

Deno.test("half a message of a stranger is gone with him soon after he is closed, whatever he does", async () => {
  await using one = await stranger();
  await one.say(32 << 20, 4 << 20);
  one.connection.close();
  const begunMs = performance.now();
  await one.gone();
  assert.ok(performance.now() - begunMs < 10_000);
});
