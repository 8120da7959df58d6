/** A stateful session that does what it is told, in a small language (programs.ts): so that one bundle is any program. */
import { Buffer } from "node:buffer";
import { bytes, defineApp, type EnvOf, list, map, Session, value } from "sojourn";
import { Hono } from "hono";
import type { Step } from "./programs.ts";

type Env = EnvOf<Record<never, never>, { probe: Probe }>;

let counted = 0;
const rooms = new Map<string, number>();
const byObject = new WeakMap<object, number>();
const word = /\w/g;
const scratch = new Uint8Array(8);
const config = { limits: { max: 5 }, names: ["a"] };
const next = (() => {
  let n = 0;
  return () => ++n;
})();
/** Made by a package's class, and so neither frozen nor watched: what only a comparison finds. */
const http = new Hono() as { leaked?: number };

/** What changes modules, each refused. */
const MODULE: Readonly<Record<string, (of: Probe) => unknown>> = {
  variable: () => ++counted,
  static: () => ++Probe.total,
  closure: () => next(),
  map: ({ id }) => rooms.set(id, 1),
  weak: (of) => byObject.set(of, 1),
  expression: () => word.test("abc"),
  bytes: () => scratch[0] = (scratch[0] ?? 0) + 1,
  object: () => config.limits.max++,
  list: () => config.names.push("b"),
};

/** What the platform dates, draws, counts or orders by itself. */
const SOURCES: Readonly<Record<string, () => unknown>> = {
  now: () => Date.now(),
  date: () => new Date().toISOString(),
  dateText: () => Date(),
  dateOfClone: () => new (structuredClone(new Date(0)).constructor as DateConstructor)().getTime(),
  performance: () => performance.now(),
  origin: () => performance.timeOrigin,
  mark: () => new PerformanceMark("m").startTime,
  temporal: () => `${Temporal.Now.instant()}`,
  intl: () => new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "full" }).format(),
  zone: () => Intl.DateTimeFormat().resolvedOptions().timeZone,
  random: () => Math.random(),
  uuid: () => crypto.randomUUID(),
  values: () => crypto.getRandomValues(new Uint8Array(8)).join(),
  file: () => new File(["x"], "x").lastModified,
  form: async () => {
    const form = new FormData();
    form.append("f", new Blob(["x"]), "x");
    const text = await new Response(form).text();
    return [text, (form.get("f") as File).lastModified];
  },
  digest: async () =>
    Buffer.from(await crypto.subtle.digest("SHA-256", new Uint8Array([1, 2]))).toString("hex"),
  key: async () => {
    const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
    return Buffer.from(await crypto.subtle.exportKey("raw", key)).toString("hex");
  },
  stack: () => new Error("e").stack,
  pool: () => [Buffer.from("q").byteOffset, Buffer.from("q").buffer.byteLength],
  reference: () => new WeakRef({ a: 1 }).deref()?.a,
  sort: () => [3, 1, 2].sort(() => Math.random() - 0.5).join(),
  url: () => new URL("http://a/?b=1").href,
  agent: () => navigator.userAgent,
  stream: async () =>
    (await Array.fromAsync(new Blob(["a", "b"]).stream().pipeThrough(new TextDecoderStream()))).join(),
  compressed: async () => {
    const stream = new Blob(["aaaa"]).stream().pipeThrough(new CompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer()).join();
  },
};

export const NAMES = { module: Object.keys(MODULE), sources: Object.keys(SOURCES) };

/** Something of each kind, for methods that want one. */
const RECEIVERS: Readonly<Record<string, () => unknown>> = {
  Array: () => [3, 1, 2],
  String: () => "a-b-c",
  Number: () => 12.5,
  RegExp: () => /a(b)?/g,
  Date: () => new Date(86_400_000),
  Map: () => new Map([["a", 1]]),
  Set: () => new Set([1, 2]),
  Uint8Array: () => new Uint8Array([1, 2, 3]),
  URL: () => new URL("http://a/b?c=1"),
  Promise: () => Promise.resolve(1),
  Function: () => (a: unknown) => a,
  Symbol: () => Symbol.iterator,
  BigInt: () => 5n,
};
const ARGS: readonly (() => unknown[])[] = [
  () => [],
  () => [2],
  () => ["a", 1],
  () => [[3, 1, 2], (a: unknown) => a],
  () => [{ a: 1 }, "a"],
  () => [new Uint8Array([1, 2])],
];

