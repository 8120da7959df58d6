/**
 * The app that a module amounts to: its default export as the platform reads it, whichever style the module has.
 *
 * - `export default { fetch, … }` (Workers, `deno serve`, Hono, `defineApp`): as it is;
 * - `export default class extends WorkerEntrypoint { fetch() … }`: an object per call;
 * - `Deno.serve(handler)` while the module loads, with no default export: its handler, with what the module
 *   exports by the names of declarations;
 * - `listenQueue` of `Deno.openKv()` while the module loads, beside any of these or alone.
 */
import { KvListeners } from "../../../functions/kv_listeners.ts";
import { WORKER_ENTRYPOINT } from "../../../functions/worker_entrypoint.ts";
import { CronJobs } from "./deno_cron.ts";

type Handler = (...args: never[]) => unknown;

/** Names of the handlers that a platform calls. */
const HANDLERS = ["fetch", "scheduled", "queue"] as const;

/** Names of the exports by which a module without a default export declares what it needs. */
const DECLARATIONS = [
  "assets",
  "cron",
  "fetchHosts",
  "routes",
  "scheduled",
  "secrets",
  "tables",
  "vars",
] as const;

/** The arguments of `Deno.serve` beside its handler; those about sockets are accepted and without effect. */
interface ServeOptions {
  handler?: Handler;
  onError?: (error: unknown) => unknown;
  onListen?: (address: Deno.NetAddr) => void;
  port?: number;
}

/** `Deno.serve` of an isolate: it may be called once, while the module loads. */
export class ServedHandler {
  #handler: Handler | undefined;
  #isLoading = true;
  /** The module's `Deno.cron`, which such programs use beside `Deno.serve`. */
  readonly jobs = new CronJobs();
  /** Listeners that the module adds by `listenQueue`. */
  readonly listeners = new KvListeners();

  /** Takes the handler, as `Deno.serve`. */
  readonly serve = (...args: unknown[]): object => {
    const options = args.find((arg): arg is ServeOptions => typeof arg === "object" && arg !== null) ?? {};
    const handler = args.find((arg): arg is Handler => typeof arg === "function") ?? options.handler;
    if (typeof handler !== "function") throw new TypeError("Deno.serve: a handler is missing");
    if (!this.#isLoading) {
      throw new TypeError("Deno.serve works while the module loads, not while a request runs");
    }
    if (this.#handler !== undefined) {
      throw new TypeError("Deno.serve was called before: a function has one handler");
    }
    this.#handler = options.onError === undefined ? handler : caught(handler, options.onError);
    const addr: Deno.NetAddr = { transport: "tcp", hostname: "0.0.0.0", port: options.port ?? 8000 };
    options.onListen?.(addr);
    return server(addr);
  };

  /** Returns the app of a module that has loaded. @throws TypeError for a module that declares a thing in two ways. */
  appOf(module: Readonly<Record<string, unknown>>): unknown {
    this.#isLoading = false;
    const listens = this.listeners.loaded();
    const { default: defaultExport } = module;
    const jobs = this.jobs.declarations();
    if (jobs !== undefined && defaultExport !== undefined) {
      throw new TypeError("an app with a default export declares cron and scheduled there, not by Deno.cron");
    }
    if ((jobs !== undefined || (listens && defaultExport === undefined)) && this.#handler === undefined) {
      return { ...declarationsOf(module), ...jobs };
    }
    if (isEntrypoint(defaultExport)) return entrypointApp(defaultExport);
    if (this.#handler === undefined) return defaultExport;
    if (defaultExport === undefined) return { ...declarationsOf(module), ...jobs, fetch: this.#handler };
    throw new TypeError(
      "an app has a default export or calls Deno.serve, not both: it is not said which answers",
    );
  }
}

const declarationsOf = (module: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(DECLARATIONS.flatMap((name) => name in module ? [[name, module[name]]] : []));

const caught = (handler: Handler, onError: (error: unknown) => unknown): Handler => async (...args) => {
  try {
    return await handler(...args);
  } catch (error) {
    return await onError(error);
  }
};

/** Makes a server that the platform runs: it never finishes, and can't be shut down from inside. */
function server(addr: Deno.NetAddr): object {
  const shutdown = (): Promise<void> => Promise.resolve();
  return {
    addr,
    finished: new Promise<void>(() => {}),
    ref() {},
    unref() {},
    shutdown,
    [Symbol.asyncDispose]: shutdown,
  };
}

type Entrypoint = new (ctx: unknown, env: unknown) => Record<string, Handler>;

const isEntrypoint = (value: unknown): value is Entrypoint =>
  typeof value === "function" && typeof value.prototype === "object" && value.prototype !== null &&
  WORKER_ENTRYPOINT in value.prototype;

/**
 * Returns an app whose handlers make an object of the class for each call. The class's statics are what the app
 * declares.
 */
function entrypointApp(Class: Entrypoint): Record<string, unknown> {
  const app: Record<string, unknown> = {};
  for (const name of Object.getOwnPropertyNames(Class)) {
    if (!["length", "name", "prototype"].includes(name)) app[name] = Reflect.get(Class, name);
  }
  for (const name of HANDLERS) {
    if (typeof Class.prototype[name] !== "function") continue;
    app[name] = (input: never, env: unknown, ctx: unknown) => new Class(ctx, env)[name]?.(input);
  }
  return app;
}
