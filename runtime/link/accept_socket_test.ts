import { strict as assert } from "node:assert";
import { acceptSocket, goneAnswer } from "./accept_socket.ts";

const HANDSHAKE = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
/** The state of a connection whose client has closed it, and this side not (Linux, include/net/tcp_states.h). */
const CLOSE_WAIT = "08";

/** Connections of a port that are in a state. */
function inState(port: number, state: string): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = Deno.readTextFileSync("/proc/net/tcp").split("\n").map((line) => line.trim().split(/\s+/));
  return lines.filter(([, from, , is]) => from?.endsWith(local) && is === state).length;
}

/** How many connections are kept for ever of a client that went before it was upgraded in a way of its own. */
async function keptOf(upgrade: (request: Request) => Promise<Response>): Promise<number> {
  const asked = Promise.withResolvers<void>(), gone = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    asked.resolve();
    await gone.promise;
    return await upgrade(request).finally(() => answered.resolve());
  });
  const { port } = server.addr;
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  await client.write(new TextEncoder().encode(HANDSHAKE));
  await asked.promise;
  client.close();
  const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
  await pause();
  gone.resolve();
  await answered.promise;
  await pause();
  const kept = inState(port, CLOSE_WAIT);
  if (kept === 0) await server.shutdown();
  return kept;
}

Deno.test("a WebSocket whose client has gone is not taken, and its connection is let go", async () => {
  let wasTaken: boolean | undefined;
  const kept = await keptOf(async (request) => {
    const accepted = await acceptSocket(request);
    wasTaken = accepted !== null;
    return accepted?.response ?? goneAnswer();
  });
  assert.equal(wasTaken, false);
  assert.equal(kept, 0);
});

Deno.test({
  name: "Deno keeps the connection of such a one, which is why it is looked first",
  sanitizeOps: false, // its server never ends
  sanitizeResources: false,
  fn: async () => {
    const kept = await keptOf((request) => Promise.resolve(Deno.upgradeWebSocket(request).response));
    assert.equal(kept, 1, "acceptSocket is not needed any more");
  },
});

Deno.test("a WebSocket whose client is there opens, with the subprotocol that was agreed on", async () => {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const accepted = await acceptSocket(request, { protocol: "two" });
    accepted?.socket.addEventListener("message", ({ data }) => accepted.socket.send(`${data}!`));
    return accepted?.response ?? goneAnswer();
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.addr.port}`, ["one", "two"]);
  const said = new Promise((resolve) => client.addEventListener("message", ({ data }) => resolve(data)));
  client.addEventListener("open", () => client.send("here"));
  assert.equal(await said, "here!");
  assert.equal(client.protocol, "two");
  const closed = new Promise((resolve) => client.addEventListener("close", resolve));
  client.close();
  await closed;
  await server.shutdown();
});
