/**
 * The env of a request: the resources that the app declared, bound to the request's session.
 *
 * Life cycle: an app's declarations are prepared once per isolate (on the first request); `buildEnv` then makes a
 * small object per request, whose tables are made on first use.
 *
 * N1  An env reaches the store only through its own request's StoreClient.
 * N2  A name that was not declared is undefined; a declared one that can't be used here throws `not_available`
 *     when it is used, never when the env is built.
 * N3  A declared variable or secret is also `env.NAME`; no name of the platform's is ever another.
 */
import { namespaceOf, type SessionCaller } from "./calls/stub.ts";
import { AppError, notAvailable } from "./vocabulary/errors.ts";
import type { BaseEnv, TableDefinition } from "./define.ts";
import type { QueueDefinition } from "./queue.ts";
import { RequestQueue } from "./request_queue.ts";
import { RequestKv } from "./kv.ts";
import type { Kv } from "./kv_interface.ts";
import { ReadBatch } from "./read_batch.ts";
import type { SendingQueue } from "./kv_atomic.ts";
import type { QueueSender } from "./vocabulary/queue_sender.ts";
import type { StoreClient } from "./vocabulary/store_client.ts";
import { PreparedTable } from "./prepared_table.ts";
import { RequestTable } from "./table.ts";

/** Services that a request's env is built from. */
export interface EnvServices {
  readonly store: StoreClient;
  /**
   * Random bytes of the stateful session in which the code runs, for what a write draws. Tables use nothing then that
   * they remember of other requests in the isolate, since a replay would not find it.
   */
  readonly recordedBytes?: (bytes: Uint8Array) => void;
  /** Carrier of calls to stateful sessions; absent where there is no site to carry them. */
  readonly sessions?: SessionCaller;
  /** Carrier of messages to queues; absent where there is no site to carry them. */
  readonly queues?: QueueSender;
  /** Values of variables that the operator set; they go before the declared ones. */
  readonly vars: Readonly<Record<string, string>>;
  /** Values of secrets that this site holds, as they are when the request begins. */
  readonly secrets?: Readonly<Record<string, string>>;
  /**
   * Name of the app, for the error of a secret without a value. (`atRoot`: true where the request runs at the root.)
   */
  readonly app?: string;
  readonly atRoot?: boolean;
  /** Address of the client: `host`, `host:port` or `[host]:port`. */
  readonly remoteAddr?: string;
  /** Resolves when the response has been sent. Called only when the app asks: few do. */
  readonly completed?: () => Promise<void>;
  /** Fetches a static file of the app's version. */
  readonly assets?: (request: Request) => Promise<Response>;
}

interface PreparedApp {
  readonly tables: object;
  readonly queues: object;
  readonly sessions: object;
  readonly secrets: object;
  readonly vars: Readonly<Record<string, string>>;
  readonly Env: typeof RequestEnv;
  readonly hasAssets: boolean;
}

/** Symbol under which a getter on a prepared prototype finds its request. */
const REQUEST: unique symbol = Symbol("request");

interface RequestState {
  readonly store: StoreClient;
  readonly reads: ReadBatch;
  readonly services: EnvServices;
  readonly queueOf: SendingQueue;
}

/**
 * Tables or secrets of an app that declares none. Most apps do, and a new object for each request would cost each of
 * them.
 */
const NOTHING: object = Object.freeze(Object.create(null));

const prepared = new WeakMap<object, PreparedApp>();

/** Returns the env of one request of the app with this default export. */
export function buildEnv(defaultExport: unknown, services: EnvServices): BaseEnv {
  const app = prepare(defaultExport);
  return new app.Env(app, services);
}

class RequestEnv implements BaseEnv {
  readonly kv: Kv;
  readonly tables: object;
  readonly queues: object;
  readonly sessions: object;
  readonly secrets: object;
  readonly vars: Readonly<Record<string, string>>;
  readonly #services: EnvServices;
  readonly #hasAssets: boolean;

  constructor(app: PreparedApp, services: EnvServices) {
    const { store } = services;
    const reads = new ReadBatch(store);
    const queueOf: SendingQueue = (name) => {
      const queue = Reflect.get(this.queues, name) as RequestQueue | undefined;
      if (queue === undefined) throw notAvailable(`the queue ${name}, which the app does not declare,`);
      return queue;
    };
    const state: RequestState = { store, reads, services, queueOf };
    this.kv = new RequestKv(store, reads, queueOf);
    this.tables = app.tables === NOTHING
      ? NOTHING
      : Object.create(app.tables, { [REQUEST]: { value: state } });
    this.queues = app.queues === NOTHING
      ? NOTHING
      : Object.create(app.queues, { [REQUEST]: { value: state } });
    this.sessions = app.sessions === NOTHING
      ? NOTHING
      : Object.create(app.sessions, { [REQUEST]: { value: state } });
    this.secrets = app.secrets === NOTHING
      ? NOTHING
      : Object.create(app.secrets, { [REQUEST]: { value: state } });
    this.vars = { ...app.vars, ...services.vars };
    this.#services = services;
    this.#hasAssets = app.hasAssets;
  }

  get ASSETS(): BaseEnv["ASSETS"] {
    return {
      fetch: (input, init) => {
        const { assets } = this.#services;
        if (!this.#hasAssets || assets === undefined) {
          return Promise.reject(new AppError("not_available", "env.ASSETS: the app declares no assets"));
        }
        return assets(new Request(input, init));
      },
    };
  }

