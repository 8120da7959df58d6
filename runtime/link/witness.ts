/**
 * Finds out whether a site to which a link was lost still listens. A process that was killed leaves its connections
 * reset and nothing that listens at its address: a connection there is refused at once, by the kernel, which lives.
 *
 * Life: a link ends, or somebody wants to know → `look` dials its address, a few times → refused: `refused` is called.
 *
 * WI1  Only a refusal is reported. Silence, a connection that is taken, an address behind a proxy prove nothing: a site
 *      that stands still, or is cut off, is found by those that count its silence.
 * WI2  Nothing is reported of a site to which a link is up, nor while that link is emulated as cut.
 */
import { type ByteConnection, closeQuietly } from "./byte_connection.ts";
import type { Emulation } from "./emulation.ts";
import type { Transport } from "./transport.ts";

export interface WitnessPorts {
  readonly transport: Pick<Transport, "dial">;
  readonly emulation: Emulation;
  /** Returns the address at which a site listens; null: not known. */
  readonly addressOf: (site: string) => string | null;
  readonly isLive: (site: string) => boolean;
  readonly refused: (site: string) => void;
}

/**
 * Milliseconds after a loss at which the address is dialled: a process that ends closes its sockets one by one, and its
 * listener may be a moment later than its connections.
 */
const LOOKS_MS: readonly number[] = [0, 2, 10, 50];

/** Looks whether sites still listen. */
export class Witness {
  readonly #ports: WitnessPorts;
  readonly #looking = new Set<string>();
  #closed = false;

  constructor(ports: WitnessPorts) {
    this.#ports = ports;
  }

  /** Looks at a site's address, unless that is being done; a few times where it was just lost. */
  look(site: string, wasLost: boolean): void {
    const address = this.#ports.addressOf(site);
    if (address === null || this.#looking.has(site) || this.#closed) return;
    this.#looking.add(site);
    const looks = wasLost ? LOOKS_MS : LOOKS_MS.slice(0, 1);
    void this.#look(site, address, looks).finally(() => this.#looking.delete(site));
  }

  /** Handles a connection to a site that could not be made. */
  failed(site: string, error: unknown): void {
    const { isLive, emulation, refused } = this.#ports;
    const isRefusal = error instanceof Deno.errors.ConnectionRefused;
    if (isRefusal && !this.#closed && !isLive(site) && !emulation.of(site).cut) refused(site); // WI2
  }

  close(): void {
    this.#closed = true;
  }

  async #look(site: string, address: string, looks: readonly number[]): Promise<void> {
    const { transport, emulation, isLive } = this.#ports;
    const { timer } = emulation;
    for (const afterMs of looks) {
      const { cut, shape } = emulation.of(site);
      if (cut || this.#closed || isLive(site)) return;
      const waitMs = afterMs + (shape?.rttMs ?? 0);
      if (waitMs > 0) {
        await new Promise<void>((resolve) => timer.at(performance.now() + waitMs, resolve));
      }
      let connection: ByteConnection;
      try {
        connection = await transport.dial(address);
      } catch (error) {
        return this.failed(site, error);
      }
      closeQuietly(connection);
    }
  }
}
