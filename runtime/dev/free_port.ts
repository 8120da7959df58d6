/**
 * Free TCP ports of this machine, known before the processes that will listen on them start: so that sites can
 * start in any order and come back to the same address.
 */

/** Below the range from which Linux draws ports of outgoing connections, which would take one of ours meanwhile. */
const PORT_MIN = 10_000;
const PORT_MAX = 32_000;

/** Tries before giving up: even with half of the range taken, failing this often does not happen. */
const TRIES_MAX = 200;

/** Draws ports, each only once. */
export class FreePorts {
  readonly #given = new Set<number>();

  /** A port of 127.0.0.1 that nobody listens on. */
  draw(): number {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const port = PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN));
      if (!this.#given.has(port) && isFree(port)) {
        this.#given.add(port);
        return port;
      }
    }
    throw new Error(
      `found no free port of 127.0.0.1 between ${PORT_MIN} and ${PORT_MAX} in ${TRIES_MAX} tries`,
    );
  }
}

/** Whether a port of 127.0.0.1 can be listened on. */
export function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}
