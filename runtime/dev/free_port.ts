/**
 * Free TCP ports of this machine, known before the processes that will listen on them start: so that sites can
 * start in any order and come back to the same address.
 *
 * Life: `draw`, as often as wanted → disposed, when nothing will listen on them any more.
 *
 * FP1 No port is drawn twice at a time, in different processes neither, though nothing may listen on it yet, or just
 *     now: whoever draws it holds the UDP port of the same number, on which no site listens, until disposed or until
 *     the process ends.
 */
import { createSocket, type Socket } from "node:dgram";

const HOST = "127.0.0.1";

/**
 * Lowest and highest port: below the range from which Linux draws ports of outgoing connections, which would take one
 * of ours meanwhile.
 */
const PORT_MIN = 10_000;
const PORT_MAX = 32_000;

/** Tries before giving up: even with half of the range taken, failing this often does not happen. */
const TRIES_MAX = 200;

/** Draws ports, and holds them. */
export class FreePorts implements Disposable {
  readonly #held: Socket[] = [];
  readonly #min: number;
  readonly #max: number;

  /** @param min the lowest port; ports are below `max`. */
  constructor(min: number = PORT_MIN, max: number = PORT_MAX) {
    this.#min = min;
    this.#max = max;
  }

  /** Returns a port of 127.0.0.1 on which nothing listens, and that no other process draws. */
  async draw(): Promise<number> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const port = this.#min + Math.floor(Math.random() * (this.#max - this.#min));
      if (await this.#hold(port)) return port;
    }
    throw new Error(
      `found no free port of ${HOST} from ${this.#min} to ${this.#max - 1} in ${TRIES_MAX} tries`,
    );
  }

  async #hold(port: number): Promise<boolean> {
    const socket = isFree(port) ? await bound(port) : null; // FP1
    if (socket !== null) this.#held.push(socket);
    return socket !== null;
  }

  /** Releases the ports: others may draw them, soon. */
  [Symbol.dispose](): void {
    for (const socket of this.#held.splice(0)) socket.close();
  }
}

/** Reports whether a port of 127.0.0.1 can be listened on. */
export function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: HOST, port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}

/** Returns a socket that has the UDP port and keeps no process alive; null where another has it. */
function bound(port: number): Promise<Socket | null> {
  const socket = createSocket("udp4");
  return new Promise((resolve, reject) => {
    socket.once("error", (error: Error & { code?: string }) => {
      socket.close();
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(error);
    });
    socket.unref(); // before it is bound: later has no effect
    socket.bind(port, HOST, () => resolve(socket));
  });
}
