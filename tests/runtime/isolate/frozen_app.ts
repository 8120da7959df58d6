/** What sessions may do to objects of the language, and what packages do that are used in them. */
import { defineApp, type EnvOf, Session } from "sojourn";
import { Hono } from "hono";
import { z } from "zod";

type Env = EnvOf<Record<never, never>, { probe: Probe }>;
type Open = Record<string, unknown>;

// While modules run, as a polyfill does.
Object.defineProperty(Array.prototype, "penultimate", {
  value(this: unknown[]) {
    return this.at(-2);
  },
});

const http = new Hono();
http.get("/:name", (c) => c.json({ hello: c.req.param("name"), agent: c.req.header("user-agent") ?? null }));
const Order = z.object({ id: z.string().min(1), of: z.array(z.enum(["tea", "coffee"])).default([]) });

class Probe extends Session<Env> {
  /** Each tries to leave something for other sessions. */
  leave(): string[] {
    const said: string[] = [];
    const attempts: (() => unknown)[] = [
      () => (Array.prototype as unknown as Open)["left"] = 1,
      () => (Object.prototype as Open)["left"] = 1,
      () => (Object.prototype as Open)["toString"] = () => "left",
      () => (Map as unknown as Open)["left"] = 1,
      () => (Map.prototype as unknown as Open)["get"] = () => "left",
      () => ((async () => {}).constructor.prototype as Open)["left"] = 1,
      () => (Object.getPrototypeOf([].values()) as Open)["next"] = () => ({ done: true }),
      () => (Object.getPrototypeOf(Uint8Array.prototype) as Open)["left"] = 1,
      () => (JSON as unknown as Open)["left"] = 1,
      () => (Promise.prototype as unknown as Open)["then"] = () => {},
      () => (RegExp.prototype as unknown as Open)["exec"] = () => null,
      () => (Symbol as unknown as Open)["left"] = 1,
      () => (Object.getPrototypeOf([].values().map((each) => each)) as Open)["left"] = 1,
      () =>
        (Object.getPrototypeOf(Iterator.from({ next: () => ({ done: true }) } as never)) as Open)["left"] = 1,
      () => (Object.getPrototypeOf(new Intl.Segmenter().segment("")) as Open)["left"] = 1,
      () => (Object.getPrototypeOf(new Intl.Segmenter().segment("")[Symbol.iterator]()) as Open)["left"] = 1,
      () => (Object.getPrototypeOf(new URLSearchParams().keys()) as Open)["left"] = 1,
      () => (Iterator.prototype as unknown as Open)["left"] = 1,
      () => (Session.prototype as unknown as Open)["left"] = 1,
    ];
    for (const attempt of attempts) {
      try {
        attempt();
        said.push("done");
      } catch (error) {
        said.push((error as Error).constructor.name);
      }
    }
    return said;
  }

  /** What programs do with objects of their own. */
  assign(): unknown[] {
    const error = new Error("e");
    error.name = "Own";
    error.message = "m";
    const plain: Open = {};
    plain["toString"] = () => "mine";
    plain["constructor"] = "c";
    plain["hasOwnProperty"] = 1;
    function Old(this: Open): void {
      this["valueOf"] = () => 7;
    }
    Old.prototype.toString = () => "old";
    Old.prototype.constructor = Old;
    const old = Reflect.construct(Old, []) as object;
    const list = [1, 2] as unknown as Open & unknown[];
    list["concat"] = (() => "own") as never;
    list.push(3);
    class Custom extends Error {
      constructor() {
        super("custom");
        this.name = "Custom";
      }
    }
    const then: Open = Object.create(Promise.prototype);
    then["then"] = null;
    const names = Object.keys(plain).join();
    return [
      `${error}`,
      `${plain}`,
      names,
      `${old}`,
      Number(old),
      list.length,
      (list as unknown as { penultimate(): unknown }).penultimate(),
      `${new Custom()}`,
      { ...plain }["constructor"],
      JSON.stringify(Object.assign({}, { toString: 1 })),
    ];
  }

  /** The same of what inherits from collections, iterators and dates. */
  override(): unknown[] {
    const frozen = new Map([["a", 1]]);
    Object.assign(frozen, { set: () => "refused", clear: () => "refused" });
    const iterator = new Map([["a", 1]]).entries() as unknown as Open & Iterable<unknown>;
    (iterator as unknown as Record<symbol, unknown>)[Symbol.iterator] = () => ["own"][Symbol.iterator]();
    class Seen extends Set<number> {}
    const seen = new Seen();
    Object.assign(seen, { add: () => "seen" });
    const date = new Date(0) as unknown as Open & Date;
    date["toString"] = () => "mine";
    const promise = Promise.resolve() as unknown as Open;
    promise["then"] = 1;
    const call = (() => 1) as unknown as Open;
    call["call"] = 3;
    const closed = Object.preventExtensions(new Map()) as unknown as Open;
    const own = Object.defineProperty(new Error("e"), "name", {
      value: "E",
      writable: false,
    }) as unknown as Open;
    const tried = (of: Open, name: string): string => {
      try {
        of[name] = 1;
        return "done";
      } catch (error) {
        return /not extensible|read only/.exec((error as Error).message)?.[0].replace(
          "read only",
          "not writable",
        ) ?? "a prototype";
      }
    };
    return [
      `${date}`,
      frozen.set("a", 2) as unknown,
      frozen.get("a") === 1 && Object.keys(frozen).join() === "set,clear",
      promise["then"],
      [...iterator][0],
      (seen as unknown as Open & { add(): unknown }).add(),
      call["call"],
      tried(closed, "get"),
      tried(own, "name"),
      tried(Map.prototype as unknown as Open, "get"),
    ];
  }

  async packages(): Promise<unknown> {
    const bad = Order.safeParse({ id: "", of: ["milk"] });
    const answer = await http.request("/ann", { headers: { "user-agent": "test" } });
    return [Order.parse({ id: "1", of: ["tea"] }), bad.error?.issues.length, await answer.json()];
  }
}

export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
