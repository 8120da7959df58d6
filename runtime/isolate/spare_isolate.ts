/**
 * A spare process of stateful sessions: started, its bootstrap run, and, where it can be told which app version will be
 * asked for next, with that one loaded. Where an isolate is lost its sessions are back without the start of a process. With
 * its app loaded it rehearses (inside/stateful_rehearsal.ts): the loss costs an opening, but not the first one.
 *
 * Life: none waits → `take` gives the one that waits, or starts one, and has the next started behind it; `keep` has one
 * wait before any was taken → `release`: none waits, until the next `take` or `keep` → `close`.
 *
 * SP1  The one that waits has the sizes of the last that was taken: a site's apps mostly have the same.
 * SP2  A spare that has ended while it waited, or has another app, is not given.
 * SP3  Lines that an app's module code prints while it loads here are logged when the isolate is taken, and not before.
 */
import type { IsolateApp } from "./call.ts";
import { endProcess, type IsolateProcess } from "./process.ts";
import type { ProcessSizes } from "./limits.ts";
import type { StatefulIsolate, StrayLog } from "./stateful_isolate.ts";

/** The services that a spare needs. */
export interface SpareOptions {
  readonly start: (sizes: ProcessSizes, givesWay: boolean) => Promise<IsolateProcess>;
  /** Gives a process its app. @throws the reason why it can't; the process has ended then. */
  readonly load: (process: IsolateProcess, app: IsolateApp, log: StrayLog) => Promise<StatefulIsolate>;
  /** Returns the app that the next spare is for, as far as can be told; null where it can't. */
  readonly likely: () => IsolateApp | null;
  /** Milliseconds until a spare is started: it is behind what is needed now. */
  readonly afterMs: number;
}

/** A spare that was taken: a process, or an isolate that has its app already. */
export type Spare =
  | { readonly kind: "process"; readonly process: IsolateProcess }
  | { readonly kind: "loaded"; readonly isolate: StatefulIsolate };

interface Waiting {
  readonly sizes: ProcessSizes;
  /** App that it has loaded; null where it has none, and can be given any. */
  readonly app: IsolateApp | null;
  readonly spare: Promise<Spare>;
  readonly lines: Lines;
  hasEnded: boolean;
}

/** The spare of a site, where one waits. */
export class SpareIsolate {
  readonly #options: SpareOptions;
  #waiting: Waiting | null = null;
  /** Timer of a start that is to come. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(options: SpareOptions) {
    this.#options = options;
  }

  /** Returns a spare for an app: loaded, or to be loaded. @throws Error where none can be started. */
  async take(app: IsolateApp, log: StrayLog, givesWay = false): Promise<Spare> {
    const { heapMib, buffersMib } = app.limits;
    const sizes = { heapMib, buffersMib };
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#refill(sizes, givesWay);
    const spare = await waiting?.spare.catch(() => null);
    if (waiting && spare) {
      const fits = waiting.sizes.heapMib === heapMib && waiting.sizes.buffersMib === buffersMib &&
        (waiting.app === null || isSame(waiting.app, app));
      if (fits && !waiting.hasEnded) {
        waiting.lines.tell(log);
        return spare;
      }
      this.#end(waiting);
    }
    return { kind: "process", process: await this.#options.start(sizes, givesWay) };
  }

  /**
   * Has one wait, of these sizes where none did: one that has ended, or has an app that is not likely any more, is
   * replaced.
   */
  keep(sizes: ProcessSizes): void {
    if (this.#timer !== undefined) return;
    const waiting = this.#waiting;
    if (waiting !== null && !waiting.hasEnded && this.#isLikely(waiting.app)) return;
    this.#endWaiting();
    this.#refill(sizes);
  }

  /** Ends the one that waits: none does until one is taken or kept again. */
  release(): void {
    this.#clear();
    this.#endWaiting();
  }

  /** Tells the one that waits that an app's secrets have changed. */
  refreshSecrets(app: string): void {
    if (this.#waiting?.app?.app !== app) return;
    this.#waiting.spare.then((spare) => {
      if (spare.kind === "loaded") spare.isolate.refreshSecrets();
    }, () => {}); // there is none
  }

  /** Ends all; resolves when the one that waited has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.release();
    await Promise.all(this.#ending);
  }

  #isLikely(app: IsolateApp | null): boolean {
    const likely = this.#options.likely();
    return app === null || (likely !== null && isSame(app, likely));
  }

  #clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #endWaiting(): void {
    if (this.#waiting !== null) this.#end(this.#waiting);
    this.#waiting = null;
  }

  #end({ spare }: Waiting): void {
    const ending = spare.then(end, () => {}); // it was never there
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }

  #refill(sizes: ProcessSizes, givesWay = false): void {
    this.#clear();
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const app = this.#options.likely(), lines = new Lines();
      const waiting: Waiting = {
        sizes,
        app,
        spare: this.#start(sizes, app, lines, givesWay),
        lines,
        hasEnded: false,
      };
      const ended = (spare: Spare): Promise<unknown> =>
        spare.kind === "loaded" ? spare.isolate.ended : spare.process.exited;
      waiting.spare.then(ended).catch(() => {}).finally(() => waiting.hasEnded = true); // or it never began
      this.#waiting = waiting;
    }, this.#options.afterMs);
  }

  async #start(
    sizes: ProcessSizes,
    app: IsolateApp | null,
    lines: Lines,
    givesWay: boolean,
  ): Promise<Spare> {
    const { start, load } = this.#options;
    const process = await start(sizes, givesWay);
    if (app === null) return { kind: "process", process };
    const isolate = await load(process, app, (level, text) => lines.add(level, text));
    isolate.rehearse();
    return { kind: "loaded", isolate };
  }
}

/** Number of lines that are kept while an app loads; the first are what tells. */
const LINES_MAX = 100;

/** Lines of an app that loads while nobody hears it, told when the isolate is taken (SP3). */
class Lines {
  #log: StrayLog | null = null;
  #kept: (readonly [level: string, text: string])[] = [];

  add(level: string, text: string): void {
    if (this.#log !== null) this.#log(level, text);
    else if (this.#kept.length < LINES_MAX) this.#kept.push([level, text]);
  }

  tell(log: StrayLog): void {
    this.#log = log;
    for (const [level, text] of this.#kept.splice(0)) log(level, text);
  }
}

const isSame = (one: IsolateApp, other: IsolateApp): boolean =>
  one.app === other.app && one.version === other.version;

const end = (spare: Spare): Promise<void> =>
  spare.kind === "loaded" ? spare.isolate.close() : endProcess(spare.process);
