/**
 * Processes that wait for an app: started, without permissions, their bootstrap warm soon after.
 *
 * One hides the start of the next isolate; more only help bursts. Whoever takes one calls `refillSoon` when its app is
 * loaded: a process that is started for later is behind what is needed now. A spare that died while it waited is
 * replaced then.
 */
import { DEFAULT_ISOLATE_LIMITS, type ProcessSizes } from "./limits.ts";
import { endProcess, type IsolateProcess } from "./process.ts";
import type { ProcessStarter } from "./process_starter.ts";

/**
 * Milliseconds until spares are started: a process that starts takes the CPU from the first answers of the isolate that
 * was opened before.
 */
const REFILL_AFTER_MS = 300;

/** The processes of a site that wait for an app. */
export class Spares {
  readonly #wanted: number;
  readonly #processes: ProcessStarter;
  readonly #ending = new Set<Promise<void>>();
  #waiting: Promise<IsolateProcess>[] = [];
  #sizes: ProcessSizes = DEFAULT_ISOLATE_LIMITS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(wanted: number, processes: ProcessStarter) {
    this.#wanted = wanted;
    this.#processes = processes;
  }

  get count(): number {
    return this.#waiting.length;
  }

  /** Starts processes until as many wait as are wanted. */
  #refill(): void {
    while (!this.#closed && this.#waiting.length < this.#wanted) {
      const started = this.#processes.start("serve", this.#sizes);
      started.catch(() => {}); // whoever takes it is told
      this.#waiting.push(started);
    }
  }

  /** Starts them when the isolate that was just opened has answered. */
  refillSoon(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#refill();
    }, REFILL_AFTER_MS);
  }

  /**
   * Starts processes until as many wait as are wanted; resolves when all that wait have started, rejects when one
   * cannot be.
   */
  async ready(): Promise<void> {
    this.#refill();
    await Promise.all(this.#waiting);
  }

  /**
   * Returns a process of these sizes: a waiting one where there is one. Those that are started from now on have them
   * too. For an app that gives way one is started, which does so from its start: those that wait are for others.
   */
  async take(sizes: ProcessSizes, givesWay = false): Promise<IsolateProcess> {
    if (givesWay) return await this.#processes.start("serve", sizes, true);
    if (sizes.heapMib !== this.#sizes.heapMib || sizes.buffersMib !== this.#sizes.buffersMib) {
      this.#sizes = { heapMib: sizes.heapMib, buffersMib: sizes.buffersMib };
      this.#endWaiting();
    }
    // As many as wait now, not until one comes: where no process can be started, the last line says so.
    for (let left = this.#waiting.length; left > 0; left--) {
      const process = await this.#waiting.shift()?.catch(() => undefined);
      if (process?.hasEnded === false) return process;
      process?.release();
    }
    return await this.#processes.start("serve", sizes);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#endWaiting();
    await Promise.all(this.#ending);
  }

  #endWaiting(): void {
    for (const spare of this.#waiting.splice(0)) {
      const ending = spare.then(endProcess, () => {}); // it was never there
      this.#ending.add(ending);
      void ending.finally(() => this.#ending.delete(ending));
    }
  }
}
