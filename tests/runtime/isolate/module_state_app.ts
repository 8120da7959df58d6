/** Sessions that try to change what modules and classes hold, and honest ones that only read it. */
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { EventEmitter } from "node:events";
import process from "node:process";
import { defineApp, type EnvOf, Session } from "sojourn";
// deno-lint-ignore no-import-prefix -- a package that only this test needs
import { format, parseISO } from "npm:date-fns@4.1.0";
// deno-lint-ignore no-import-prefix -- a package that only this test needs
import { customAlphabet } from "npm:nanoid@5.1.6";
import { Hono } from "hono";
import sortedBtree from "sorted-btree";
import { z } from "zod";
import { counter, makeCounter, Registry } from "./module_state_parts.ts";

type Env = EnvOf<Record<never, never>, { probe: Probe }>;

/** What newer collections have. */
interface Upserting {
  getOrInsert(key: unknown, value: unknown): unknown;
  getOrInsertComputed(key: unknown, make: () => unknown): unknown;
}

let counted = 0;
export let pair = { a: 1, b: 2 };
let looped = "";
const config = { limits: { max: 5 }, names: ["a"] };
/** Another version of this app has another second one. */
const levels = [{ name: "easy" }, { name: "hard" }];
const rooms = new Map<string, unknown>([["lobby", { open: true }]]);
const seen = new Set<string>();
const byObject = new WeakMap<object, number>();
const weakSeen = new WeakSet<object>();
const born = new Date(0);
const word = /\w/g;
const sticky = /a/y;
const scratch = new Uint8Array(8);
const view = new DataView(new ArrayBuffer(4));
const bus = new EventTarget();
const query = new URLSearchParams("a=1");
const heads = new Headers({ a: "1" });
/** The package is CommonJS, hence the second `default`. */
const tree = new sortedBtree.default<string, number>([["a", 1]]);
const place = new URL("http://a.example/b?c=1");
const decoder = new TextDecoder();
const page = new Response("page");
const source = new Blob(["a"]).stream();
const through = new TransformStream();
const digest = createHash("sha256");
const told = new CustomEvent("told", { detail: { n: 0 } });
const context = new AsyncLocalStorage<number>();
const opened = Promise.withResolvers<number>();
let settle = (_: number): void => {};
export const lateNumber = new Promise<number>((resolve) => settle = resolve);
const ids = (function* () {
  for (let n = 1;; n++) yield n;
})();
const helped = [1, 2, 3].values().map((n) => n);
const lateIds = (async function* () {
  for (let n = 1;; n++) yield await n;
})();
const sized = new ArrayBuffer(4, { maxByteLength: 8 });
const disposed = new DisposableStack();
const setOfMaps = Map.prototype.set;
const hidden = makeCounter();
const registry = new Registry();
const settled = Promise.resolve({ n: 0 });
const shared = [1, 2, 3][Symbol.iterator]();
const bound = ((list: number[], n: number) => list.push(n)).bind(null, []);
const handlers: (() => void)[] = [];
function memo(n: number): number {
  const own = memo as unknown as { kept: Map<number, number> };
  own.kept ??= new Map();
  return n;
}
class Loud extends Map<string, number> {
  put(key: string): void {
    super.set(key, 1);
  }
}
const loud = new Loud();
abstract class Base {
  static shared: string[] = [];
  name = "base";
  greet(): string {
    return `I am ${this.name}`;
  }
}
class Own extends Base {
  constructor() {
    super();
    // An own property over a method of a prototype, by assignment.
    this.greet = () => "own";
  }
}

const limits = Object.freeze({ max: 3 });
const Order = z.object({
  id: z.string(),
  of: z.array(z.enum(["tea", "coffee"])).default([]),
  at: z.coerce.date(),
});
const made = new EventEmitter();
made.on("said", () => {});
const http = new Hono().get("/:name", (c) => c.json({ hello: c.req.param("name") }));
const draw = customAlphabet("abc", 8);
const table = Uint32Array.from({ length: 256 }, (_, n) => n * n);
const replaced = /[aeiou]/g;
const plainWord = /^\w+$/;

