/**
 * Hosts that did not take what they were sent of the log, and for how long each holds none of it then: at f = 0
 * everybody else waits for a host for some seconds, each time (docs/protocol/hosts.md, HO3).
 *
 * TH1  A host that was late once is one again as soon as it has taken what it lacked. From the second time on it is
 *      none for a while, twice as long each time.
 * TH2  A peer that is late and has not been a host for long counts against all that have not: a client that is sent
 *      away, or goes, comes back under another id. That is remembered when nobody else is there, too (remembered.ts).
 * TH3  Hosts that are late at one time are so by one incident; an incident long ago is forgotten.
 */
import {
  LATE_AGAIN_MS,
  LATE_FORGOTTEN_MS,
  LATE_INCIDENT_MS,
  LATE_OUT_MS,
  LATE_OUT_MS_MAX,
} from "./limits.ts";

interface Late {
  readonly times: number;
  /** Time at which the host was late last; `untilMs`: until then it holds nothing because of that. */
  readonly atMs: number;
  readonly untilMs: number;
}

/** Key of newcomers among ids: no peer's id. */
const NEWCOMERS = "";

/** Hosts that were late (see the file's header). */
export class TardyHosts {
  readonly #nowMs: () => number;
  readonly #late = new Map<string, Late>();
  /** Time at which each became a host, since it was last late. */
  readonly #since = new Map<string, number>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes that a peer is a host. */
  begins(id: string): void {
    if (!this.#since.has(id)) this.#since.set(id, this.#nowMs());
  }

  /** Notes that a host was late. */
  late(id: string): void {
    const isNew = this.#isNew(id);
    this.#since.delete(id);
    this.#count(id);
    if (isNew) this.#count(NEWCOMERS); // TH2
  }

  /** Returns for how many milliseconds a peer is to hold nothing; 0: it may. */
  outMs(id: string): number {
    const untilMs = Math.max(this.#untilMs(id), this.#isNew(id) ? this.#untilMs(NEWCOMERS) : 0); // TH2
    return Math.max(0, untilMs - this.#nowMs());
  }

  /** Notes that a peer is none any more. */
  gone(id: string): void {
    this.#since.delete(id);
    this.#late.delete(id);
  }

  #isNew(id: string): boolean {
    const since = this.#since.get(id);
    return since === undefined || this.#nowMs() - since < LATE_AGAIN_MS;
  }

  #untilMs(id: string): number {
    return this.#late.get(id)?.untilMs ?? 0;
  }

  #count(id: string): void {
    const nowMs = this.#nowMs(), last = this.#late.get(id);
    const agoMs = last === undefined ? Infinity : nowMs - last.atMs;
    if (agoMs < LATE_INCIDENT_MS) return; // TH3
    const times = agoMs > LATE_FORGOTTEN_MS ? 1 : (last?.times ?? 0) + 1;
    const outMs = times === 1 ? 0 : Math.min(LATE_OUT_MS * 2 ** (times - 2), LATE_OUT_MS_MAX); // TH1
    this.#late.set(id, { times, atMs: nowMs, untilMs: nowMs + outMs });
  }
}
