/**
 * Byte connections within one process: the twin of TCP for tests. A network of its own per instance; addresses
 * are `memory:PORT`. Pipes hold a bounded number of bytes, so that a reader that stops stops its writer.
 */
import type { ByteConnection } from "./byte_connection.ts";
import type { ByteListener, Transport } from "./transport.ts";

/** Bytes that a pipe holds: about what a socket on loopback buffers. */
const PIPE_BYTES = 256 * 1024;

class Pipe {
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;
  #broken = false;
  #wake = Promise.withResolvers<void>();

  #changed(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      if (this.#broken) throw new Error("The connection is closed");
      const chunk = this.#chunks[0];
      if (chunk !== undefined) {
        const length = Math.min(chunk.length, into.length);
        into.set(chunk.subarray(0, length));
        if (length === chunk.length) this.#chunks.shift();
        else this.#chunks[0] = chunk.subarray(length);
        this.#bytes -= length;
        this.#changed();
        return length;
      }
      if (this.#ended) return null;
      await this.#wake.promise;
    }
  }

  async write(bytes: Uint8Array): Promise<number> {
    while (this.#bytes >= PIPE_BYTES && !this.#ended && !this.#broken) await this.#wake.promise;
    if (this.#ended || this.#broken) throw new Error("The connection is closed");
    const taken = bytes.slice(0, PIPE_BYTES);
    this.#chunks.push(taken);
    this.#bytes += taken.length;
    this.#changed();
    return taken.length;
  }

  /** Closes the writing end: bytes in the pipe can still be read. */
  end(): void {
    this.#ended = true;
    this.#changed();
  }

  /** Closes the reading end. */
  break(): void {
    this.#broken = true;
    this.#chunks = [];
    this.#changed();
  }
}

function connectionOver(incoming: Pipe, outgoing: Pipe): ByteConnection {
  return {
    read: (into) => incoming.read(into),
    write: (bytes) => outgoing.write(bytes),
    close() {
      incoming.break();
      outgoing.end();
    },
  };
}

/** Returns both ends of a connection. */
export function connectionPair(): [ByteConnection, ByteConnection] {
  const there = new Pipe();
  const back = new Pipe();
  return [connectionOver(back, there), connectionOver(there, back)];
}

type Arrival = { readonly connection: ByteConnection; readonly source: string };

/** A network in memory. */
export class MemoryTransport implements Transport {
  readonly #listeners = new Map<string, (arrival: Arrival) => void>();
  #portNext = 1;

  listen(at: { readonly hostname: string; readonly port: number }): ByteListener {
    const address = `memory:${at.port || this.#portNext++}`;
    if (this.#listeners.has(address)) throw new Error(`Cannot listen at ${address}: it is taken`);
    const arrivals: Arrival[] = [];
    let closed = false;
    let wake = Promise.withResolvers<void>();
    this.#listeners.set(address, (arrival) => {
      arrivals.push(arrival);
      wake.resolve();
    });
    return {
      address,
      async accept() {
        for (;;) {
          if (closed) return null;
          const arrival = arrivals.shift();
          if (arrival) return arrival;
          wake = Promise.withResolvers<void>();
          await wake.promise;
        }
      },
      close: () => {
        closed = true;
        this.#listeners.delete(address);
        for (const arrival of arrivals) arrival.connection.close();
        wake.resolve();
      },
    };
  }

  dial(address: string): Promise<ByteConnection> {
    const listener = this.#listeners.get(address);
    if (!listener) return Promise.reject(new Error(`Cannot dial ${address}: nobody listens there`));
    const [near, far] = connectionPair();
    listener({ connection: far, source: "memory" });
    return Promise.resolve(near);
  }
}