export class Probe extends Session<Env> {
  static total = 0;
  static byId = new Map<string, number>();
  static list: string[] = [];
  static #secret = 0;
  count = 0;
  kept: unknown = null;

  /** Each changes what sessions would share. */
  change(how: string): unknown {
    this.count++;
    switch (how) {
      case "variable":
        return ++counted;
      case "swallowed":
        try {
          counted = 5;
        } catch {
          return counted;
        }
        return "done";
      case "destructured":
        return { a: pair } = { a: { a: 2, b: 3 } };
      case "loop":
        for (looped of ["x", "y"]);
        return looped;
      case "in a callback":
        return [1, 2].forEach((n) => counted += n);
      case "elsewhere":
        return counter.next();
      case "in a closure":
        return hidden.next();
      case "in a closure's map":
        return hidden.keep(this.id);
      case "bound":
        return bound(1);
      case "private field":
        return registry.enter(this.id);
      case "private map":
        return registry.room(this.id);
      case "private static":
        return ++Probe.#secret;
      case "static":
        return ++Probe.total;
      case "static by constructor":
        return ++(this.constructor as typeof Probe).total;
      case "static map":
        return Probe.byId.set(this.id, 1);
      case "static list":
        return Probe.list.push(this.id);
      case "inherited static":
        return Base.shared.push("x");
      case "object":
        return config.limits.max = 6;
      case "new property":
        return (config as Record<string, unknown>)["left"] = 1;
      case "list":
        return config.names.push("b");
      case "delete":
        return delete (config as { limits?: unknown }).limits;
      case "assign":
        return Object.assign(config.limits, { max: 1 });
      case "held by a map":
        return (rooms.get("lobby") as { open: boolean }).open = false;
      case "map":
        return rooms.set(this.id, 1);
      case "map by its prototype":
        return Map.prototype.set.call(rooms, this.id, 1);
      case "map's subclass":
        return loud.put(this.id);
      case "set":
        return seen.add(this.id);
      case "map, where it has none":
        return (rooms as unknown as Upserting).getOrInsert(this.id, 1);
      case "map, computed":
        return (rooms as unknown as Upserting).getOrInsertComputed(this.id, () => 1);
      case "map by a method kept from before":
        return setOfMaps.call(rooms, this.id, 1);
      case "weak map, where it has none":
        return (byObject as unknown as Upserting).getOrInsert(this, 1);
      case "plain expression":
        return plainWord.lastIndex = 3;
      case "bytes that are taken away":
        return scratch.buffer.transfer().byteLength;
      case "bytes that go with a clone":
        return structuredClone(scratch, { transfer: [scratch.buffer] }).length;
      case "bytes that go with a stream":
        return new ReadableStream({ type: "bytes", start: (to) => to.enqueue(scratch) }).locked;
      case "bytes that are resized":
        return sized.resize(8);
      case "what is disposed of":
        return disposed.defer(() => {});
      case "iterator's helper":
        return helped.next().value;
      case "async generator":
        return lateIds.next() instanceof Promise;
      case "weak map":
        return byObject.set(this, 1);
      case "weak set":
        return weakSeen.add(this);
      case "date":
        return born.setFullYear(2000);
      case "global expression":
        return word.test("abc");
      case "sticky expression":
        return sticky.exec("aaa")?.[0];
      case "bytes":
        return scratch[0] = 7;
      case "view":
        return view.setUint8(0, 1);
      case "package's collection":
        return void tree.set("k", 1);
      case "address":
        return void (place.pathname = "/d");
      case "address's parameters":
        return void place.searchParams.set("c", "2");
      case "decoder":
        return void decoder.decode(new Uint8Array([0xe2]), { stream: true });
      case "response":
        return page.text();
      case "stream":
        return void source.getReader();
      case "stream's end":
        return void through.writable.getWriter();
      case "digest":
        return void digest.update("x");
      case "event":
        return void told.detail.n++;
      case "context":
        return void context.disable();
      case "promise":
        return void opened.resolve(1);
      case "executor's promise":
        return void settle(1);
      case "event target":
        return bus.addEventListener("said", () => {});
      case "parameters":
        return query.set("a", "2");
      case "headers":
        return heads.set("a", "2");
      case "generator":
        return ids.next().value;
      case "iterator":
        return shared.next().value;
      case "function":
        return memo(1);
      case "prototype":
        return (Base.prototype as unknown as Record<string, unknown>)["left"] = 1;
      case "method":
        return Probe.prototype.read = () => [];
      case "closure kept":
        return handlers.push(() => this.count++);
      case "global":
        return (globalThis as Record<string, unknown>)["left"] = 1;
      case "late global":
        return (Headers.prototype as unknown as Record<string, unknown>)["left"] = 1;
      case "global object":
        return (console as unknown as Record<string, unknown>)["left"] = 1;
      case "replaced class":
        return (globalThis as Record<string, unknown>)["Response"] = 1;
      case "environment":
        return process.env["LEFT"] = "1";
      case "emitter":
        return made.on("said", () => {});
      case "replaced global":
        return (globalThis as Record<string, unknown>)["parseInt"] = () => 7;
      default:
        throw new Error(`no ${how}`);
    }
  }

