/**
 * All isolates of a site: spare processes that wait for an app, and a fleet per app version.
 *
 * Life cycle: constructed (nothing runs) → first `call` or `warm` (bootstrap bundled, spares started) → `close`.
 *
 * O1  App code runs in isolate processes only, never in the site's own.
 * O2  After `close` no process that this pool started is left.
 */
import { bootstrapFiles } from "./bootstrap_file.ts";
import { type IsolateAnswer, type IsolateApp, type IsolateCall, prepareCall } from "./call.ts";
import { Fleet, type OpenOutcome } from "./fleet.ts";
import { Isolate, type IsolateOwner } from "./isolate.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { startProcess } from "./process.ts";

/** How a site runs isolates. */
export interface PoolOptions {
  /** Where the bootstrap is kept between starts; a temporary folder by default. */
  readonly cacheFolder?: string;
  /** Processes that wait with no app. One hides the start of the next isolate; more only help bursts. */
  readonly spares?: number;
  /** An app version without requests gives its isolates back after this long. */
  readonly idleMs?: number;
  /** Addresses (`host:port`) that apps may fetch although they are private. */
  readonly privateHosts?: readonly string[];
}

const SPARES = 1;
const IDLE_MS = 60_000;

/** The isolates of a site. */
export class IsolatePool {
  readonly #options: PoolOptions;
  readonly #fleets = new Map<string, Fleet>();
  #folder: Promise<string> | undefined;
  #spares: Promise<Isolate>[] = [];
  #closed = false;

  constructor(options: PoolOptions = {}) {
    this.#options = options;
  }

  /** Runs a request in an isolate of the app's version. Never rejects. */
  async call(app: IsolateApp, call: IsolateCall): Promise<IsolateAnswer> {
    const prepared = prepareCall(app, call);
    const pending = prepared instanceof Promise ? await prepared : prepared;
    if (!pending.answered) this.#fleet(app).submit(pending);
    return await pending.answer;
  }

  #fleet(app: IsolateApp): Fleet {
    const name = `${app.app} ${app.version}`;
    let fleet = this.#fleets.get(name);
    if (fleet === undefined) {
      fleet = new Fleet(app, (app, owner) => this.#open(app, owner), () => performance.now());
      this.#fleets.set(name, fleet);
    }
    return fleet;
  }

  async #open(app: IsolateApp, owner: IsolateOwner): Promise<OpenOutcome> {
    const failed = (code: string, message: string, stack = ""): OpenOutcome => ({
      kind: "failed",
      code,
      message,
      stack,
    });
    try {
      const [bundle, isolate] = await Promise.all([app.bundle(), this.#take()]);
      const outcome = await isolate.load({ app, bundle, evaluate: false }, owner, undefined);
      if (outcome.kind === "loaded") return { kind: "isolate", isolate };
      isolate.close();
      return failed(outcome.code, outcome.message, outcome.stack);
    } catch (error) {
      return failed("load_failed", error instanceof Error ? error.message : String(error));
    }
  }

  /** A waiting isolate, and another one in its place. */
  async #take(): Promise<Isolate> {
    const spare = this.#spares.shift() ?? this.#spawn();
    this.#refill();
    return await spare;
  }

  #refill(): void {
    while (!this.#closed && this.#spares.length < (this.#options.spares ?? SPARES)) {
      const spare = this.#spawn();
      spare.catch(() => {});
      this.#spares.push(spare);
    }
  }

  async #spawn(): Promise<Isolate> {
    const folder = await (this.#folder ??= Deno.makeTempDir({ prefix: "sojourn-isolates-" }));
    const files = await bootstrapFiles(this.#options.cacheFolder ?? `${folder}/bootstrap`);
    const isolate = new Isolate(
      await startProcess({
        bootstrap: files.serve,
        folder,
        heapMib: DEFAULT_LIMITS.heapMib,
        buffersMib: DEFAULT_LIMITS.buffersMib,
      }),
    );
    await isolate.ready;
    return isolate;
  }

  /** Ends every isolate. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet.close()));
    const spares = await Promise.allSettled(this.#spares);
    for (const spare of spares) if (spare.status === "fulfilled") await spare.value.close();
    if (this.#folder) await Deno.remove(await this.#folder, { recursive: true });
  }
}
