import { strict as assert } from "node:assert";
import { type ReceivedWatch, watchReceived } from "./received.ts";

const HANDSHAKE = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
const LATE_MS = 60_000;

/** The head of a binary message, masked with nothing. */
function headOf(bytes: number): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(14);
  head.set([0x82, 0xff]);
  new DataView(head.buffer).setBigUint64(2, BigInt(bytes));
  return head;
}

for (const hostname of ["127.0.0.1", "::1", "::"]) {
  Deno.test({
    name:
      `what has come of a message is told before it is whole, and pings are none of it (KR1, KR2; ${hostname})`,
    ignore: Deno.build.os !== "linux",
    async fn() {
      const told: number[] = [];
      let heard = 0, watch: ReceivedWatch | undefined;
      const closed = Promise.withResolvers<void>();
      const server = Deno.serve({ port: 0, hostname, onListen: () => {} }, (request, { remoteAddr }) => {
        const { socket, response } = Deno.upgradeWebSocket(request);
        watch = watchReceived(remoteAddr, (bytes) => told.push(bytes));
        socket.onmessage = () => {
          heard++;
          watch?.whole();
        };
        socket.onclose = () => {
          watch?.end();
          closed.resolve();
        };
        return response;
      });
      const client = await Deno.connect({
        hostname: hostname === "::" ? "127.0.0.1" : hostname, // of which the server sees ::ffff:127.0.0.1
        port: server.addr.port,
      });
      const send = async (bytes: Uint8Array) => {
        for (let at = 0; at < bytes.length;) at += await client.write(bytes.subarray(at));
      };
      const until = async (what: string, isSo: () => boolean) => {
        const lateMs = performance.now() + LATE_MS;
        while (!isSo()) {
          assert.ok(performance.now() < lateMs, `${what}: ${told}`);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      };
      const reading = (async () => {
        const into = new Uint8Array(4_096);
        while (await client.read(into).catch(() => null) !== null);
      })();
      try {
        await send(new TextEncoder().encode(HANDSHAKE));
        await until("it is found", () => watch?.read !== null && watch?.read !== undefined);
        const BYTES = 1_000_000, half = new Uint8Array(BYTES / 2);
        await send(headOf(BYTES));
        await send(half);
        await until("half of it has come", () => (told.at(-1) ?? 0) > BYTES / 2 - 8_192);
        assert.ok((told.at(-1) ?? 0) <= BYTES / 2 + 14, `${told}`);
        assert.equal(heard, 0);
        await send(half);
        await until("nothing is on its way", () => heard === 1 && told.at(-1) === 0);
        const before = told.length;
        for (let i = 0; i < 20; i++) await send(new Uint8Array([0x89, 0x80, 0, 0, 0, 0]));
        const read = watch?.read ?? 0;
        await until("pings were seen", () => (watch?.read ?? 0) >= read + 20 * 6);
        assert.equal(told.length, before, `${told}`);
      } finally {
        client.close();
        await reading;
        await closed.promise;
        await server.shutdown();
      }
    },
  });
}
