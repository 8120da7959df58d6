/**
 * The payloads that are in memory: new ones until the disk and the owners have them, and those that an owner lacks,
 * read from the disk a few at a time.
 *
 * P1  Reading for owners waits while payloads fill half of the memory that they may take: producers find room beside
 *     it.
 */
import { TUPLES_WAITING_BYTES_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { TupleId } from "./packet.ts";
import type { Tuple } from "./tuple.ts";

export interface PayloadsPorts {
  /** Reads the payload that the disk has. */
  readonly read: (id: TupleId) => Promise<Uint8Array | null>;
  /** Returns a tuple that is there still. */
  readonly tuple: (id: TupleId) => Tuple | undefined;
  readonly tell: (site: SiteId, id: TupleId) => void;
  readonly fail: (error: unknown) => void;
}

export class Payloads {
  readonly #ports: PayloadsPorts;
  /** Owners that lack a payload, by tuple, oldest first. */
  readonly #lacking = new Map<TupleId, SiteId[]>();
  #isReading = false;
  bytes = 0;

  constructor(ports: PayloadsPorts) {
    this.#ports = ports;
  }

  set(tuple: Tuple, payload: Uint8Array | null): void {
    this.bytes += (payload?.length ?? 0) - (tuple.payload?.length ?? 0);
    tuple.payload = payload;
  }

  /** Queues a payload that a site lacks: the site is told it when its turn comes. */
  want(id: TupleId, site: SiteId): void {
    this.#lacking.set(id, [...this.#lacking.get(id) ?? [], site]);
    void this.readSome();
  }

  /** Reads the next payloads, as far as there is room (P1). */
  async readSome(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      for (const [id, sites] of this.#lacking) {
        if (this.bytes > TUPLES_WAITING_BYTES_MAX / 2) break;
        this.#lacking.delete(id);
        const payload = this.#ports.tuple(id)?.payload ?? await this.#ports.read(id);
        const tuple = this.#ports.tuple(id);
        if (tuple === undefined || tuple.gone || payload === null) continue;
        this.set(tuple, payload);
        for (const site of sites) if (tuple.sites.includes(site)) this.#ports.tell(site, id);
      }
    } catch (error) {
      this.#ports.fail(error);
    } finally {
      this.#isReading = false;
    }
  }
}