/** Calls a member of the realm, or reads it: what comes of it, as a text. */
function member(path: string, args: number): string {
  const [owner = "", name = ""] = path.split("#");
  const steps = owner.split(".");
  const isMethod = steps.at(-1) === "prototype";
  try {
    let of: unknown = globalThis;
    for (const step of isMethod ? steps.slice(0, -1) : steps) {
      if (step !== "globalThis") of = Reflect.get(Object(of), step);
    }
    const Class = of as new () => object;
    const target = isMethod ? RECEIVERS[steps[0] ?? ""]?.() ?? new Class() : of;
    const key = name.startsWith("@@") ? Symbol[name.slice(2) as "iterator"] : name;
    const found: unknown = Reflect.get(Object(target), key, target);
    const result = typeof found === "function" ? Reflect.apply(found, target, ARGS[args]?.() ?? []) : found;
    if (result instanceof Promise) result.catch(() => {});
    return told(result);
  } catch (error) {
    return `threw ${told(error)}`;
  }
}

/** As a text that is the same for the same. */
function told(of: unknown): string {
  try {
    const text = of instanceof Error
      ? `${of.name}: ${of.message}`
      : typeof of === "object"
      ? JSON.stringify(of)
      : String(of);
    return `${text}`.slice(0, 200);
  } catch (error) {
    return `no text: ${(error as Error).name}`;
  }
}

export class Probe extends Session<Env> {
  static total = 0;
  plain: Record<string, unknown> = {};
  log: string[] = [];
  seen = map<string, unknown>();
  items = list<unknown>();
  last = value<unknown>(null);
  memory = bytes(16);

  async run(steps: readonly Step[]): Promise<string[]> {
    const said: string[] = [];
    for (const step of steps) await this.#step(step, said);
    return said;
  }

  async #step(step: Step, said: string[]): Promise<void> {
    switch (step.do) {
      case "set":
        this.plain[step.name] = await this.#source(step.source);
        return;
      case "put":
        this.seen.set(step.name, told(await this.#source(step.source)));
        return;
      case "push":
        this.items.push({ n: this.items.length, said: said.length });
        this.log.push(`${this.items.length}`);
        return;
      case "delete":
        this.seen.delete(step.name);
        delete this.plain[step.name];
        return;
      case "bytes":
        this.memory.set([this.items.length], step.at);
        this.last.set({ at: step.at });
        return;
      case "source":
        return void said.push(told(await this.#source(step.source)));
      case "member":
        return void said.push(member(step.path, step.args));
      case "wait":
        if (step.how === "timer") await new Promise((resolve) => setTimeout(resolve, 1));
        else if (step.how === "immediate") await new Promise((resolve) => setImmediate(resolve));
        else if (step.how === "race") said.push(await Promise.race([this.#late("a", 1), this.#late("b", 0)]));
        else await null;
        return;
      case "read":
        return void said.push(told((await this.env.kv.get([step.name])).value));
      case "write":
        await this.env.kv.set([step.name], told(await this.#source(step.source)));
        return;
      case "fetch":
        return void said.push(await (await fetch(`https://a.example/${step.name}`)).text());
      case "timer":
        return step.ms === 0 ? this.clearTimer(step.name) : this.setTimer(step.name, step.ms);
      case "later":
        setTimeout(() => this.log.push(`later ${Math.random()}`), 1);
        return;
      case "both": {
        const [a, b]: [string[], string[]] = [[], []];
        const all = [[step.first, a], [step.second, b]] as const;
        await Promise.all(all.map(async ([steps, to]) => {
          for (const each of steps) {
            await this.#step(each, to);
            this.log.push(each.do);
          }
        }));
        return void said.push(a.join(), b.join());
      }
      case "try":
        try {
          for (const each of step.steps) await this.#step(each, said);
        } catch (error) {
          said.push(told(error));
        }
        return;
      case "throw":
        throw new Error(`thrown after ${said.length}`);
      case "module":
        return void MODULE[step.how]?.(this);
      case "unkept":
        this.plain["unkept"] = step.how === "function"
          ? () => 1
          : step.how === "symbol"
          ? Symbol("s")
          : Promise.resolve();
        return;
      case "leak":
        http.leaked = (http.leaked ?? 0) + 1;
        return void said.push(`${http.leaked}`);
    }
  }

  async #late(name: string, ms: number): Promise<string> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return name;
  }

  async #source(name: string): Promise<unknown> {
    return await SOURCES[name]?.();
  }

  state(): unknown {
    return [
      ...[this.plain, this.log, [...this.seen], this.items.toArray(), this.last.get(), [
        ...this.memory.slice(),
      ]],
    ];
  }
}

export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
