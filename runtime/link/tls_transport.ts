/**
 * Links over TLS. The certificate encrypts and names the listening side; membership is proved by the link's
 * handshake inside, in both directions, and records keep their MAC.
 */
import {
  type ByteListener,
  explained,
  joinAddress,
  overTls,
  splitAddress,
  TCP,
  type Transport,
} from "./transport.ts";
import { dialWebSocket } from "./web_socket.ts";

/** Certificate that a site shows when it is dialled, and the authorities that it trusts when it dials. */
export type TlsOptions =
  & {
    /** Roots that are trusted beside the system's, PEM: the cluster's own authority. */
    readonly caCerts?: readonly string[];
  }
  & (
    /** Certificate and key of the listening side, PEM; without them it listens without TLS. */
    | { readonly cert: string; readonly key: string }
    | { readonly cert?: undefined; readonly key?: undefined }
  );

/** Links over TLS, whose certificates may be renewed. */
export interface TlsTransport extends Transport {
  /**
   * Uses other certificates from now on; open connections go on. For some milliseconds nothing listens: a site that
   * dials then comes again.
   *
   * @throws where an address could not be listened at again.
   */
  renew(options: TlsOptions): Promise<void>;
}

/** Listens with TLS where it has a certificate; dials with TLS, unless an address says "tcp://" or "ws://". */
export function tlsTransport(first: TlsOptions): TlsTransport {
  let options = first;
  const doors = new Set<TlsDoor>();
  return {
    listen(at) {
      if (options.cert === undefined) return TCP.listen(at);
      const door = new TlsDoor(at, options, () => doors.delete(door));
      doors.add(door);
      return door;
    },
    async dial(address) {
      const caCerts = [...options.caCerts ?? []];
      if (/^wss?:/.test(address)) {
        return await dialWebSocket(address, caCerts).catch((error) => Promise.reject(explained(error)));
      }
      const { hostname, port } = splitAddress(address);
      const connection = await Deno.connect({ hostname, port });
      connection.setNoDelay(true);
      if (address.startsWith("tcp://")) return connection;
      return await overTls(connection, hostname, caCerts);
    },
    async renew(next) {
      options = next;
      if (next.cert !== undefined) { for (const door of doors) await door.renew(next); }
    },
  };
}

/**
 * Milliseconds between tries to listen again, at first and at most: the port is free as soon as the system has seen
 * that nothing listens there.
 */
const AGAIN_MS = 2, AGAIN_MS_MAX = 5_000;

/** A listener that outlives its certificates. */
class TlsDoor implements ByteListener {
  readonly address: string;
  readonly #at: { readonly hostname: string; readonly port: number };
  readonly #closed: () => void;
  #listener: Deno.TlsListener;
  #renewed: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(
    at: { readonly hostname: string; readonly port: number },
    { cert, key }: { readonly cert: string; readonly key: string },
    closed: () => void,
  ) {
    this.#listener = Deno.listenTls({ hostname: at.hostname, port: at.port, cert, key });
    const { hostname, port } = this.#listener.addr;
    this.#at = { hostname, port };
    this.#closed = closed;
    this.address = `tls://${joinAddress(hostname, port)}`;
  }

  async accept() {
    for (;;) {
      await this.#renewed.catch(() => {}); // the error is told by renew
      if (this.#isClosed) return null;
      try {
        const connection = await this.#listener.accept();
        return { connection, source: connection.remoteAddr.hostname };
      } catch {
        // Closed, to be renewed or for good; a connection that was reset before it was accepted; no file descriptor left.
        if (!this.#isClosed) await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  /** Listens with another certificate. @throws where the address could not be listened at again. */
  renew({ cert, key }: { readonly cert: string; readonly key: string }): Promise<void> {
    this.#listener.close();
    const listen = async () => {
      const untilMs = performance.now() + AGAIN_MS_MAX;
      while (!this.#isClosed) {
        try {
          this.#listener = Deno.listenTls({ ...this.#at, cert, key });
          return;
        } catch (error) {
          if (!(error instanceof Deno.errors.AddrInUse) || performance.now() >= untilMs) throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    };
    return this.#renewed = listen();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closed();
    try {
      this.#listener.close();
    } catch {
      // The listener is being renewed, and closed for that.
    }
  }
}
