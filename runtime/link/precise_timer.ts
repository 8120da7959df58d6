/**
 * Timer for emulated links. `setTimeout` of 1 ms takes more than 2, which would double a link of 2 ms; so a pool
 * thread sleeps in `usleep` (FFI) while something is due, and where FFI is not permitted the last milliseconds
 * are polled with `setImmediate`. Nothing runs, and no thread is held, while nothing is due.
 *
 * TM1  A callback runs at most EARLY_MS before its time; how late depends on the machine's load.
 * TM2  After `close` has resolved no callback runs and no thread sleeps.
 */
import { clearImmediate, setImmediate, setTimeout } from "node:timers";

/** Milliseconds by which usleep returns late, so it is asked to return so much early. */
const EARLY_MS = 0.1;
/**
 * Milliseconds of the longest sleep. A sleep can't be cut short; closing waits for it, and a time that comes up sooner
 * takes a second thread.
 */
const SLEEP_MS_MAX = 20;
/** Threads of Deno's pool of 32 that may sleep at once. */
const SLEEPERS_MAX = 4;
/** Milliseconds by which setTimeout may be late, so it is asked for less and the rest is polled. */
const TIMEOUT_LATE_MS = 2.2;

const USLEEP = { usleep: { parameters: ["u32"], result: "i32", nonblocking: true } } as const;

interface Entry {
  readonly dueMs: number;
  readonly run: () => void;
}

export class PreciseTimer {
  /** Callbacks by time, the soonest last. */
  #entries: Entry[] = [];
  /** Times at which the sleeping threads wake. */
  #wakes = new Set<{ readonly atMs: number }>();
  #sleeps = new Set<Promise<void>>();
  #library: Deno.DynamicLibrary<typeof USLEEP> | null | undefined = undefined;
  #polling: ReturnType<typeof setImmediate> | null = null;
  #closed = false;

  /** Calls back at `dueMs` of performance.now(). */
  at(dueMs: number, run: () => void): void {
    if (this.#closed) return;
    let at = this.#entries.length;
    while (at > 0 && (this.#entries[at - 1]?.dueMs ?? Infinity) <= dueMs) at--;
    this.#entries.splice(at, 0, { dueMs, run });
    this.#arm();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#entries = [];
    if (this.#polling) clearImmediate(this.#polling);
    await Promise.all(this.#sleeps);
    this.#library?.close();
    this.#library = null;
  }

  #fire(): void {
    for (;;) {
      const next = this.#entries.at(-1);
      if (this.#closed || !next || next.dueMs - EARLY_MS > performance.now()) break;
      this.#entries.pop();
      next.run();
    }
    this.#arm();
  }

  #arm(): void {
    const next = this.#entries.at(-1);
    if (this.#closed || !next || this.#polling) return;
    const wakeMs = next.dueMs - EARLY_MS;
    const usleep = this.#usleep();
    const waitMs = wakeMs - performance.now();
    if (waitMs <= 0 || (!usleep && waitMs <= TIMEOUT_LATE_MS)) {
      this.#polling = setImmediate(() => {
        this.#polling = null;
        this.#fire();
      });
      return;
    }
    for (const { atMs } of this.#wakes) {
      if (atMs <= wakeMs + EARLY_MS) return;
    }
    if (this.#wakes.size >= SLEEPERS_MAX) return;
    const sleepMs = Math.min(waitMs, SLEEP_MS_MAX);
    this.#sleep(
      performance.now() + sleepMs,
      usleep ? usleep(sleepMs) : new Promise((resolve) => setTimeout(resolve, sleepMs - TIMEOUT_LATE_MS)),
    );
  }

  #sleep(atMs: number, sleep: Promise<unknown>): void {
    const wake = { atMs };
    this.#wakes.add(wake);
    const done = sleep.then(() => {
      this.#wakes.delete(wake);
      this.#sleeps.delete(done);
      this.#fire();
    });
    this.#sleeps.add(done);
  }

  #usleep(): ((ms: number) => Promise<unknown>) | null {
    if (this.#library === undefined) {
      try {
        this.#library = Deno.permissions.querySync({ name: "ffi" }).state === "granted"
          ? Deno.dlopen(Deno.build.os === "darwin" ? "libSystem.dylib" : "libc.so.6", USLEEP)
          : null;
      } catch {
        this.#library = null;
      }
    }
    const library = this.#library;
    return library && ((ms) => library.symbols.usleep(Math.max(1, Math.round(1000 * ms))));
  }
}
