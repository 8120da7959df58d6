/**
 * Virtual time: a queue of events and a loop that runs them one by one.
 *
 * V1  Nothing happens but events: between two of them every promise chain runs until it stands still, so that a
 *     run is a function of its seed. Code under test that awaits real time, sockets or threads breaks this, and
 *     the determinism test shows it.
 * V2  Events run in the order of (time, order of scheduling); virtual time never goes back.
 */
import type { Clock } from "../../store/model/ports.ts";
import { CLOCK_EPOCH_MS } from "../../store/model/row.ts";

interface Entry {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | null;
}

/** Wall clocks begin here: a date in the life of the clocks of store/model/row.ts. */
export const START_MS = CLOCK_EPOCH_MS + 365 * 24 * 3600 * 1000;

/** The event loop. */
export class World {
  readonly #heap: Entry[] = [];
  #order = 0;
  /** Virtual milliseconds since the start. */
  nowMs = 0;
  /** Events run so far. */
  events = 0;
  /** Time that all wall clocks show beyond the virtual time. */
  sleptMs = 0;

  /** Runs `run` at a virtual time (now at the earliest); the result cancels. */
  at(atMs: number, run: () => void): () => void {
    const entry: Entry = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    this.#heap.push(entry);
    this.#up(this.#heap.length - 1);
    return () => {
      entry.run = null;
    };
  }

  after(ms: number, run: () => void): () => void {
    return this.at(this.nowMs + ms, run);
  }

  /** Resolves at a virtual time. */
  sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.after(ms, resolve);
    return promise;
  }

  /** Runs events until `done` holds, or up to and including virtual time `untilMs`; says whether it was done. */
  async run(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    await drained();
    // In a macrotask of the host, since within a microtask no other can be run.
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    setImmediate(() => {
      try {
        resolve(this.#run(untilMs, done));
      } catch (error) {
        reject(error);
      }
    });
    return await promise;
  }

  #run(untilMs: number, done: () => boolean): boolean {
    while (!done()) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) {
        this.nowMs = Math.max(this.nowMs, untilMs);
        return false;
      }
      this.#pop();
      if (next.run === null) continue;
      this.nowMs = next.atMs;
      this.events++;
      next.run();
      runMicrotasks();
    }
    return true;
  }

  #up(index: number): void {
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      let least = index;
      if (this.#before(left, least)) least = left;
      if (this.#before(left + 1, least)) least = left + 1;
      if (least === index) return;
      this.#swapIfBefore(least, index);
      index = least;
    }
  }

  #before(a: number, b: number): boolean {
    const x = this.#heap[a];
    const y = this.#heap[b];
    return x !== undefined && y !== undefined && (x.atMs < y.atMs || x.atMs === y.atMs && x.order < y.order);
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#before(a, b)) return false;
    const x = this.#heap[a] as Entry;
    this.#heap[a] = this.#heap[b] as Entry;
    this.#heap[b] = x;
    return true;
  }
}

/** V1: macrotasks of the host run only when no microtask is left. */
const drained = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * V1 at once, by an inner function of Deno: to go back to its event loop after every event instead made runs a
 * seventh slower.
 */
const runMicrotasks = ((): () => void => {
  const names = Deno as unknown as { readonly internal: symbol };
  const inner = Deno as unknown as Record<
    symbol,
    { readonly core?: { readonly runMicrotasks?: () => void } }
  >;
  const run = inner[names.internal]?.core?.runMicrotasks;
  if (run === undefined) throw new Error(`Deno ${Deno.version.deno} can't run microtasks on request`);
  return run;
})();

/** A timer this long or longer comes due in a nap. */
const LONG_MS = 5_000;

/** How wrong a process's clock is. */
export interface ClockFaults {
  /** From the start. */
  readonly skewMs: number;
  /** How much faster than time it runs: 0.01 gains 10 ms in a second. Its timers come due as it says. */
  readonly drift: number;
  /** The process waits for what is ready now. */
  readonly turning?: () => void;
  /** A timer is due. */
  readonly due?: () => void;
}

/**
 * The clock of one process: it stops with the process, and is wrong by its skew and its drift.
 *
 * `nap` lets a long time pass for all clocks at once without the millions of idle messages of that time, as when
 * the machines are suspended together: long timers come due, links and short timers do not notice.
 */
