import { strict as assert } from "node:assert";
import { MemoryTransport, overWebSocket, TCP, tlsTransport, type Transport } from "../../runtime/link/mod.ts";
import type { ByteConnection } from "../../runtime/link/byte_connection.ts";
import { LinkSite, until, withSites } from "../runtime/link/sites.ts";
import { linkContract } from "./link_contract.ts";

linkContract("TCP", () => TCP);
linkContract("memory", () => new MemoryTransport());

/** A certificate for localhost and 127.0.0.1, of an authority of the tests' own. */
const pem = (name: string) => Deno.readTextFileSync(new URL(`../runtime/link/tls/${name}`, import.meta.url));
const TLS = { cert: pem("site.pem"), key: pem("site.key"), caCerts: [pem("ca.pem")] };

linkContract("TLS", () => tlsTransport(TLS));

Deno.test("link over TLS: who speaks no TLS, or does not trust the certificate, stays out", () =>
  withSites(tlsTransport(TLS), async (start) => {
    const core = start({ site: "core" });
    const bare = new LinkSite(TCP, new Map(), {
      site: "bare",
      parent: { site: "core", address: core.address.replace("tls:", "tcp:") },
    });
    const wary = new LinkSite(TCP, new Map(), {
      site: "wary",
      parent: { site: "core", address: core.address },
    });
    await until("both gave up", () => [bare, wary].every(({ log }) => log.length > 0));
    assert.match(String(wary.log[0]?.reason), /certificate/i);
    assert.deepEqual([bare.events, wary.events, core.events], [[], [], []]);
    await Promise.all([bare.hub.close(), wary.hub.close()]);
  }));

/** Sites that are dialled over WebSocket only: each listens over HTTP as well, as a gateway does. */
const webSockets = (): Transport & { settled(): Promise<void> } => {
  const opened: ByteConnection[] = [];
  return {
    listen(at) {
      const arrivals: { connection: ByteConnection; source: string }[] = [];
      let wake = Promise.withResolvers<void>();
      let closed = false;
      const server = Deno.serve({ ...at, onListen: () => {} }, (request) => {
        const { socket, response } = Deno.upgradeWebSocket(request);
        overWebSocket(socket).then((connection) => {
          opened.push(connection);
          arrivals.push({ connection, source: "web" });
          wake.resolve();
        }, () => {});
        return response;
      });
      return {
        address: `ws://127.0.0.1:${server.addr.port}`,
        async accept() {
          for (;;) {
            const arrival = arrivals.shift();
            if (arrival || closed) return arrival ?? null;
            wake = Promise.withResolvers();
            await wake.promise;
          }
        },
        close() {
          closed = true;
          wake.resolve();
          void server.shutdown();
        },
      };
    },
    dial: async (address) => {
      const connection = await TCP.dial(address);
      opened.push(connection);
      return connection;
    },
    // One that was closed waits for the other side, which has a time for that.
    settled: async () => void await Promise.all(opened.map(({ closed }) => closed)),
  };
};

linkContract("WebSocket", webSockets);
