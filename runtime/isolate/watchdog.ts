/**
 * Watches that isolates give their event loop back, and that requests end in time.
 *
 * One timer for all isolates. While an isolate has something to do it is pinged; any frame of it is a sign of life, and
 * none is missed while its site doesn't read it. Between two signs of life its process's CPU time is what the code that
 * holds its event loop has used, with its native threads.
 *
 * W1  An isolate that used more CPU than one request may, without giving its event loop back, is killed. Being
 *     slow because the machine is busy is no reason.
 * W2  An isolate whose loop stands still without using CPU is killed after STILL_FACTOR times that long.
 * W3  A request alone in its isolate is charged with what the isolate uses; more than its limit kills. With several
 *     at once the use can't be told apart: as long as none of them has answered they are charged together, and may
 *     use what all of them may.
 * W4  An isolate that computes although no request is open is killed by the same limit.
 * W5  An isolate beyond the bounds of its process is killed (process_bounds.ts): memory, threads, and CPU over a while.
 * W6  An isolate that computes nearly all the time with several requests open is reported busy: another would
 *     help, where there is a core for it.
 */
import type { IsolateLimits } from "./limits.ts";
import type { Isolate } from "./isolate.ts";
import { ProcessBounds } from "./process_bounds.ts";

/** Milliseconds between looks: a tenth of the default CPU limit, at 20 µs an isolate. */
const TICK_MS = 100;
/** Number of ticks between looks at an isolate without requests. */
const IDLE_TICKS = 10;
/**
 * Multiple of the CPU limit for which a loop may stand still: it is a sleeping thread or a stopped process, and harms
 * nobody but its app.
 */
const STILL_FACTOR = 10;

/**
 * Share of a core above which an isolate is busy, where that lasts half a second: no burst, and not yet a queue that a
 * user feels.
 */
const BUSY_SHARE = 0.9;
const BUSY_LOOKS = 5;

/** State of one isolate, kept between two looks. */
interface Pulse {
  readonly limits: IsolateLimits;
  readonly bounds: ProcessBounds;
  frames: number;
  begun: number;
  /** Milliseconds of CPU time at the last sign of life. */
  aliveCpuMs: number;
  aliveMs: number;
  /** Milliseconds of CPU time at the last look. */
  cpuMs: number;
  /** Milliseconds of CPU time used with no request open, since the last one. */
  strayMs: number;
  pinged: boolean;
  /** Time of the last look. */
  lookedMs: number;
  busyLooks: number;
  /** Id of the exchange that was alone at the last look. */
  alone: number;
  /**
   * Milliseconds of CPU time used by several requests that had not answered, and the number of those that took part
   * (`sharers`), since there were such.
   */
  sharedMs: number;
  sharers: number;
}

/** The part of a pool that is told what the watchdog sees. */
export interface WatchdogListener {
  /** Called when an isolate's event loop turns again. */
  revived(isolate: Isolate): void;
  /** Called when an isolate is busy (W6). */
  busy(isolate: Isolate): void;
}

/** Watches isolates of requests. */
export class Watchdog {
  readonly #pulses = new Map<Isolate, Pulse>();
  readonly #listener: WatchdogListener;
  #timer: ReturnType<typeof setInterval> | undefined;
  #tick = 0;
  #closed = false;

  constructor(listener: WatchdogListener) {
    this.#listener = listener;
  }

  /** Watches an isolate from now on until it ends. */
  watch(isolate: Isolate, limits: IsolateLimits): void {
    if (this.#closed) return;
    const cpuMs = isolate.usage()?.cpuMs ?? 0;
    this.#pulses.set(isolate, {
      limits,
      bounds: new ProcessBounds(limits, cpuMs, performance.now()),
      frames: -1,
      begun: isolate.begun,
      aliveCpuMs: cpuMs,
      aliveMs: performance.now(),
      cpuMs,
      strayMs: 0,
      pinged: false,
      lookedMs: performance.now(),
      busyLooks: 0,
      alone: 0,
      sharedMs: 0,
      sharers: 0,
    });
    this.#timer ??= setInterval(this.#look, TICK_MS);
    isolate.ended.then(() => this.#forget(isolate));
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#pulses.clear();
  }

  #forget(isolate: Isolate): void {
    this.#pulses.delete(isolate);
    if (this.#pulses.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look = (): void => {
    const full = this.#tick++ % IDLE_TICKS === 0;
    const nowMs = performance.now();
    for (const [isolate, pulse] of this.#pulses) {
      if (isolate.isOver) continue;
      if (isolate.exchanges.size === 0 && !isolate.isStuck && !full && pulse.begun === isolate.begun) {
        continue;
      }
      this.#check(isolate, pulse, nowMs);
      expire(isolate, nowMs);
    }
  };

