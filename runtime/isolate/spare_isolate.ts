/**
 * One process of stateful sessions that waits for an app: started, its bootstrap run. Where an isolate is lost its
 * sessions are back without the start of a process.
 *
 * Life: nothing → `take` gives what waits, or starts one, and has the next started behind it → `close`.
 *
 * SP1  What waits has the sizes of the last that was taken: a site's apps mostly have one.
 * SP2  One that has ended while it waited is not given.
 */
import { type IsolateProcess, startProcess } from "./process.ts";
import type { ProcessSizes } from "./spares.ts";

interface Waiting {
  readonly sizes: ProcessSizes;
  readonly process: Promise<IsolateProcess>;
  hasEnded: boolean;
}

/** See the file's header. */
export class SpareProcess {
  readonly #start: (sizes: ProcessSizes) => Promise<IsolateProcess>;
  /** What is to be started is behind what is needed now. */
  readonly #afterMs: number;
  #waiting: Waiting | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(from: () => Promise<{ readonly bootstrap: string; readonly folder: string }>, afterMs: number) {
    this.#start = async (sizes) => await startProcess({ ...await from(), ...sizes });
    this.#afterMs = afterMs;
  }

  /** A process of these sizes. @throws Error where none can be started. */
  async take({ heapMib, buffersMib }: ProcessSizes): Promise<IsolateProcess> {
    const sizes = { heapMib, buffersMib };
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#refill(sizes);
    if (waiting === null) return await this.#start(sizes);
    const fits = waiting.sizes.heapMib === heapMib && waiting.sizes.buffersMib === buffersMib;
    const process = await waiting.process.catch(() => null);
    if (process !== null && fits && !waiting.hasEnded) return process;
    if (process !== null) void end(process);
    return await this.#start(sizes);
  }

  /** Resolves when what waited has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const process = await this.#waiting?.process.catch(() => null);
    this.#waiting = null;
    if (process) await end(process);
  }

  #refill(sizes: ProcessSizes): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      const waiting: Waiting = { sizes, process: this.#start(sizes), hasEnded: false };
      waiting.process.then(({ exited }) => exited.then(() => waiting.hasEnded = true)).catch(() => {});
      this.#waiting = waiting;
    }, this.#afterMs);
  }
}

async function end(process: IsolateProcess): Promise<void> {
  process.kill();
  await process.exited;
  process.release();
}
