/**
 * Processes that wait for an app: started, without permissions, bootstrap warm.
 *
 * One hides the start of the next isolate; more only help bursts. Whoever takes one calls `refillSoon` when its app is
 * loaded: a process that is started for later is behind what is needed now. A spare that died while it waited is
 * replaced then.
 */
import { bootstrapFiles } from "./bootstrap_file.ts";
import type { IsolateCgroups } from "./cgroups.ts";
import { Isolate } from "./isolate.ts";
import { DEFAULT_ISOLATE_LIMITS, type ProcessSizes } from "./limits.ts";
import { startProcess } from "./process.ts";

/**
 * Milliseconds until spares are started: a process that starts takes the CPU from the first answers of the isolate that
 * was opened before.
 */
const REFILL_AFTER_MS = 300;

/** The processes of a site that wait for an app. */
export class Spares {
  readonly #wanted: number;
  readonly #folder: () => Promise<string>;
  readonly #cacheFolder: string | undefined;
  readonly #cgroups: IsolateCgroups | undefined;
  readonly #underWay = new Set<Promise<unknown>>();
  #waiting: Promise<Isolate>[] = [];
  #sizes: ProcessSizes = DEFAULT_ISOLATE_LIMITS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: {
    wanted: number;
    folder: () => Promise<string>;
    cacheFolder: string | undefined;
    cgroups?: IsolateCgroups | undefined;
  }) {
    this.#wanted = options.wanted;
    this.#folder = options.folder;
    this.#cacheFolder = options.cacheFolder;
    this.#cgroups = options.cgroups;
  }

  get count(): number {
    return this.#waiting.length;
  }

  /** Starts processes until as many wait as are wanted. */
  refill(): void {
    while (!this.#closed && this.#waiting.length < this.#wanted) {
      this.#waiting.push(this.#start("serve", this.#sizes));
    }
  }

  /** Starts them when the isolate that was just opened has answered. */
  refillSoon(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.refill();
    }, REFILL_AFTER_MS);
  }

  /**
   * Starts processes until as many wait as are wanted; resolves when all that wait are ready, rejects when one cannot
   * be started.
   */
  async ready(): Promise<void> {
    this.refill();
    await Promise.all(this.#waiting);
  }

  /**
   * Returns a process of these sizes: a waiting one where there is one. Those that are started from now on have them
   * too. For an app that gives way one is started, which does so from its start: those that wait are for others.
   */
  async take(sizes: ProcessSizes, givesWay = false): Promise<Isolate> {
    if (givesWay) return await this.#start("serve", sizes, true);
    if (sizes.heapMib !== this.#sizes.heapMib || sizes.buffersMib !== this.#sizes.buffersMib) {
      this.#sizes = { heapMib: sizes.heapMib, buffersMib: sizes.buffersMib };
      const unfit = this.#waiting;
      this.#waiting = [];
      for (const spare of unfit) this.#track(spare.then((isolate) => isolate.close()));
    }
    // As many as wait now, not until one comes: where no process can be started, the last line says so.
    for (let left = this.#waiting.length; left > 0; left--) {
      const isolate = await this.#waiting.shift()?.catch(() => undefined);
      if (isolate !== undefined && !isolate.isOver) return isolate;
    }
    return await this.#start("serve", sizes);
  }

  /** Starts a process that reads the manifest off a bundle. */
  async evaluator(): Promise<Isolate> {
    return await this.#start("evaluate");
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const spare of await Promise.allSettled(waiting)) {
      if (spare.status === "fulfilled") await spare.value.close();
    }
    await Promise.allSettled(this.#underWay);
  }

  #start(
    kind: "serve" | "evaluate",
    sizes: ProcessSizes = DEFAULT_ISOLATE_LIMITS,
    givesWay = false,
  ): Promise<Isolate> {
    return this.#track(this.#startOne(kind, sizes, givesWay));
  }

  /** Keeps work that is under way: `close` waits for it. */
  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    work.catch(() => {}).finally(() => this.#underWay.delete(work));
    return work;
  }

  async #startOne(kind: "serve" | "evaluate", sizes: ProcessSizes, givesWay: boolean): Promise<Isolate> {
    const folder = await this.#folder();
    const files = await bootstrapFiles(this.#cacheFolder);
    const isolate = new Isolate(
      await startProcess({
        bootstrap: files[kind],
        folder,
        heapMib: sizes.heapMib,
        buffersMib: sizes.buffersMib,
        cgroups: this.#cgroups,
        givesWay,
      }),
    );
    await isolate.ready;
    if (this.#closed) await isolate.close();
    return isolate;
  }
}
