/**
 * Watches that the turns of stateful sessions give the event loop of their isolate back.
 *
 * A ping is answered between two turns; any frame is a sign of life, and one is assumed while the site does not read
 * the isolate's frames. Between two signs of life the process's CPU time is what the code that holds the loop has used,
 * with its native threads.
 *
 * T1  A turn that used more CPU than one request may, without giving the loop back, ends the isolate; being slow
 *     because the machine is busy is no reason.
 * T2  An isolate whose loop stands still without using CPU ends after STILL_FACTOR times that long.
 * T3  An isolate beyond the bounds of its process ends (process_bounds.ts): memory, and native threads that compute
 *     while the loop turns.
 * T4  While nothing is asked of it an isolate is looked at IDLE_TICKS times less often.
 */
import type { AppProcess } from "./app_process.ts";
import type { IsolateLimits } from "./limits.ts";
import { ProcessBounds } from "./process_bounds.ts";

/** The isolate that is watched. */
export interface WatchedTurns
  extends Pick<AppProcess<unknown>, "framesSeen" | "isHeld" | "usage" | "ping" | "kill"> {
  readonly app: { readonly limits: Pick<IsolateLimits, "cpuMs" | "heapMib" | "buffersMib"> };
}

/** Milliseconds between looks, as the watchdog of requests has it: a tenth of the default CPU limit. */
const TICK_MS = 100;
const IDLE_TICKS = 10;
/** Multiple of the CPU limit for which a loop may stand still: it harms nobody but its app. */
const STILL_FACTOR = 10;

/** Watches one isolate of stateful sessions. */
export class TurnWatch {
  readonly #watched: WatchedTurns;
  readonly #bounds: ProcessBounds;
  readonly #timer: ReturnType<typeof setInterval>;
  #tick = 0;
  #isBusy = false;
  #frames = -1;
  #pinged = false;
  #aliveMs = performance.now();
  #aliveCpuMs = 0;

  constructor(watched: WatchedTurns) {
    this.#watched = watched;
    this.#bounds = new ProcessBounds(watched.app.limits, watched.usage()?.cpuMs ?? 0, performance.now());
    this.#timer = setInterval(this.#look, TICK_MS);
  }

  /** Notes that something was asked of the isolate. */
  begin(): void {
    this.#isBusy = true;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look = (): void => {
    const isDue = this.#tick++ % IDLE_TICKS === 0;
    if (!isDue && !this.#isBusy && !this.#pinged) return;
    const { app: { limits }, framesSeen, isHeld } = this.#watched;
    const nowMs = performance.now();
    const usage = this.#watched.usage();
    const excess = usage === undefined ? null : this.#bounds.excess(usage, nowMs);
    if (excess !== null) return this.#watched.kill(excess.why, excess.cause);
    const cpuMs = usage?.cpuMs ?? this.#aliveCpuMs + (nowMs - this.#aliveMs);
    if (framesSeen !== this.#frames || isHeld) {
      this.#frames = framesSeen;
      this.#pinged = false;
      this.#aliveMs = nowMs;
      this.#aliveCpuMs = cpuMs;
      // Code that runs without being asked for (a closure timer) is found by the ping of an idle look.
      if (!this.#isBusy && !isDue) return;
      this.#isBusy = false;
    } else if (this.#pinged) {
      if (cpuMs - this.#aliveCpuMs >= limits.cpuMs) {
        return this.#watched.kill(
          `a turn held the event loop for more than ${limits.cpuMs} ms of CPU time`,
          "cpu",
        );
      }
      if (nowMs - this.#aliveMs >= limits.cpuMs * STILL_FACTOR) {
        return this.#watched.kill(
          `its event loop stood still for more than ${limits.cpuMs * STILL_FACTOR} ms`,
          "stalled",
        );
      }
      return;
    }
    this.#pinged = true;
    this.#watched.ping();
  };
}
