/**
 * The realm of an app in an isolate of stateful sessions: that of functions (realm.ts), in which all that is not the
 * same at a replay is routed to the session whose turn it is, or gone.
 *
 * SR1  A global that can neither be recorded nor pinned is absent, and a use of it says so.
 */
import { AsyncResource } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { SESSION_BASE } from "../../../functions/class/session_slot.ts";
import { forget } from "../../../functions/tracked/field_walk.ts";
import { refusingFunction } from "./absent.ts";
import { installChannels } from "./stateful_channels.ts";
import type { Current } from "./stateful_current.ts";
import { BUNDLE_URL } from "./stateful_imports.ts";
import type { Intervals } from "./stateful_intervals.ts";
import { installRandom } from "./stateful_random.ts";
import { installTime } from "./stateful_time.ts";

/** Names of globals that reach other sessions, or other threads. */
const ABSENT = [
  "SharedArrayBuffer",
  "PerformanceObserver",
  "PerformanceObserverEntryList",
  "caches",
  "scheduler",
  "WebSocket",
  "WebSocketPair",
  "createImageBitmap",
  "OffscreenCanvas",
];

const define = (target: object, name: string, value: unknown): boolean =>
  Reflect.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });

/** Makes the realm that of stateful sessions; once, after it was cut. */
export function recordRealm(current: Current, intervals: Intervals): void {
  for (const name of ABSENT) Reflect.deleteProperty(globalThis, name);
  installTime(current, intervals, define);
  installRandom(current, define);
  installChannels(current, define);
  define(
    URL,
    "createObjectURL",
    refusingFunction("URL.createObjectURL", "its address would be another at each replay"),
  );
  define(globalThis, "FileReader", refusingFunction("FileReader", "use await blob.text() or blob.bytes()"));
  pinNode();
  for (const name of ["waitAsync", "notify"]) define(Atomics, name, refusingFunction(`Atomics.${name}`));
  watchDefinitions();
  installReferences();
  installWebAssembly();
  pinNavigator();
  cutLastMatch();
  cutStacks();
}

/** Calls `caught` with an error before a promise's handler is given it, as catch clauses do (module_state.ts, MF6). */
export function tellRejections(caught: (error: unknown) => void): void {
  const { then } = Promise.prototype;
  const told = {
    then(this: Promise<unknown>, resolved: unknown, rejected: unknown): unknown {
      if (typeof rejected !== "function") return Reflect.apply(then, this, [resolved, rejected]);
      const tells = (error: unknown): unknown => {
        caught(error);
        return rejected(error);
      };
      return Reflect.apply(then, this, [resolved, tells]);
    },
  };
  define(Promise.prototype, "then", told.then);
}

type Site = { getFileName(): string | null };
type Prepare = (error: Error, sites: Site[]) => unknown;

/**
 * Has stacks show the app's own frames only, since a replay is called from elsewhere; also where a program makes stacks
 * itself.
 */
function cutStacks(): void {
  const isOwn = (site: Site) => site.getFileName()?.startsWith(BUNDLE_URL) === true;
  const cut = new WeakSet<object>();
  const prepared = (prepare: unknown): unknown => {
    if (typeof prepare !== "function" || cut.has(prepare)) return prepare;
    const own: Prepare = (error, sites) => Reflect.apply(prepare, Error, [error, sites.filter(isOwn)]);
    cut.add(own);
    return own;
  };
  const asText: Prepare = (error, sites) =>
    Error.prototype.toString.call(error) + sites.map((site) => `\n    at ${site}`).join("");
  let prepare = prepared(asText);
  Reflect.defineProperty(Error, "prepareStackTrace", {
    configurable: true,
    get: () => prepare,
    // Where a program removes it asText is back: the platform's own way shows all frames.
    set: (given: unknown) => void (prepare = prepared(given ?? asText)),
  });
}

/**
 * Notes properties that are defined and not assigned: the walk over a session's fields has to look for them
 * (field_walk.ts).
 */
