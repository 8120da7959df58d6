/**
 * Links over TLS. The certificate encrypts and names the listening side; membership is proved by the link's
 * handshake inside, in both directions, and records keep their MAC.
 */
import { joinAddress, splitAddress, TCP, type Transport } from "./transport.ts";
import { dialWebSocket } from "./web_socket.ts";

/** What a site shows to those who dial it, and whom it believes when it dials. */
export type TlsOptions =
  & {
    /** Roots that are trusted beside the system's, PEM: the cluster's own authority. */
    readonly caCerts?: readonly string[];
  }
  & (
    /** Of the listening side, PEM; without them it listens without TLS. */
    | { readonly cert: string; readonly key: string }
    | { readonly cert?: undefined; readonly key?: undefined }
  );

/** Listens with TLS where it has a certificate; dials with TLS, unless an address says "tcp://" or "ws://". */
export function tlsTransport(options: TlsOptions): Transport {
  const caCerts = [...options.caCerts ?? []];
  return {
    listen: (at) => options.cert === undefined ? TCP.listen(at) : listenTls(at, options),
    async dial(address) {
      if (/^wss?:/.test(address)) return await dialWebSocket(address, caCerts);
      const { hostname, port } = splitAddress(address);
      const connection = await Deno.connect({ hostname, port });
      connection.setNoDelay(true);
      if (address.startsWith("tcp://")) return connection;
      return await Deno.startTls(connection, { hostname, caCerts });
    },
  };
}

function listenTls(
  at: { readonly hostname: string; readonly port: number },
  { cert, key }: { readonly cert: string; readonly key: string },
): ReturnType<Transport["listen"]> {
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
}
