/**
 * Finds out whether a site that a link was lost to still listens. A process that was killed leaves its connections
 * reset and nobody at its address: a connection there is refused at once, by a kernel that lives.
 *
 * Life: a link ends, or somebody wants to know → `look` dials its address, a few times → refused: `refused` is called.
 *
 * W1  Only a refusal is told. Silence, a connection that is taken, an address behind a proxy say nothing: a site that
 *     stands still, or is cut off, is for those who count its silence.
 * W2  Nothing is told of a site that a link is up to, nor while that link is emulated as cut.
 */
import { type ByteConnection, closeQuietly } from "./byte_connection.ts";
import type { Emulation } from "./emulation.ts";
import type { Transport } from "./transport.ts";

export interface WitnessPorts {
  readonly transport: Pick<Transport, "dial">;
  readonly emulation: Emulation;
  /** Where a site listens; null: not known. */
  readonly addressOf: (site: string) => string | null;
  readonly isLive: (site: string) => boolean;
  readonly refused: (site: string) => void;
}

/** A process that ends closes what it had one by one: its listener may be a moment later than its connections. */
const LOOKS_MS: readonly number[] = [0, 2, 10, 50];

/** See the file's header. */
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

  /** A connection to a site could not be made. */
  failed(site: string, error: unknown): void {
    const { isLive, emulation, refused } = this.#ports;
    const isRefusal = error instanceof Deno.errors.ConnectionRefused;
    if (isRefusal && !this.#closed && !isLive(site) && !emulation.of(site).cut) refused(site); // W2
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
