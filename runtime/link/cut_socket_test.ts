import { strict as assert } from "node:assert";
import { cutSocket } from "./cut_socket.ts";

/** A handshake by hand, after which nothing is read or answered by itself. */
const HANDSHAKE = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

for (const state of ["open", "closing"] as const) {
  Deno.test(`a WebSocket that is ${state} is ended at once, half a message of it or not`, async () => {
    const taken = Promise.withResolvers<WebSocket>();
    const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      const { socket, response } = Deno.upgradeWebSocket(request);
      socket.addEventListener("open", () => taken.resolve(socket));
      return response;
    });
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
    try {
      await client.write(new TextEncoder().encode(HANDSHAKE));
      const socket = await taken.promise;
      const ended = new Promise((resolve) => socket.addEventListener("close", resolve));
      // The head of a binary message of 1 MiB, and 3 bytes of it.
      await client.write(new Uint8Array([0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 1, 2, 3, 4, 5, 6, 7]));
      if (state === "closing") socket.close(1009, "");
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.notEqual(socket.readyState, WebSocket.CLOSED, "Deno waits for the client's close by itself");
      cutSocket(socket);
      await ended;
      assert.equal(socket.readyState, WebSocket.CLOSED);
      const into = new Uint8Array(1024);
      while (await client.read(into).catch(() => null) !== null); // the handshake, a close, and the end
    } finally {
      client.close();
      await server.shutdown();
    }
  });
}
