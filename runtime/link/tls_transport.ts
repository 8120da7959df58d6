/**
 * Links over TLS. The certificate encrypts and names the listening side; membership is proved by the link's
 * handshake inside, in both directions, and records keep their MAC.
 */
import { joinAddress, splitAddress, type Transport } from "./transport.ts";
import { dialWebSocket } from "./web_socket.ts";

export interface TlsOptions {
  /** Of the listening side, PEM. */
  readonly cert: string;
  readonly key: string;
  /** Roots that are trusted beside the system's, PEM: the cluster's own authority. */
  readonly caCerts?: readonly string[];
}

/** Listens with TLS; dials with TLS, unless an address says "tcp://". */
export function tlsTransport(options: TlsOptions): Transport {
  const { cert, key } = options;
  const caCerts = [...options.caCerts ?? []];
  return {
    listen(at) {
      const listener = Deno.listenTls({ hostname: at.hostname, port: at.port, cert, key });
      return {
        address: `tls://${joinAddress(listener.addr.hostname, listener.addr.port)}`,
        async accept() {
          for (;;) {
            try {
              const connection = await listener.accept();
              return { connection, source: connection.remoteAddr.hostname };
            } catch (error) {
              if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) {
                return null;
              }
              await new Promise((resolve) => setTimeout(resolve, 10));
            }
          }
        },
        close: () => listener.close(),
      };
    },
    async dial(address) {
      if (/^wss?:/.test(address)) return await dialWebSocket(address);
      const { hostname, port } = splitAddress(address);
      const connection = await Deno.connect({ hostname, port });
      connection.setNoDelay(true);
      if (address.startsWith("tcp://")) return connection;
      return await Deno.startTls(connection, { hostname, caCerts });
    },
  };
}
