/** An agent for clients, as it ends. */
import assert from "node:assert/strict";
import { type MessageSocket, SocketQueue } from "../../../runtime/gateway/message_socket.ts";
import { ClientAgent } from "../../../runtime/origins/client_agent.ts";

Deno.test("an agent that is stopped closes what is attached, and waits for nobody who looks for a site", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const queue = new SocketQueue(), closed: number[] = [], asked = Promise.withResolvers<void>();
  const peer: MessageSocket = {
    next: () => queue.next(),
    send: () => Promise.resolve(),
    close: (code, reason) => {
      closed.push(code);
      queue.push({ kind: "close", code, reason });
    },
  };
  let count = 0;
  const agent = new ClientAgent({
    listener,
    attach: () => {
      if (++count === 1) return Promise.resolve(peer);
      asked.resolve();
      return new Promise(() => {});
    },
    idOf: () => "x",
    note: (text) => assert.fail(text),
  });
  const stop = new AbortController();
  const running = agent.run(stop.signal);
  const { port } = listener.addr;
  const first = await Deno.connect({ hostname: "127.0.0.1", port });
  const second = await Deno.connect({ hostname: "127.0.0.1", port });
  await asked.promise;
  stop.abort();
  await running;
  assert.equal(closed.length > 0, true);
  for (const connection of [first, second]) {
    assert.equal(await connection.read(new Uint8Array(1)), null, "it is closed");
    connection.close();
  }
});
