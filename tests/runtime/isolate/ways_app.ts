/** Ways by which a session could keep, or see, what no log and no checkpoint has. Each gives what it saw of it before. */
import * as assertions from "node:assert";
import * as buffers from "node:buffer";
import { constants as cryptoConstants, createHash, scryptSync } from "node:crypto";
import * as channels from "node:diagnostics_channel";
import { EventEmitter } from "node:events";
import path from "node:path";
import process from "node:process";
import * as querystring from "node:querystring";
import * as streams from "node:stream";
import * as util from "node:util";
import { brotliCompressSync } from "node:zlib";
import { defineApp, type EnvOf, list, map, Session, value } from "sojourn";

type Env = EnvOf<Record<never, never>, { probe: Probe }>;
type Loose = Record<PropertyKey, unknown>;

const REQUEST = new Request("http://a.example/", { headers: { a: "1" } });
const RESPONSE = new Response("hello", { headers: { a: "1" } });
const STREAMED = new Response(new Blob(["abc"]).stream());
const SOURCE = new ReadableStream({ pull: (controller) => controller.enqueue(1) });
const [TEE] = new ReadableStream({ pull: (controller) => controller.enqueue(1) }).tee();
const THROUGH = new TransformStream();
const LIST_STEPS = [1, 2, 3, 4, 5, 6, 7, 8, 9].values();
const MAP_STEPS = new Map([[1, 2], [3, 4], [5, 6]]).entries();
const NUMBERS = (function* () {
  for (let i = 0;; i++) yield i;
})();
const LATE_NUMBERS = (async function* () {
  for (let i = 0;; i++) yield i;
})();
const MATCHES = "aaaa".matchAll(/a/g);
const SEGMENTS = new Intl.Segmenter().segment("a b c d")[Symbol.iterator]();
const HELPED = [1, 2, 3, 4].values().map((each) => each);
const STEPPING = {
  i: 0,
  next(): { done: false; value: number } {
    return { done: false, value: this.i++ };
  },
};
const WRAPPED = Iterator.from(STEPPING);
const PROXY = new Proxy({ n: 0 }, {});
const LISTENING = new EventTarget();
const GLOBAL = new WebAssembly.Global({ value: "i32", mutable: true }, 0);
const TABLE = new WebAssembly.Table({ element: "anyfunc", initial: 1 });
const MEMORY = new WebAssembly.Memory({ initial: 1, maximum: 20 });
const WEAKLY = new WeakRef({ n: 0 });
const KEY = {};
const BY_KEY = new WeakMap([[KEY, { n: 0 }]]);
const FAILED = new Error("of a module");
const POINT = new DOMPoint(0, 0);
const NESTED = { of: {} };
const SYMBOL = Symbol("left");