  async late(): Promise<unknown> {
    const held = await settled;
    return ++held.n;
  }

  /** What no other session sees. */
  /** What is imported when it is used. */
  async importLate(): Promise<unknown[]> {
    const { born, drawn, count } = await import("./module_state_late.ts");
    return [born, typeof drawn, typeof count];
  }

  async countLate(): Promise<number> {
    return (await import("./module_state_late.ts")).count();
  }

  /** What goes with a call is that call's. */
  async inContext(): Promise<unknown[]> {
    const seen = () => context.getStore() ?? "none";
    return [
      seen(),
      await context.run(1, async () => (await null, seen())),
      seen(),
      digest.copy().digest("hex").length,
    ];
  }

  /** How deep a stack may be: not as deep at each replay. */
  deep(how: string): number {
    let depth = 0;
    const down = (): number => ++depth < 100 || how !== "bounded" ? down() : depth;
    try {
      down();
    } catch (error) {
      this.count = depth;
      if (how === "named") return error instanceof RangeError ? depth : 0;
    }
    try {
      if (how === "bare") down();
    } catch {
      return depth;
    }
    return depth;
  }

  /** The same in a clause that takes apart what it is given. */
  deepTakenApart(): number {
    let depth = 0;
    const down = (): number => ++depth && down();
    try {
      return down();
      // deno-lint-ignore no-explicit-any -- what a clause is given has no other type
    } catch ({ name }: any) {
      return name === "RangeError" ? depth : 0;
    }
  }

  /** The same behind `finally`, which ends in something else than what passes it. */
  deepFinally(how: string): number {
    let depth = 0;
    const down = (): number => ++depth && down();
    for (;;) {
      try {
        if (how === "alone") down();
        break;
      } finally {
        // deno-lint-ignore no-unsafe-finally -- that is what is tried
        break;
      }
    }
    for (;;) {
      try {
        throw new Error("not yet");
      } catch {
        if (how !== "alone") down();
        break;
      } finally {
        // deno-lint-ignore no-unsafe-finally -- that is what is tried
        break;
      }
    }
    return depth;
  }

  /** The same of promises: none of these has a catch clause. */
  async deepPromise(how: string): Promise<number> {
    let depth = 0;
    const down = (): number => ++depth < 100 || how !== "bounded" ? down() : depth;
    const failing = Promise.resolve().then(down);
    if (how === "catch") await failing.catch(() => {});
    else if (how === "then") await failing.then(null, () => {});
    else if (how === "all settled") await Promise.allSettled([failing]);
    else if (how === "any") await Promise.any([failing, Promise.resolve(1)]);
    else if (how === "async") await (async () => await failing)().catch(() => {});
    else await failing;
    return depth;
  }

