/**
 * Watch of a host side over its home: that the home welcomes, answers pings, and acknowledges what it is sent.
 *
 *   off ─ greets ─▶ a welcome is waited for ─ begins ─▶ pings ─ `lost`, or off
 */
import * as limits from "./limits.ts";
import type { Lost, PeerClock } from "./ports.ts";

/** Host side, as the watch over its home needs it. */
export interface WatchPorts {
  readonly clock: PeerClock;
  /** Interval of pings; 0: a home that says nothing is found by the reader of the channel. */
  readonly silentMs: number;
  readonly stalledMs: number;
  readonly ping: (number: number) => void;
  /** Returns the number of messages that are sent and not acknowledged. */
  readonly onTheirWay: () => number;
  readonly lost: (why: Lost) => void;
}

/** Largest number of doublings of the patience: 32 times, from ten seconds to five minutes. */
const STALLS_MAX = 5;

/** Watch over a home (see the file's header). */
export class HomeWatch {
  readonly #ports: WatchPorts;
  #cancel: (() => void) | null = null;
  #heardMs = 0;
  #progressMs = 0;
  /** Number of channels in a row on which nothing was acknowledged. */
  #stalls = 0;
  #pings = 0;
  #pingedMs = 0;
  #roundTripMs: number | null = null;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
  }

  /** Round trip of the last ping that was answered. */
  get roundTripMs(): number | null {
    return this.#roundTripMs;
  }

  /** Begins to wait for a welcome: a hello was sent. */
  greets(): void {
    this.off();
    this.#cancel = this.#ports.clock.after(limits.HELLO_MS_MAX, () => this.#lost("silent"));
  }

  /** Begins to ping: a welcome has come. */
  begins(): void {
    this.off();
    this.waits();
    if (this.#ports.silentMs > 0) this.#watch();
  }

  off(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  /** Notes that something has come. */
  heard(): void {
    this.#heardMs = this.#ports.clock.nowMs();
  }

  /** Begins to wait for an acknowledgement. */
  waits(): void {
    this.#progressMs = this.#ports.clock.nowMs();
  }

  /** Notes that more is acknowledged. */
  progress(): void {
    this.#stalls = 0;
    this.waits();
  }

  pong(number: number): void {
    if (number === this.#pings) this.#roundTripMs = this.#ports.clock.nowMs() - this.#pingedMs;
  }

  #watch(): void {
    const { clock, silentMs, stalledMs, ping, onTheirWay } = this.#ports;
    this.#pingedMs = clock.nowMs();
    ping(++this.#pings);
    this.#cancel = clock.after(silentMs, () => {
      if (this.#heardMs < this.#pingedMs) return this.#lost("silent");
      // A handler that takes its time is no site that stands still: no better site makes it faster.
      const patienceMs = stalledMs * 2 ** Math.min(this.#stalls, STALLS_MAX);
      const isStalled = onTheirWay() > 0 && clock.nowMs() - this.#progressMs > patienceMs;
      if (stalledMs === 0 || !isStalled) return this.#watch();
      this.#stalls++;
      this.#lost("stalled");
    });
  }

  #lost(kind: "silent" | "stalled"): void {
    this.off();
    this.#ports.lost({ kind });
  }
}
