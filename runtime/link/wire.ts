/**
 * A byte connection as a link uses it: whole writes, under the link's conditions. An unshaped wire passes bytes
 * straight through. On a shaped one, a write resolves when the bytes have left at the link's rate; they arrive later.
 */
import type { Conditions, Emulation } from "./emulation.ts";
import { RECORD_BYTES_SOFT } from "./limits.ts";
import { type ByteConnection, closeQuietly, writeAll } from "./byte_connection.ts";

/**
 * Milliseconds by which a sender may run ahead of the link's rate: less than an emulated link's delay, more than timers
 * err.
 */
const AHEAD_MS = 1;
/** Milliseconds for which a record should occupy a slow link, at most. */
const RECORD_MS = 2;
const RECORD_BYTES_MIN = 2 * 1024;
/** Bytes under way on one wire; a link of 600 ms at 100 Mbit/s holds 7.5 MB. */
const FLIGHT_BYTES_MAX = 16 * 1024 * 1024;
/** Milliseconds by which a lost record arrives later than the others, beside one round trip. */
const LOSS_MS = 200;

interface Flight {
  readonly bytes: Uint8Array;
  readonly dueMs: number;
}

export class Wire {
  readonly #connection: ByteConnection;
  readonly #emulation: Emulation;
  #conditions: Conditions | null = null;
  #closed = Promise.withResolvers<void>();
  #isClosed = false;
  #flights: Flight[] = [];
  #flightBytes = 0;
  #delivering = false;
  #landed: (() => void) | null = null;
  #hasHeard = false;
  /** Time at which the last byte so far has left. */
  #leftMs = 0;
  #lastDueMs = 0;

  constructor(connection: ByteConnection, emulation: Emulation) {
    this.#connection = connection;
    this.#emulation = emulation;
  }

  /** Applies the conditions of the link to a site from now on. Waits while it is cut. */
  async under(conditions: Conditions): Promise<void> {
    this.#conditions = conditions;
    await this.#uncut();
  }

  /** Waits as long as an emulated link would take for something that is no write. */
  async pause(ms: number): Promise<void> {
    if (ms <= 0) return;
    const dueMs = performance.now() + ms;
    await this.#unlessClosed(new Promise((resolve) => this.#emulation.timer.at(dueMs, resolve)));
  }

  get closed(): boolean {
    return this.#isClosed;
  }

  /** Bytes to put into one record, so that a slow link is not blocked by one for long. */
  get recordBytes(): number {
    const shape = this.#conditions?.shape;
    if (!shape) return RECORD_BYTES_SOFT;
    return Math.min(RECORD_BYTES_SOFT, Math.max(RECORD_BYTES_MIN, shape.mbps * 125 * RECORD_MS));
  }

  /** True once the other side has sent anything. */
  get hasHeard(): boolean {
    return this.#hasHeard;
  }

  async read(into: Uint8Array): Promise<number | null> {
    const count = await this.#connection.read(into);
    this.#hasHeard ||= count !== null && count > 0;
    // Bytes that have arrived, or that the other side has closed, are not to be known while the link is cut.
    if (this.#conditions?.cut) await this.#uncut();
    return count;
  }

  write(bytes: Uint8Array): Promise<void> {
    const conditions = this.#conditions;
    if (
      !conditions || (!conditions.shape && !conditions.cut && this.#flights.length === 0 && !this.#delivering)
    ) {
      return writeAll(this.#connection, bytes);
    }
    return this.#send(bytes, conditions);
  }

  async #send(bytes: Uint8Array, conditions: Conditions): Promise<void> {
    if (conditions.cut) await this.#uncut();
    if (this.#isClosed) throw new Error("The connection is closed");
    const { rttMs, mbps, jitterMs, loss } = conditions.shape ??
      { rttMs: 0, mbps: Infinity, jitterMs: 0, loss: 0 };
    const { random, timer } = this.#emulation;
    const nowMs = performance.now();
    this.#leftMs = Math.max(nowMs, this.#leftMs) + bytes.length / (mbps * 125);
    let dueMs = this.#leftMs + rttMs / 2;
    if (jitterMs > 0) dueMs += jitterMs * random();
    if (loss > 0 && random() < loss) dueMs += rttMs + LOSS_MS;
    this.#lastDueMs = dueMs = Math.max(dueMs, this.#lastDueMs);
    this.#flights.push({ bytes: bytes.slice(), dueMs });
    this.#flightBytes += bytes.length;
    if (!this.#delivering) void this.#deliver();
    const leftMs = this.#leftMs;
    if (leftMs - nowMs > AHEAD_MS) {
      await this.#unlessClosed(new Promise((resolve) => timer.at(leftMs, resolve)));
    }
    while (this.#flightBytes > FLIGHT_BYTES_MAX && !this.#isClosed) {
      await this.#unlessClosed(new Promise((resolve) => this.#landed = resolve));
    }
  }

  async #deliver(): Promise<void> {
    this.#delivering = true;
    try {
      for (let flight = this.#flights[0]; flight && !this.#isClosed; flight = this.#flights[0]) {
        const { bytes, dueMs } = flight;
        await this.#unlessClosed(new Promise((resolve) => this.#emulation.timer.at(dueMs, resolve)));
        if (this.#conditions?.cut) await this.#uncut();
        if (this.#isClosed) break;
        await writeAll(this.#connection, bytes);
        this.#flights.shift();
        this.#flightBytes -= bytes.length;
        this.#landed?.();
      }
    } catch {
      // The connection is gone: its reader ends as well, and so will the next write.
      this.close();
    }
    this.#delivering = false;
  }

  /** Resolves when written bytes are no longer on their way over the emulated link: to close sooner loses them. */
  async landed(): Promise<void> {
    while (this.#flights.length > 0 && !this.#isClosed) {
      await this.#unlessClosed(new Promise((resolve) => this.#landed = resolve));
    }
  }

  async #uncut(): Promise<void> {
    while (this.#conditions?.cut && !this.#isClosed) await this.#unlessClosed(this.#conditions.healed());
  }

  async #unlessClosed(wait: Promise<void>): Promise<void> {
    await Promise.race([wait, this.#closed.promise]);
  }

  close(): void {
    this.#isClosed = true;
    this.#flights = [];
    this.#closed.resolve();
    closeQuietly(this.#connection);
  }
}