function watchDefinitions(): void {
  const { defineProperty, defineProperties } = Object;
  const seen = (object: unknown, descriptor: unknown) => {
    if (typeof object !== "object" || object === null) return;
    const { enumerable, writable, get, set } = Object(descriptor) as PropertyDescriptor;
    const isPlain = enumerable && writable && get === undefined && set === undefined;
    // By definition a field may have a name that its class has.
    if (!isPlain || SESSION_BASE in object) forget(object);
  };
  define(Object, "defineProperty", (object: object, name: PropertyKey, descriptor: PropertyDescriptor) => {
    seen(object, descriptor);
    return defineProperty(object, name, descriptor);
  });
  define(Object, "defineProperties", (object: object, descriptors: PropertyDescriptorMap) => {
    forget(Object(object));
    return defineProperties(object, descriptors);
  });
  const { defineProperty: reflectDefine } = Reflect;
  define(Reflect, "defineProperty", (object: object, name: PropertyKey, descriptor: PropertyDescriptor) => {
    seen(object, descriptor);
    return reflectDefine(object, name, descriptor);
  });
  const { captureStackTrace } = Error;
  define(Error, "captureStackTrace", (object: object, ...args: []) => {
    forget(Object(object));
    return captureStackTrace(object, ...args);
  });
  for (const name of ["__defineGetter__", "__defineSetter__"] as const) {
    const original = Reflect.get(Object.prototype, name) as (...args: unknown[]) => void;
    define(Object.prototype, name, function (this: object, ...args: unknown[]) {
      forget(Object(this));
      return Reflect.apply(original, this, args);
    });
  }
}

/** Replaces weak references by strong ones: no session may see when something is collected. */
function installReferences(): void {
  const targets = new WeakMap<object, object>();
  const Strong = class WeakRef<T extends object> {
    constructor(target: T) {
      targets.set(this, target);
    }
    deref(): T {
      return targets.get(this) as T;
    }
  };
  define(globalThis, "WeakRef", Strong);
  define(
    globalThis,
    "FinalizationRegistry",
    class FinalizationRegistry {
      register(): void {}
      unregister(): boolean {
        return false;
      }
    },
  );
}

/** Has WebAssembly compiled at once: on other threads it would be done at any time. */
function installWebAssembly(): void {
  const { Module, Instance } = WebAssembly;
  const compile = (bytes: BufferSource) => Promise.resolve().then(() => new Module(bytes));
  define(WebAssembly, "compile", compile);
  define(
    WebAssembly,
    "instantiate",
    (source: BufferSource | WebAssembly.Module, imports?: WebAssembly.Imports) =>
      Promise.resolve().then(() => {
        if (source instanceof Module) return new Instance(source, imports);
        const module = new Module(source);
        return { module, instance: new Instance(module, imports) };
      }),
  );
  for (const name of ["compileStreaming", "instantiateStreaming"]) {
    define(
      WebAssembly,
      name,
      refusingFunction(`WebAssembly.${name}`, "import the module, or use WebAssembly.instantiate"),
    );
  }
}

/** Pins what Node's parts count for all sessions of an isolate. */
function pinNode(): void {
  // A pool would show where in it a buffer lies, and what others have in it.
  Reflect.defineProperty(Buffer, "poolSize", { value: 0, writable: false, configurable: false });
  define(AsyncResource.prototype, "asyncId", () => 0);
}

/** Removes `RegExp.$1` and its like: they have the last match of whichever session of the isolate. */
function cutLastMatch(): void {
  for (const name of Object.getOwnPropertyNames(RegExp)) {
    const isLast = /^(?:\$.|input|lastMatch|lastParen|leftContext|rightContext)$/.test(name);
    if (isLast) Reflect.deleteProperty(RegExp, name);
  }
}

/** Pins `navigator`, since machines differ. */
function pinNavigator(): void {
  define(
    globalThis,
    "navigator",
    Object.freeze({ userAgent: "Sojourn", language: "en-US", languages: Object.freeze(["en-US"]) }),
  );
}