  #check(isolate: Isolate, pulse: Pulse, nowMs: number): void {
    const usage = isolate.usage();
    const excess = usage === undefined ? null : pulse.bounds.excess(usage, nowMs);
    if (excess !== null) return isolate.kill(excess.why, excess.cause);
    const cpuMs = usage?.cpuMs ?? pulse.cpuMs + (pulse.pinged ? nowMs - pulse.aliveMs : 0);
    const { limits } = pulse;
    if (isolate.framesSeen !== pulse.frames || isolate.isHeld) {
      pulse.frames = isolate.framesSeen;
      pulse.aliveCpuMs = cpuMs;
      pulse.aliveMs = nowMs;
      pulse.pinged = false;
      if (isolate.isStuck) {
        isolate.isStuck = false;
        this.#listener.revived(isolate);
      }
      const why = overused(isolate, pulse, cpuMs);
      if (why !== undefined) return isolate.kill(why, "cpu");
    } else if (pulse.pinged) {
      isolate.isStuck = true;
      if (cpuMs - pulse.aliveCpuMs >= limits.cpuMs) {
        return isolate.kill(
          `a request held the event loop for more than ${limits.cpuMs} ms of CPU time`,
          "cpu",
        );
      }
      if (nowMs - pulse.aliveMs >= limits.cpuMs * STILL_FACTOR) {
        return isolate.kill(
          `its event loop stood still for more than ${limits.cpuMs * STILL_FACTOR} ms`,
          "stalled",
        );
      }
    }
    if (isBusy(isolate, pulse, cpuMs, nowMs)) this.#listener.busy(isolate);
    pulse.cpuMs = cpuMs;
    if (pulse.pinged) return;
    pulse.pinged = true;
    isolate.ping();
  }
}

/** Reports whether an isolate has been busy for BUSY_LOOKS looks in a row (W6). */
function isBusy(isolate: Isolate, pulse: Pulse, cpuMs: number, nowMs: number): boolean {
  const share = (cpuMs - pulse.cpuMs) / (nowMs - pulse.lookedMs);
  pulse.lookedMs = nowMs;
  pulse.busyLooks = share > BUSY_SHARE && isolate.exchanges.size > 1 ? pulse.busyLooks + 1 : 0;
  return pulse.busyLooks >= BUSY_LOOKS;
}

/** Charges the CPU time used since the last look; returns the reason to kill, if that was too much. */
function overused(isolate: Isolate, pulse: Pulse, cpuMs: number): string | undefined {
  const used = cpuMs - pulse.cpuMs;
  const came = isolate.begun - pulse.begun;
  const quiet = came === 0;
  pulse.begun = isolate.begun;
  const open = isolate.exchanges.size;
  const { limits } = pulse;
  if (open === 0 && quiet) {
    pulse.strayMs += used;
    if (pulse.strayMs < limits.cpuMs) return undefined;
    return `it used more than ${limits.cpuMs} ms of CPU time after its last request had ended`;
  }
  pulse.strayMs = 0;
  const [only] = isolate.exchanges.values();
  const alone = open === 1 && quiet && only !== undefined ? only.id : 0;
  if (alone !== 0 && alone === pulse.alone && only !== undefined) {
    only.cpuMs += used;
    const { cpuMs: cpuMsMax } = only.pending;
    if (!only.headSeen && only.cpuMs >= cpuMsMax) {
      return `a request used more than ${cpuMsMax} ms of CPU time`;
    }
  }
  pulse.alone = alone;
  return overusedTogether(isolate, pulse, { used, came });
}

/** Charges several requests that have not answered together (W3). */
function overusedTogether(
  isolate: Isolate,
  pulse: Pulse,
  { used, came }: { used: number; came: number },
): string | undefined {
  const open = isolate.exchanges.size;
  const isWaitedFor = open > 1 && !isolate.exchanges.values().some(({ headSeen }) => headSeen);
  if (!isWaitedFor) {
    pulse.sharedMs = pulse.sharers = 0;
    return undefined;
  }
  pulse.sharers = pulse.sharers === 0 ? Math.max(open, came) : pulse.sharers + came;
  pulse.sharedMs += used;
  const mayUseMs = pulse.sharers * pulse.limits.cpuMs;
  if (pulse.sharedMs < mayUseMs) return undefined;
  return `${pulse.sharers} requests used more than ${mayUseMs} ms of CPU time together`;
}

/** Ends requests whose time is over. */
function expire(isolate: Isolate, nowMs: number): void {
  for (const exchange of isolate.exchanges.values()) exchange.expireAt(nowMs);
}