  read(): unknown[] {
    let own = 0;
    [1, 2, 3].forEach((n) => own += n);
    const mine = makeCounter();
    mine.next();
    mine.keep("x");
    const made = new Registry();
    made.enter("a");
    made.room("a");
    let vowels = 0;
    "education".replace(replaced, () => `${++vowels}`);
    const list = [...config.names, "mine"];
    const at = new Date(born);
    at.setFullYear(1999);
    return [
      ...[
        own,
        mine.next(),
        made.size,
        vowels,
        "abcabc".match(replaced)?.length,
        plainWord.test("abc"),
        list.length,
      ],
      ...[new Own().greet(), at.getTime() > 0, table[16], rooms.size, limits.max, query.get("a"), counted],
      ...[
        Probe.total,
        Probe.byId.size,
        structuredClone(config).limits.max,
        JSON.stringify({ ...config.limits }),
      ],
    ];
  }

  async packages(): Promise<unknown[]> {
    const order = Order.parse({ id: "1", of: ["tea"], at: "2026-01-02T03:04:05Z" });
    const bad = Order.safeParse({ id: 1 });
    const answer = await http.request("/ann");
    return [
      ...[
        order.of[0],
        bad.error?.issues.length,
        await answer.json(),
        format(parseISO("2026-01-02"), "yyyy/MM/dd"),
      ],
      ...[z.string().email().safeParse("x").success, z.object({ n: z.number() }).parse({ n: 1 }).n],
    ];
  }

  /** What nanoid draws is out of a pool that it has in a variable. */
  async draws(): Promise<string[]> {
    const drawn = [draw(), draw()];
    await new Promise((resolve) => setTimeout(resolve, 1));
    return [...drawn, draw(), draw()];
  }

  /** By way of what is not watched, since a package's class made it: a function with a variable of this session's. */
  lend(): void {
    let lent = 0;
    (http as { lent?: () => number }).lent = () => ++lent;
  }

  useLent(): number | undefined {
    return (http as { lent?: () => number }).lent?.();
  }

  /** What a class of node's has on its prototype an object of it has for itself; stacks are as they were. */
  emitters(): unknown[] {
    const emitter = new EventEmitter();
    let heard = 0;
    emitter.on("said", () => heard++);
    emitter.emit("said");
    Error.stackTraceLimit = 1;
    const response = new Response("x", { headers: { a: "1" } });
    return [heard, made.listenerCount("said"), response.headers.get("a")];
  }

  limit(): number {
    return Error.stackTraceLimit;
  }

  buffers(): number {
    return Buffer.from("q").buffer.byteLength;
  }

  /** What modules hold, in fields. */
  keepOfModules(): void {
    this.kept = { level: levels[1], both: [levels, new Map([[levels[0], 1]])], rooms, scratch, view, born };
  }

  /** Which of them are still the modules' own. */
  areOfModules(): string[] {
    const { level, both, ...others } = this.kept as {
      level: unknown;
      both: [unknown, Map<unknown, number>];
      rooms: unknown;
    };
    const own: Record<string, unknown> = { rooms, scratch, view, born };
    return [
      ...Object.entries(others).filter(([name, value]) => own[name] === value).map(([name]) => name),
      ...level === levels[1] ? ["level"] : [],
      ...both[0] === levels ? ["levels"] : [],
      ...both[1].has(levels[0]) ? ["key"] : [],
      ...Object.isFrozen(level) ? ["frozen"] : [],
      ...(level as { name: string }).name === "hard" ? ["hard"] : [],
    ];
  }

  keep(): unknown {
    this.kept = config.limits;
    return (this.kept as { max: number }).max;
  }
}

export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
