/**
 * Processes that wait for an app: started, without permissions, bootstrap warm.
 *
 * One hides the start of the next isolate; more only help bursts. A spare that died while it waited is replaced
 * when it is taken.
 */
import { bootstrapFiles } from "./bootstrap_file.ts";
import { Isolate } from "./isolate.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { startProcess } from "./process.ts";

/** Sizes of a process; they are fixed when it starts. */
export interface ProcessSizes {
  readonly heapMib: number;
  readonly buffersMib: number;
}

/** Processes that wait. */
export class Spares {
  readonly #wanted: number;
  readonly #folder: () => Promise<string>;
  readonly #cacheFolder: string | undefined;
  readonly #starting = new Set<Promise<unknown>>();
  #waiting: Promise<Isolate>[] = [];
  #closed = false;

  constructor(options: { wanted: number; folder: () => Promise<string>; cacheFolder: string | undefined }) {
    this.#wanted = options.wanted;
    this.#folder = options.folder;
    this.#cacheFolder = options.cacheFolder;
  }

  get count(): number {
    return this.#waiting.length;
  }

  /** Starts what is wanted and not there yet. */
  refill(): void {
    while (!this.#closed && this.#waiting.length < this.#wanted) this.#waiting.push(this.#start("serve"));
  }

  /** A process of these sizes: a waiting one where it fits. */
  async take(sizes: ProcessSizes): Promise<Isolate> {
    const fits = sizes.heapMib === DEFAULT_LIMITS.heapMib && sizes.buffersMib === DEFAULT_LIMITS.buffersMib;
    while (fits) {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) break;
      this.refill();
      const isolate = await waiting.catch(() => undefined);
      if (isolate !== undefined && !isolate.isOver) return isolate;
    }
    return await this.#start("serve", sizes);
  }

  /** A process that reads the manifest off a bundle. */
  async evaluator(): Promise<Isolate> {
    return await this.#start("evaluate");
  }

  async close(): Promise<void> {
    this.#closed = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const spare of await Promise.allSettled(waiting)) {
      if (spare.status === "fulfilled") await spare.value.close();
    }
    await Promise.allSettled(this.#starting);
  }

  #start(kind: "serve" | "evaluate", sizes: ProcessSizes = DEFAULT_LIMITS): Promise<Isolate> {
    const starting = this.#startOne(kind, sizes);
    this.#starting.add(starting);
    starting.catch(() => {}).finally(() => this.#starting.delete(starting));
    return starting;
  }

  async #startOne(kind: "serve" | "evaluate", sizes: ProcessSizes): Promise<Isolate> {
    const folder = await this.#folder();
    const files = await bootstrapFiles(this.#cacheFolder);
    const isolate = new Isolate(
      await startProcess({
        bootstrap: files[kind],
        folder,
        heapMib: sizes.heapMib,
        buffersMib: sizes.buffersMib,
      }),
    );
    await isolate.ready;
    if (this.#closed) await isolate.close();
    return isolate;
  }
}
