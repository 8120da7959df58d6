/**
 * Whether a host side's home still does what it is for: it welcomes, answers pings, and acknowledges what it is sent.
 *
 *   off ─ greets ─▶ a welcome is waited for ─ begins ─▶ pings ─ `lost`, or off
 */
import * as limits from "./limits.ts";
import type { Lost, PeerClock } from "./ports.ts";

/** What it needs of its host side. */
export interface WatchPorts {
  readonly clock: PeerClock;
  /** 0: a home that says nothing is found by whoever reads the channel. */
  readonly silentMs: number;
  readonly stalledMs: number;
  readonly ping: (number: number) => void;
  /** Messages that are sent and not acknowledged. */
  readonly onTheirWay: () => number;
  readonly lost: (why: Lost) => void;
}

/** Patience grows 32 times at most: from ten seconds to five minutes. */
const STALLS_MAX = 5;

/** See the file's header. */
export class HomeWatch {
  readonly #ports: WatchPorts;
  #cancel: (() => void) | null = null;
  #heardMs = 0;
  #progressMs = 0;
  /** Channels in a row on which nothing was acknowledged. */
  #stalls = 0;
  #pings = 0;
  #pingedMs = 0;
  #roundTripMs: number | null = null;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
  }

  /** Of the last ping that was answered. */
  get roundTripMs(): number | null {
    return this.#roundTripMs;
  }

  /** A hello has gone. */
  greets(): void {
    this.off();
    this.#cancel = this.#ports.clock.after(limits.HELLO_MS_MAX, () => this.#lost("silent"));
  }

  /** A welcome has come. */
  begins(): void {
    this.off();
    this.waits();
    if (this.#ports.silentMs > 0) this.#watch();
  }

  off(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  /** Something has come. */
  heard(): void {
    this.#heardMs = this.#ports.clock.nowMs();
  }

  /** From now on it is waited for an acknowledgement. */
  waits(): void {
    this.#progressMs = this.#ports.clock.nowMs();
  }

  /** More is acknowledged. */
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
