/**
 * The realm of an app: what it finds on `globalThis` and `Deno`.
 *
 * The process has no permissions, so nothing here is the boundary. It is what makes a refused use a clear error,
 * keeps an app from stopping its own process or its event loop by a single call, and hides the site's side.
 *
 * G1  `Deno` keeps its identity (Deno's node built-ins hold on to it); only the members in KEPT stay. The same goes for
 *     `globalThis` (globals.ts).
 */
import { AmbientKv, OpenedKv } from "../../../functions/context.ts";
import { RequestKv } from "../../../functions/kv.ts";
import { KvAtomicOperation } from "../../../functions/kv_atomic.ts";
import { KvU64 } from "../../../functions/values/kv_u64.ts";
import { cutMembers, refusingFunction } from "./absent.ts";
import { ServedHandler } from "./app_module.ts";
import { cutGlobals } from "./globals.ts";
import { processObject } from "./process_object.ts";
import { IsolateSocket } from "./sockets.ts";
import { addWorkersGlobals } from "./workers_globals.ts";

/** Members of `Deno` that need no permission and reach nothing. */
const KEPT: ReadonlySet<string> = new Set([
  "build",
  "errors",
  "inspect",
  "noColor",
  "version",
  "refTimer",
  "unrefTimer",
]);

export interface Realm {
  /** Sets the app's variables, as `Deno.env` and `process.env` show them. */
  setVars(vars: Record<string, string>): void;
  /** The app that `Deno.serve` was given. */
  readonly served: ServedHandler;
}

/** Cuts the realm; once, before any app code runs. */
export function cutRealm(siteFetch: typeof fetch): Realm {
  let vars: Record<string, string> = {};
  const served = new ServedHandler();
  const env = {
    get: (name: string) => Object.hasOwn(vars, name) ? vars[name] : undefined,
    has: (name: string) => Object.hasOwn(vars, name),
    toObject: () => ({ ...vars }),
    set: refusingFunction("Deno.env.set", "variables are set where the app is deployed"),
    delete: refusingFunction("Deno.env.delete", "variables are set where the app is deployed"),
  };
  cutDeno({
    env: Object.freeze(env),
    openKv: () => Promise.resolve(new OpenedKv(served.listeners)),
    KvU64,
    Kv: namedClass(
      "Deno.Kv",
      "use Deno.openKv",
      (value) => value instanceof AmbientKv || value instanceof RequestKv,
    ),
    AtomicOperation: namedClass(
      "Deno.AtomicOperation",
      "use kv.atomic()",
      (value) => value instanceof KvAtomicOperation,
    ),
    upgradeWebSocket,
    serve: served.serve,
    cron: served.jobs.cron,
    args: Object.freeze([]),
  });
  cutGlobals();
  define(globalThis, "fetch", siteFetch);
  define(globalThis, "WebSocketPair", webSocketPair());
  define(globalThis, "WebSocket", webSocketClass());
  addWorkersGlobals(define);
  // Blocking the only thread of an isolate has no use.
  define(Atomics, "wait", refusingFunction("Atomics.wait", "use Atomics.waitAsync"));
  const process = processObject();
  define(globalThis, "process", process);
  return {
    served,
    setVars: (given) => {
      vars = given;
      process.env = { ...given };
    },
  };
}

function cutDeno(members: Record<string, unknown>): void {
  cutMembers(Deno, "Deno", KEPT);
  for (const [name, value] of Object.entries(members)) define(Deno, name, value);
}

const define = (target: object, name: string, value: unknown): boolean =>
  Reflect.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true });

function upgradeWebSocket(request: Request, options: { protocol?: string } = {}): {
  socket: IsolateSocket;
  response: Response;
} {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw new TypeError(
      `${request.method} ${request.url} is no WebSocket request: it has no "upgrade: websocket"`,
    );
  }
  const socket = new IsolateSocket();
  socket.protocol = options.protocol ?? "";
  const headers = options.protocol ? { "sec-websocket-protocol": options.protocol } : {};
  const init = { status: 101, webSocket: socket, headers } as ResponseInit;
  return { socket, response: new Response(null, init) };
}

/** Makes the class that an app finds: it knows the sockets of incoming requests, and opens none. */
function webSocketClass(): typeof IsolateSocket {
  const construct = refusingFunction("new WebSocket", "an app answers sockets and opens none");
  const found = new Proxy(IsolateSocket, { construct });
  Object.defineProperty(found, "name", { value: "WebSocket", configurable: true });
  Object.defineProperty(IsolateSocket.prototype, "constructor", {
    value: found,
    configurable: true,
    writable: true,
  });
  return found;
}

/** Makes a class for `instanceof`, whose objects the platform makes. */
function namedClass(name: string, instead: string, has: (value: unknown) => boolean): object {
  const named = function (): never {
    throw new TypeError(`${name} can not be constructed: ${instead} instead`);
  };
  return Object.defineProperty(named, Symbol.hasInstance, { value: has });
}

/** Makes the class of Workers' pair: an object with ends 0 and 1. */
function webSocketPair(): new () => Record<number, IsolateSocket> {
  return class WebSocketPair {
    [end: number]: IsolateSocket;
    constructor() {
      [this[0], this[1]] = IsolateSocket.pair();
    }
  } as new () => Record<number, IsolateSocket>;
}
