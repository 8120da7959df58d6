/**
 * Transports, which make byte connections: TCP here, pipes in memory in memory_transport.ts. A transport knows nothing
 * of sites, secrets or frames.
 */
import type { ByteConnection } from "./byte_connection.ts";
import { dialWebSocket } from "./web_socket.ts";

export interface ByteListener {
  /** Address at which it listens, as `dial` takes it. */
  readonly address: string;
  /** Returns the next connection with the address it comes from, or null when closed. */
  accept(): Promise<{ readonly connection: ByteConnection; readonly source: string } | null>;
  close(): void;
}

export interface Transport {
  listen(at: { readonly hostname: string; readonly port: number }): ByteListener;
  /** Makes a connection. @throws when nobody answers there. */
  dial(address: string): Promise<ByteConnection>;
}

/** Plain TCP: records carry a MAC, nothing is encrypted. Dials with TLS where an address says "tls://". */
export const TCP: Transport = {
  listen(at) {
    const listener = Deno.listen({ transport: "tcp", hostname: at.hostname, port: at.port });
    return {
      address: joinAddress(listener.addr.hostname, listener.addr.port),
      async accept() {
        for (;;) {
          try {
            const connection = await listener.accept();
            connection.setNoDelay(true);
            return { connection, source: connection.remoteAddr.hostname };
          } catch (error) {
            if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) {
              return null;
            }
            // A connection that was reset before it was accepted, or no file descriptor left: the site lives.
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
    const connection = await Deno.connect({ transport: "tcp", hostname, port });
    connection.setNoDelay(true);
    // An address that asks for TLS is never dialled in clear; the system's roots vouch for the other side then.
    return address.startsWith("tls://") ? await overTls(connection, hostname, []) : connection;
  },
};

/** Returns TLS over a connection, once the other side's certificate is trusted. @throws where it is not. */
export async function overTls(
  connection: Deno.TcpConn,
  hostname: string,
  caCerts: readonly string[],
): Promise<ByteConnection> {
  const tls = await Deno.startTls(connection, { hostname, caCerts: [...caCerts] });
  try {
    await tls.handshake();
  } catch (error) {
    tls.close();
    throw explained(error);
  }
  return tls;
}

/** Returns the error with what to do about a certificate that is not trusted. */
export function explained(error: unknown): unknown {
  if (error instanceof Error && /certificate/i.test(error.message)) {
    error.message +=
      "; tls.ca in the site file names the authorities that this site believes beside the system's";
  }
  return error;
}

/** Returns "host:port", with brackets around an IPv6 address. */
export function joinAddress(hostname: string, port: number): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/**
 * Splits "host:port", "[v6]:port", or either after "tcp://" or "tls://". (Whole URLs, "ws://" and "wss://", are dialled
 * as they are.)
 * @throws TypeError for anything else.
 */
export function splitAddress(address: string): { hostname: string; port: number } {
  const match = /^(?:(?:tcp|tls):\/\/)?(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+)):(\d{1,5})\/?$/.exec(address);
  const hostname = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (hostname === undefined || !(port >= 1 && port <= 65_535)) {
    throw new TypeError(
      `Cannot dial ${
        JSON.stringify(address)
      }: a link address is "host:port", "tcp://host:port" or "tls://host:port"`,
    );
  }
  return { hostname, port };
}
