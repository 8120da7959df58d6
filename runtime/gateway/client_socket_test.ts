import { strict as assert } from "node:assert";
import { ClientSocket, cutReason } from "./message_socket.ts";

/** A server's and a client's end of one WebSocket, both as the gateway has them, and what each was closed with. */
async function pair() {
  const taken = Promise.withResolvers<WebSocket>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    taken.resolve(socket);
    return response;
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.addr.port}`);
  const accepted = await taken.promise;
  const closed = (socket: WebSocket) =>
    new Promise<[number, string]>((resolve) =>
      socket.addEventListener("close", ({ code, reason }) => resolve([code, reason]))
    );
  return {
    ...{ atServer: new ClientSocket(accepted), atClient: new ClientSocket(client) },
    ...{ serverClosed: closed(accepted), clientClosed: closed(client) },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("a reason that is too long for a close frame is cut, whoever gave it: nothing is thrown where nobody waits", async () => {
  await using ends = await pair();
  ends.atServer.close(4000, "ü".repeat(200));
  assert.deepEqual(await ends.clientClosed, [4000, "ü".repeat(61)]);
  await ends.serverClosed;
});

Deno.test("an end that this process opened may not say every code: it is closed without one", async () => {
  await using ends = await pair();
  ends.atClient.close(1011, "");
  const [code] = await ends.serverClosed;
  assert.equal(code, 1005);
  await ends.clientClosed;
});

Deno.test("a reason is cut to 123 bytes of UTF-8, never within a character", () => {
  const rows: [string, number][] = [["", 0], ["x".repeat(123), 123], ["x".repeat(124), 123], [
    "€".repeat(50),
    123,
  ], [
    "x" + "🙂".repeat(40),
    121,
  ]];
  for (const [reason, bytes] of rows) {
    const cut = cutReason(reason);
    assert.equal(new TextEncoder().encode(cut).length, bytes, reason);
    assert.ok(cut.isWellFormed());
  }
});