export class ProcessClock implements Clock {
  readonly #world: World;
  readonly #faults: ClockFaults;
  /** How wrong the machine's wall clock is. */
  leapMs = 0;
  jumpedMs = 0;
  /** By so much both clocks have gone on too far, as where a machine goes on from an image of it. */
  warpedMs = 0;
  /** Of the time that all wall clocks jumped, the steady clock has missed so much: the machine was suspended. */
  suspendedMs = 0;
  readonly #long = new Set<{ readonly cancel: () => void; readonly callback: () => void }>();
  #alive = true;
  /** Until then the process stands still: nothing of it runs, and what comes meanwhile waits. */
  #stoodUntilMs = 0;
  /** What waits for it to go on. */
  readonly #waiting: (() => void)[] = [];

  constructor(world: World, faults: ClockFaults) {
    this.#world = world;
    this.#faults = faults;
  }

  nowMs(): number {
    const { skewMs, drift } = this.#faults;
    const ranMs = this.#world.nowMs * (1 + drift);
    const wrongMs = skewMs + this.leapMs + this.jumpedMs;
    return Math.floor(START_MS + ranMs + this.#world.sleptMs + wrongMs);
  }

  /** How far ahead a time is of the one that is right. */
  aheadMs(ms: number): number {
    return ms - START_MS - this.#world.nowMs - this.#world.sleptMs;
  }

  /** Milliseconds that never go back: whoever sets the wall clock does not touch them. */
  steadyMs(): number {
    const ranMs = this.#world.nowMs * (1 + this.#faults.drift);
    return ranMs + this.#world.sleptMs + this.warpedMs - this.suspendedMs;
  }

  /** The process stands still for so long, as when it is stopped and let go on (SIGSTOP). */
  standStill(ms: number): void {
    this.#stoodUntilMs = Math.max(this.#stoodUntilMs, this.#world.nowMs + ms);
  }

  get isStanding(): boolean {
    return this.#world.nowMs < this.#stoodUntilMs;
  }

  /** Runs now, or as soon as the process goes on: what waits does so in its order, however often that is put off. */
  whenRunning(run: () => void): void {
    if (!this.isStanding && this.#waiting.length === 0) return run();
    if (this.#waiting.push(run) === 1) this.#world.at(this.#stoodUntilMs, () => this.#goOn());
  }

  #goOn(): void {
    if (!this.#alive) return;
    if (!this.isStanding) this.#waiting.shift()?.();
    if (this.#waiting.length > 0) {
      this.#world.at(Math.max(this.#world.nowMs, this.#stoodUntilMs), () => this.#goOn());
    }
  }

  after(ms: number, callback: () => void): () => void {
    if (ms >= LONG_MS) return this.#afterLong(ms, callback);
    let cancelled = false;
    const cancel = this.#world.after(ms / (1 + this.#faults.drift), () => {
      this.#due(() => {
        if (!cancelled) callback();
      });
    });
    return () => {
      cancelled = true;
      cancel();
    };
  }

  turn(): Promise<void> {
    this.#faults.turning?.();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#world.after(0, () => {
      if (this.#alive) this.whenRunning(resolve);
    });
    return promise;
  }

  /** Long timers come due; call it after {@link World.sleptMs} went up. */
  napped(): void {
    for (const timer of [...this.#long]) {
      timer.cancel();
      this.#long.delete(timer);
      this.#world.after(0, () => this.#due(timer.callback));
    }
  }

  /** No callback runs any more. */
  stop(): void {
    this.#alive = false;
    for (const timer of this.#long) timer.cancel();
    this.#long.clear();
  }

  #due(callback: () => void): void {
    if (this.isStanding) return this.whenRunning(() => this.#due(callback));
    if (this.#alive) this.#faults.due?.();
    // It may have been the last thing that the process lived to see.
    if (this.#alive) callback();
  }

  #afterLong(ms: number, callback: () => void): () => void {
    let cancelled = false;
    const due = () => {
      if (!cancelled) callback();
    };
    const cancel = this.#world.after(ms / (1 + this.#faults.drift), () => {
      this.#long.delete(timer);
      this.#due(due);
    });
    const timer = { cancel, callback: due };
    this.#long.add(timer);
    return () => {
      cancelled = true;
      cancel();
      this.#long.delete(timer);
    };
  }
}