/** Gives private members to whatever it is given. */
class Given {
  constructor(object: object) {
    return object;
  }
}
class Stamp extends Given {
  #times = 0;
  static count(object: object): number {
    if (!(#times in object)) new Stamp(object);
    return ++(object as Stamp).#times;
  }
}
/** With nothing but a method. */
class Mark extends Given {
  #marked(): boolean {
    return true;
  }
  static has(object: object): boolean {
    if (!(#marked in object)) return void new Mark(object), false;
    return (object as Mark).#marked();
  }
}

/** What another session has left there, and one more. */
function leave(object: unknown): unknown {
  const of = object as Loose, before = of["left"];
  of["left"] = Number(before ?? 0) + 1;
  return before;
}

const protoOf = (object: object): Iterator<unknown> => Object.getPrototypeOf(object) as Iterator<unknown>;
const step = (proto: Iterator<unknown>, of: object): unknown => Reflect.apply(proto.next, of, []).value;

/** Goes on until the stack is full, and counts how deep that was. */
function deep(): { readonly fall: () => never; depth: number } {
  const found = {
    depth: 0,
    fall: (): never => {
      found.depth++;
      return found.fall();
    },
  };
  return found;
}

/** By their names; n is how often it has been asked. */
type Way = (session: Probe, n: number) => unknown;

/** Where the stack was full, and something else than the app's own clauses took the error. */
const FULL: Readonly<Record<string, Way>> = {
  "return of an iterator": () => {
    const at = deep();
    const steps = {
      next: () => ({ done: false as const, value: 1 }),
      return: (): IteratorResult<number> => at.fall(),
    };
    const endless = { [Symbol.iterator]: () => steps };
    try {
      for (const _ of endless) throw new Error("mine");
    } catch {
      return at.depth;
    }
  },
  "executor of a promise": async () => {
    const at = deep();
    await new Promise<void>((resolve) => {
      resolve();
      at.fall();
    });
    return at.depth;
  },
  "executor that is an expression": async () => {
    const at = deep();
    await new Promise<void>((resolve) => (resolve(), at.fall()));
    return at.depth;
  },
  "disposal": () => {
    const at = deep();
    try {
      using _ = { [Symbol.dispose]: () => at.fall() };
      throw new Error("before");
    } catch {
      return at.depth;
    }
  },
  "a rejection that nobody took": async () => {
    const at = deep();
    void (async () => {
      await Promise.resolve();
      at.fall();
    })();
    await new Promise((resolve) => setTimeout(resolve, 1));
    return at.depth;
  },
  "a listener": () => {
    const at = deep(), target = new EventTarget();
    target.addEventListener("x", () => at.fall());
    target.dispatchEvent(new Event("x"));
    return at.depth;
  },
  "a microtask": async () => {
    const at = deep();
    queueMicrotask(() => at.fall());
    await Promise.resolve();
    await Promise.resolve();
    return at.depth;
  },
  "a thenable": async () => {
    const at = deep();
    await {
      then(resolve: () => void) {
        resolve();
        at.fall();
      },
    };
    return at.depth;
  },
  "a getter that is printed": () => {
    const at = deep();
    const object = {
      get bad(): unknown {
        return at.fall();
      },
    };
    return [util.inspect(object, { getters: true }), at.depth];
  },
  "an assertion": () => {
    const at = deep();
    assertions.throws(() => at.fall());
    return at.depth;
  },
  "a stream of node's": async () => {
    const at = deep();
    const stream = new streams.Readable({
      read() {
        at.fall();
      },
    });
    stream.on("error", () => {});
    stream.resume();
    await new Promise((resolve) => setTimeout(resolve, 1));
    return at.depth;
  },
};

/** Where there was no memory. */
const OUT_OF_MEMORY: Readonly<Record<string, Way>> = {
  "a buffer that grows": () => {
    const buffer = new ArrayBuffer(0, { maxByteLength: 2 ** 32 });
    let n = 0;
    try {
      for (; n < 100; n++) buffer.resize((n + 1) * (64 << 20));
    } catch {
      return n;
    }
    return n;
  },
};

/** What all sessions share: refused, or put back when the turn is over. */
const SHARED: Readonly<Record<string, Way>> = {
  "a channel's subscribers": () => channels.subscribe("x", () => {}),
  "a tracing channel's subscribers": () => channels.tracingChannel("x").subscribe({ start() {} } as never),
  "the default high water mark": () => {
    const before = streams.getDefaultHighWaterMark(false);
    streams.setDefaultHighWaterMark(false, before + 1);
    return before;
  },
  "emitters' most listeners": () => EventEmitter.defaultMaxListeners++,
  "whether emitters capture": () => {
    const before = EventEmitter.captureRejections;
    EventEmitter.captureRejections = !before;
    return before;
  },
  "emitters' prototype": () => leave(EventEmitter.prototype),
  "emitters' class": () => leave(EventEmitter),
  "streams' prototype": () => leave(streams.Readable.prototype),
  "how things are printed": () => {
    const before = util.inspect.defaultOptions.depth;
    util.inspect.defaultOptions = { depth: (before ?? 0) + 1 };
    return before;
  },
  "one way in which things are printed": () => {
    const options = util.inspect.defaultOptions as { compact: number };
    return options.compact++;
  },
  "styles": () => leave(util.inspect.styles),
  "colors": () => util.inspect.colors["red"]?.reverse(),
  "errors of the system": () => util.getSystemErrorMap().set(-1, ["x", "y"]),
  "paths elsewhere": () => leave(path.win32),
  "constants of crypto": () => leave(cryptoConstants),
  "constants of buffers": () => leave(buffers.constants),
  "query strings": () => leave(Reflect.get(querystring, "default")),
  "what a module knows of itself": () => leave(import.meta),
  "arguments of the process": () => process.argv.push("x"),
  "Deno's errors": () => leave(Deno.errors),
  "listeners of all": () => globalThis.addEventListener("x", () => {}),
  "performance's listeners": () => performance.addEventListener("x", () => {}),
  "headers of a request": () => REQUEST.headers.append("left", "1"),
  "headers of a response": () => RESPONSE.headers.append("left", "1"),
  "a body": async () => await RESPONSE.body?.getReader().read(),
  "a body that is a stream": async () => await STREAMED.body?.getReader().read(),
  "a list's steps": () => step(protoOf([].values()), LIST_STEPS),
  "a map's steps": () => step(protoOf(new Map().entries()), MAP_STEPS),
  "a generator": () => step(protoOf(Object.getPrototypeOf(NUMBERS)), NUMBERS),
  "a generator that waits": async () =>
    (await Reflect.apply(protoOf(Object.getPrototypeOf(LATE_NUMBERS)).next, LATE_NUMBERS, [])).value,
  "matches": () => Boolean(step(protoOf("".matchAll(/a/g)), MATCHES)),
  "segments": () => Boolean(step(protoOf(new Intl.Segmenter().segment("")[Symbol.iterator]()), SEGMENTS)),
  "a helper": () => step(protoOf([].values().map((each) => each)), HELPED),
  "an iterator of one's own": () => step(protoOf(WRAPPED), WRAPPED),
  "what a Proxy stands for": () => PROXY.n++,
  "a listener": () => LISTENING.addEventListener("x", () => {}),
  "a stream's reader": async () => (await new ReadableStreamDefaultReader(SOURCE).read()).value,
  "a tee's reader": async () => (await new ReadableStreamDefaultReader(TEE).read()).value,
  "a stream's writer": () => new WritableStreamDefaultWriter(THROUGH.writable).desiredSize,
  "a global of WebAssembly": () => GLOBAL.value++,
  "a table of WebAssembly": () => TABLE.grow(1),
  "a memory that grows": () => MEMORY.grow(1),
  "what is held weakly": () => (WEAKLY.deref() as { n: number }).n++,
  "what a WeakMap holds": () => (BY_KEY.get(KEY) as { n: number }).n++,
  "the stack of an error": () => FAILED.stack += "x",
  "a point": () => POINT.x++,
};

/** What a session has, and no checkpoint would. */
const KEPT: Readonly<Record<string, Way>> = {
  "private on the session": (session) => Stamp.count(session),
  "private on a field": (session) => Stamp.count(session.plain),
  "private on a structure": (session) => Stamp.count(session.seen),
  "private on env": (session) => Stamp.count(session.env),
  "private on what a module holds": () => Stamp.count(NESTED.of),
  "private on what all have": () => Stamp.count(Object.prototype),
  "private and caught": (session) => {
    try {
      return Stamp.count(session.plain);
    } catch {
      return "caught";
    }
  },
  "a private method": (session) => Mark.has(session.plain),
  "a property of env": (session) => leave(session.env),
  "a property of kv": (session) => leave(session.env.kv),
  "a property of namespaces": (session) => leave(session.env.sessions),
  "a property of a namespace": (session) => leave(session.env.sessions.probe),
  "a property of a structure": (session) => leave(session.seen),
  "a symbol of a structure": (session) => (session.seen as unknown as Loose)[SYMBOL] = 1,
  "a method of a structure": (session) => session.seen.get = () => 1,
  "a field named as its class has it": (session) =>
    Object.defineProperty(session, "id", {
      value: "other",
      enumerable: true,
      writable: true,
      configurable: true,
    }),
  "a field named as all have it": (session) =>
    Object.defineProperty(session, "__proto__", {
      value: { n: 1 },
      enumerable: true,
      writable: true,
      configurable: true,
    }),
  "an expression that can't go on": (session) =>
    session.odd = Object.defineProperty(/a/, "lastIndex", { writable: false }),
  "an error whose stack is no text": (session) =>
    session.odd = Object.assign(new Error("a"), { stack: 5 as unknown as string }),
  "an error whose message is listed": (session) =>
    session.odd = Object.defineProperty(new Error("a"), "message", { enumerable: true }),
};

/** What is as it was where a checkpoint is read, to the last of its properties. */
const SAME: Readonly<Record<string, Way>> = {
  "an error": (session) => session.odd ??= new TypeError("a", { cause: new Error("b") }),
  "an error's cause by assignment": (session) => session.odd ??= Object.assign(new Error("a"), { cause: 1 }),
  "an error without a cause": (session) => session.odd ??= new Error("a", { cause: undefined }),
  "a frozen error": (session) => session.odd ??= Object.freeze(new Error("a")),
  "a frozen expression": (session) => session.odd ??= Object.freeze(/a/g),
};

/** What programs do, and may. */
const HONEST: Readonly<Record<string, Way>> = {
  "hashes": () => createHash("sha256").update("a").digest("hex"),
  "keys": () => scryptSync("a", "b", 8).toString("hex"),
  "compression": () => brotliCompressSync("abcabc").length,
  "emitters": () => {
    const emitter = new EventEmitter(), heard: unknown[] = [];
    emitter.on("x", (each) => heard.push(each));
    emitter.emit("x", 1);
    return [heard, emitter.listenerCount("x")];
  },
  "streams of node's": async () => {
    const pass = new streams.PassThrough();
    pass.end("abc");
    return (await pass.toArray()).join();
  },
  "headers": () => [...new Headers({ a: "1", b: "2" })],
  "responses": async () => await new Response("abc", { headers: { a: "1" } }).text(),
  "a subclass of a Map": () => {
    class Own extends Map<string, number> {
      #last = "";
      override set(key: string, value: number): this {
        this.#last = key;
        return super.set(key, value);
      }
      get last(): string {
        return this.#last;
      }
    }
    const own = new Own().set("a", 1);
    return [own.size, own.last];
  },
  "memory of WebAssembly": () => new WebAssembly.Memory({ initial: 1, maximum: 3 }).grow(1),
  "an assertion": () => assertions.throws(() => JSON.parse("{")),
};

/** All ways, by what becomes of them. */
const WAYS = { FULL, OUT_OF_MEMORY, SHARED, KEPT, SAME, HONEST };

const shown = (value: unknown): string =>
  util.inspect(value, { showHidden: true, depth: 5, sorted: true }).replace(
    /app:\/\/\/bundle:\d+:\d+/g,
    "bundle",
  );

export class Probe extends Session<Env> {
  plain = {};
  odd: unknown = null;
  seen = map<string, unknown>();
  readonly items = list<number>();
  readonly one = value(1);
  asked = 0;

  names(): Record<string, string[]> {
    return Object.fromEntries(Object.entries(WAYS).map(([kind, ways]) => [kind, Object.keys(ways)]));
  }

  async go(kind: keyof typeof WAYS, name: string): Promise<string> {
    return shown(await WAYS[kind][name]?.(this, ++this.asked));
  }

  state(): string {
    return shown([this.plain, this.odd, Object.keys(this), this.asked]);
  }
}

export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
