/** Counters that are stateful sessions, and all that can go wrong with one: what the end-to-end tests look at. */
import { defineApp, type EnvOf, list, Session, value } from "sojourn";
import { Hono } from "hono";

const VERSION: string = "1";

type Env = EnvOf<Record<never, never>, { counter: Counter; ready: Ready }>;

/** A number, what was done to it, and some misbehaviour. */
export class Counter extends Session<Env> {
  count = value(0);
  notes = list<string>();
  /** A plain field. */
  last = "";

  add(by: number): number {
    this.count.set(this.count.get() + by);
    return this.count.get();
  }

  get(): number {
    return this.count.get();
  }

  /** What is seen of time and chance, twice over: the same within a turn, and at every replay. */
  async dice(): Promise<readonly (string | number)[]> {
    const before = Date.now();
    const drawn = [crypto.randomUUID(), Math.random()];
    await new Promise((resolve) => setTimeout(resolve, 20));
    this.last = `${drawn[0]}`;
    return [...drawn, Date.now() - before >= 15 ? "later" : "never"];
  }

  lastDice(): string {
    return this.last;
  }

  /** Changes something, and then throws: nothing has changed. */
  fail(): never {
    this.count.set(1_000_000);
    this.last = "failed";
    throw Object.assign(new Error("the counter is stuck"), { code: "counter_stuck" });
  }

  loop(): never {
    this.count.set(2_000_000);
    for (;;);
  }

  /** Writes a row, which its caller then sees. */
  async keep(text: string): Promise<string | null> {
    await this.env.kv.set(["kept", this.id], `${text} ${this.count.get()}`);
    return (await this.env.kv.get<string>(["kept", this.id])).value;
  }

  /** Writes the same row, and does not look at it. */
  async put(text: string): Promise<void> {
    await this.env.kv.set(["kept", this.id], `${text} ${this.count.get()}`);
  }

  async got(): Promise<string | null> {
    return (await this.env.kv.get<string>(["kept", this.id])).value;
  }

  /** Asks another counter. */
  async addThere(id: string, by: number): Promise<number> {
    return await this.env.sessions.counter.get(id).add(by);
  }

  /** Adds, and has another add, which may do the same with this one. */
  async meet(id: string): Promise<number> {
    this.add(1);
    await new Promise((resolve) => setTimeout(resolve, 150));
    return await this.env.sessions.counter.get(id).add(10);
  }

  /** A handler that takes its time. */
  async dawdle(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** A call that it waits for no longer. */
  async forsake(id: string): Promise<string> {
    const late = new Promise<string>((resolve) => setTimeout(() => resolve("late"), 100));
    const told = await Promise.race([this.env.sessions.counter.get(id).add(100), late]);
    throw Object.assign(new Error(`${told}`), { code: "counter_stuck" });
  }

  /** A call that ends where it began. */
  async around(ids: readonly string[]): Promise<string> {
    const [next, ...rest] = ids;
    return next === undefined ? "reached" : await this.env.sessions.counter.get(next).around(rest);
  }

  ring(ms: number): void {
    this.setTimer("bell", ms);
  }

  /** A timer that is no state: it does not rest before that. */
  linger(ms: number): void {
    setTimeout(() => this.notes.push("lingered"), ms);
  }

  /** A timer whose handler never ends. */
  spin(): void {
    this.setTimer("spin", 1);
  }

  override onTimer(name: string): void {
    this.notes.push(name);
    while (name === "spin");
  }

  heard(): readonly string[] {
    return [...this.notes];
  }

  /** What no log has: a replay does otherwise. */
  escape(by: number): number {
    return escaped.by = (escaped.by ?? 0) + by;
  }

  version(): string {
    return VERSION;
  }

  close(): void {
    this.end();
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method === "POST") this.add(Number(await request.text()));
    return Response.json({ path: pathname, count: this.count.get() }, { headers: { "x-counter": this.id } });
  }
}

/** A counter that the nearest site stands by for. */
export class Ready extends Counter {
  static standby = true;
}

const http = new Hono<{ Bindings: Env }>();
/** Shared by the sessions of an isolate, and not watched: a package's class made it. */
const escaped = http as { by?: number };
const METHODS: ReadonlySet<string> = new Set(
  [
    "add",
    "get",
    "dice",
    "lastDice",
    "fail",
    "loop",
    "keep",
    "put",
    "got",
    "addThere",
    "meet",
    "forsake",
    "dawdle",
    "around",
    "ring",
    "spin",
    "linger",
    "heard",
    "escape",
    "version",
    "close",
  ],
);
http.post("/:id/call/:method", async (c) => {
  const { id, method } = c.req.param();
  if (!METHODS.has(method)) return c.notFound();
  const stub = c.env.sessions.counter.get(id) as unknown as Record<string, (...args: unknown[]) => unknown>;
  return c.json({ result: await stub[method]?.(...await c.req.json<unknown[]>()) ?? null });
});
http.post("/ready/:id/call/:method", async (c) => {
  const { id, method } = c.req.param();
  const stub = c.env.sessions.ready.get(id) as unknown as Record<string, (...args: unknown[]) => unknown>;
  return c.json({ result: await stub[method]?.(...await c.req.json<unknown[]>()) ?? null });
});
http.post("/:id/keep", async (c) => {
  const told = await c.env.sessions.counter.get(c.req.param("id")).keep(await c.req.text());
  const read = (await c.env.kv.get(["kept", c.req.param("id")])).value;
  return c.json({ told, read });
});
http.post("/:id/caught", async (c) => {
  try {
    await c.env.sessions.counter.get(c.req.param("id")).fail();
    return c.text("nothing was thrown");
  } catch (error) {
    return c.json({ message: (error as Error).message, code: (error as { code?: string }).code });
  }
});
http.post("/new", async (c) => {
  const counter = c.env.sessions.counter.create();
  return c.json({ id: counter.id, count: await counter.add(1) });
});
http.all("/:id/http", (c) => c.env.sessions.counter.get(c.req.param("id")).fetch(c.req.raw));

export default defineApp({ sessions: { counter: Counter, ready: Ready }, fetch: http.fetch });