  get remoteAddr(): BaseEnv["remoteAddr"] {
    return parseAddress(this.#services.remoteAddr ?? "");
  }

  get completed(): Promise<void> {
    return this.#services.completed?.() ?? Promise.resolve();
  }
}

/**
 * Returns a class of env on which variables and secrets also have their own names, where no member of the platform's
 * has that name (N3): Workers look for them there.
 */
function envClass(
  vars: Readonly<Record<string, unknown>>,
  secrets: Readonly<Record<string, unknown>>,
): typeof RequestEnv {
  class AppEnv extends RequestEnv {}
  const taken: ReadonlySet<string> = new Set([
    ...["kv", "tables", "queues", "sessions", "secrets", "vars"],
    ...Object.getOwnPropertyNames(RequestEnv.prototype),
  ]);
  for (const group of ["vars", "secrets"] as const) {
    for (const name of Object.keys(group === "vars" ? vars : secrets)) {
      if (taken.has(name)) continue;
      // On the prototype: printing an env shows no secret.
      Object.defineProperty(AppEnv.prototype, name, {
        configurable: true,
        get(this: RequestEnv): unknown {
          return Reflect.get(this[group], name);
        },
      });
    }
  }
  return AppEnv;
}

function parseAddress(text: string): BaseEnv["remoteAddr"] {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(text);
  return {
    transport: "tcp",
    hostname: match?.[1] ?? match?.[2] ?? text,
    port: Number(match?.[3] ?? 0),
  };
}

/**
 * Returns a prototype whose getters give a request its secrets. The getters are not the object's own, so that printing
 * or serialising an env shows none.
 */
function secretPrototype(declared: Readonly<Record<string, unknown>>): object {
  if (Object.keys(declared).length === 0) return NOTHING;
  const prototype: object = Object.create(null);
  for (const [name, definition] of Object.entries(declared)) {
    const staysAtRoot = (definition as { at?: unknown } | null)?.at === "root";
    Object.defineProperty(prototype, name, {
      enumerable: true,
      get(this: { [REQUEST]: RequestState }) {
        const { secrets = {}, app = "APP", atRoot } = this[REQUEST].services;
        const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
        if (value !== undefined) return value;
        throw new AppError(
          "not_available",
          staysAtRoot && atRoot === false
            ? `the secret ${name} is kept at the root, and this runs below it: give the route { at: "root" }`
            : `the secret ${name} has no value: sojourn secrets ${app} set ${name}`,
          { secret: name },
        );
      },
    });
  }
  return prototype;
}

function prepare(defaultExport: unknown): PreparedApp {
  const app = Object(defaultExport) as Record<string, unknown>;
  let found = prepared.get(app);
  if (found === undefined) {
    found = {
      tables: tablePrototype(groupOf(app["tables"])),
      queues: queuePrototype(groupOf(app["queues"])),
      sessions: sessionPrototype(groupOf(app["sessions"])),
      secrets: secretPrototype(groupOf(app["secrets"])),
      vars: groupOf(app["vars"]) as Record<string, string>,
      Env: envClass(groupOf(app["vars"]), groupOf(app["secrets"])),
      hasAssets: typeof app["assets"] === "string",
    };
    prepared.set(app, found);
  }
  return found;
}

const groupOf = (group: unknown): Record<string, unknown> =>
  typeof group === "object" && group !== null ? group as Record<string, unknown> : {};

/** Returns a prototype whose getters make a request's table on first use. */
function tablePrototype(tables: Readonly<Record<string, unknown>>): object {
  if (Object.keys(tables).length === 0) return NOTHING;
  const prototype: object = Object.create(null);
  for (const [name, definition] of Object.entries(tables)) {
    const table = new PreparedTable(name, definition as TableDefinition);
    Object.defineProperty(prototype, name, {
      enumerable: true,
      get(this: { [REQUEST]: RequestState }) {
        const { store, reads, services, queueOf } = this[REQUEST];
        const { recordedBytes } = services;
        const own = recordedBytes === undefined
          ? table
          : new PreparedTable(name, definition as TableDefinition, recordedBytes);
        const value = new RequestTable(own, store, reads, queueOf);
        Object.defineProperty(this, name, { value, enumerable: true });
        return value;
      },
    });
  }
  return prototype;
}

/** Returns a prototype whose getters make a request's stateful sessions on first use. */
function sessionPrototype(classes: Readonly<Record<string, unknown>>): object {
  if (Object.keys(classes).length === 0) return NOTHING;
  const prototype: object = Object.create(null);
  for (const name of Object.keys(classes)) {
    Object.defineProperty(prototype, name, {
      enumerable: true,
      get(this: { [REQUEST]: RequestState }) {
        const { sessions } = this[REQUEST].services;
        if (sessions === undefined) throw notAvailable(`env.sessions.${name} here`);
        const value = namespaceOf(name, sessions, takesMessages(classes[name]));
        Object.defineProperty(this, name, { value, enumerable: true });
        return value;
      },
    });
  }
  return prototype;
}

const takesMessages = (declared: unknown): boolean =>
  typeof declared === "function" &&
  typeof (declared.prototype as { onMessage?: unknown } | undefined)?.onMessage === "function";

/** Returns a prototype whose getters make a request's queue on first use. */
function queuePrototype(queues: Readonly<Record<string, unknown>>): object {
  if (Object.keys(queues).length === 0) return NOTHING;
  const prototype: object = Object.create(null);
  for (const [name, definition] of Object.entries(queues)) {
    Object.defineProperty(prototype, name, {
      enumerable: true,
      get(this: { [REQUEST]: RequestState }) {
        const { queues: sender } = this[REQUEST].services;
        if (sender === undefined) throw notAvailable(`env.queues.${name} here`);
        const value = new RequestQueue(name, definition as QueueDefinition, sender);
        Object.defineProperty(this, name, { value, enumerable: true });
        return value;
      },
    });
  }
  return prototype;
}
