/** What is put into a bundle so that it asks before it changes the state of modules changes nothing where nobody listens. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type Comment, parse } from "acorn";
import { splice } from "../../../runtime/bundle/cuts.ts";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { moduleStateCuts, type Origin } from "../../../runtime/bundle/module_state.ts";
import { sourcesOf } from "../../../runtime/bundle/shifted_map.ts";

/** Every form in which a variable or a private member is written, and functions of every shape around them. */
const SHAPES = `
  import { defineApp, Session } from "sojourn";
  let a = 1, b = 2, c = 0, text = "";
  let list: number[] = [], rest: number[] = [], inner: { deep: number } = { deep: 0 };
  const set = (value: number) => a = value;
  const chain = () => a = b = c = 5;
  const swap = () => { [a, b] = [b, a]; };
  const objects = () => ({ deep: a, ...inner } = { deep: 7, inner: 1 } as never);
  const defaults = () => { [a = (b = 9), c = 3] = []; };
  const rests = () => { [a, ...list] = [1, 2, 3]; ({ length: b } = list); };
  const each = () => { for (a of [4, 5, 6]); for (text in { x: 1, y: 1 }); for ([a, b] of [[1, 2]]); };
  const counts = () => [a++, ++a, a--, --a, a += 2, a **= 2, a ??= 3, a ||= 4, a &&= 5];
  const literal = (value: number) => ({ add: () => value += 1, get: () => value });
  const curried = (x: number) => (y: number) => () => x += y;
  const inDefault = (x: number, later = () => x = 8) => { later(); return x; };
  const strict = function () { "use strict"; let n = 0; return () => n += 1; };
  async function waits(n: number) { const more = async () => n = await Promise.resolve(n + 1); await more(); return n; }
  function* counting(n: number) { const up = () => n++; while (n < 4) yield up(); }
  const loops = () => { const made: (() => number)[] = []; for (let i = 0; i < 3; i++) { made.push(() => i += 10); } return made.map((f) => f()); };
  const single = () => { const made: (() => number)[] = []; for (let i = 0; i < 2; i++) made.push(() => ++i); return made.map((f) => f()); };
  const caught = () => { try { throw 1; } catch (e) { const f = () => e = (e as number) + 1; return f(); } };
  const bare = () => { try { throw 1; } catch { return 2; } finally { a = 0; } };
  const passed = () => { let n = 0; try { try { throw 1; } finally { n++; } } catch { n += 10; } finally { n += 100; } return n; };
  const left = () => { out: for (let i = 0;; i++) { try { if (i === 3) return i; continue out; } catch { return -1; } finally { if (i === 2) break out; } } return 9; };
  function* closed() { try { yield 1; } finally { a = 77; } }
  const patterned = () => { try { throw { deep: 3 }; } catch ({ deep }) { return deep; } };
  const switched = (n: number) => { switch (n) { case 1: { let k = 1; return (() => k = 2)(); } default: let m = 3; return (() => m += 1)(); } };
  const hoisted = () => { const first = early(); var late = 5; function early() { late = 4; return late; } return [first, late]; };
  class Box {
    #n = 1; #list = [1]; static #all = 0; static shared = 0; plain = 0;
    static next: () => number;
    static { let n = 2; Box.next = () => n *= 2; }
    get value() { return this.#n; }
    set #hidden(v: number) { this.#n = v; }
    up() { this.#n++; this.#n += 2; [this.#n] = [this.#n * 2]; this.#list = [...this.#list, this.#n]; Box.#all += 1; return [this.#n, this.#list.length, Box.#all]; }
    other(box: Box) { (box ?? this).#n = 50; box.#hidden = box.#n + 1; return box.value; }
    static reset() { this.#all = 100; return Box.#all; }
    nested() { const outer = this; class Inner { #m = 7; both() { this.#m = 8; outer.#n = 9; return [this.#m, outer.#n]; } } return new Inner().both(); }
  }
  class More extends Box { #more; constructor(n: number) { super(); this.#more = n; } get more() { return this.#more; } }
  enum Kind { A, B }
  export class Probe extends Session { n = 0; go() { return ++this.n; } }
  export async function run() {
    const box = new Box();
    return JSON.stringify([
      set(3), chain(), [a, b, c], (swap(), a), (objects(), a), (defaults(), [a, b, c]), (rests(), [a, b, list]),
      (each(), [a, b, text]), counts(), (() => { const l = literal(1); l.add(); return l.get(); })(), curried(1)(2)(),
      inDefault(1), (() => { const s = strict(); s(); return s(); })(), await waits(1), [...counting(0)], loops(), single(),
      caught(), bare(), passed(), left(), (() => { for (const one of closed()) return [one, a]; })(), a, patterned(), switched(1), switched(2), hoisted(), box.up(), box.other(new Box()), Box.reset(), box.nested(), Box.next(),
      Box.next(), new More(4).more, Kind.B, rest, new Probe instanceof Session,
    ]);
  }
  export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
`;

/** What `run` of a module comes to, in one bundle or as it is. */
async function resultOf(code: string): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    await Deno.writeTextFile(join(folder, "bundle.mjs"), code);
    const { run } = await import(`file://${folder}/bundle.mjs`) as { run(): Promise<string> };
    return await run();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function bundleOf(source: string): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    await Deno.writeTextFile(join(folder, "app.ts"), source);
    const result = await bundleApp(join(folder, "app.ts"));
    if (result.kind === "failed") throw new Error(result.message);
    return new TextDecoder().decode(result.code);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a bundle that asks before it changes the state of its modules does what it did", async () => {
  // Without a class of sessions nothing is put in, and the rest of the program is the same.
  const without = SHAPES.replace(", Session }", " }").replace(/export class Probe .*/, "").replace(
    "new Probe instanceof Session",
    "true",
  ).replace("sessions: { probe: Probe }, ", "");
  const [asking, plain] = [
    await bundleOf(SHAPES.replace("new Probe instanceof Session", "true")),
    await bundleOf(without),
  ];
  assert.match(asking, /__sojourn_modules\.refuse\(0, "a", "app\.ts"\)/);
  assert.doesNotMatch(plain, /__sojourn_modules/, "an app without sessions is as it was");
  assert.equal(await resultOf(asking), await resultOf(plain));
});

Deno.test("whose a part of a bundle is follows from the module that it is of, whatever a package's own source maps say", () => {
  const code = [
    "var helper = 1;",
    "// ../cache/npm/registry.example/lib/1.2.3/dist/index.js",
    "var lib = () => 1;",
    "// app.ts",
    "var text = `",
    "// ../cache/npm/registry.example/none/1.0.0/x.js",
    "`;",
    "// @license of nobody",
    "var own = 1;",
    "// https://example.com/mod.ts",
    "var far = 1;",
    "// ../installed/functions/mod.ts",
    "var ours = 1;",
  ].join("\n");
  const comments: Comment[] = [];
  parse(code, { ecmaVersion: "latest", sourceType: "module", onComment: comments });
  // What it was made from lies outside of its folder, by its own map.
  const sourceMap = JSON.stringify({
    version: 3,
    sources: ["../../lib/src/index.ts"],
    mappings: "AAAA;;AAAA",
  });
  const moduleNamed = (path: string) =>
    path.replace(/^.*registry.example\/([^/]+)\/([^/]+)/, "npm:$1@$2").replace("../installed", "sojourn");
  const { originAt } = sourcesOf({ sourceMap, moduleNamed }, code, comments);
  assert.deepEqual(
    ["helper", "lib", "text", "own", "far", "ours"].map((name) => originAt(code.indexOf(`var ${name}`))),
    [
      { kind: "platform" },
      { kind: "package", name: "lib" },
      { kind: "own", name: "app.ts" },
      { kind: "own", name: "app.ts" },
      { kind: "package", name: "https://example.com/mod.ts" },
      { kind: "platform" },
    ],
  );
});

Deno.test("a name that the bundle has already is not taken", async () => {
  const code = await bundleOf(SHAPES.replace(`text = ""`, `text = "__sojourn_modules"`));
  assert.match(code, /const __sojourn_modules_ = globalThis/);
});

/** What packages are written like: all of it is `lib`'s, but for the class of sessions. */
const PACKAGE = `
const SESSION_BASE = Symbol.for("sojourn.stateful.base");
class Base {}
Object.defineProperty(Base.prototype, SESSION_BASE, { value: true });
class Probe extends Base {}
var __commonJS = (cb, mod) => function () { return mod || (0, cb[Object.keys(cb)[0]])((mod = { exports: {} }).exports, mod), mod.exports; };
var require_old = __commonJS({ "old.js"(exports, module) {
  "use strict";
  var count = 0, table = {}, last;
  exports.next = function () { last = ++count; return table[count] = last; };
} });
let sequence = 0, place = 5;
const state = {};
const i = 7;
let blocked;
{ let inBlock = 0; blocked = () => inBlock++; }
const take = () => { sequence += 1; place = 0; state.seq = (state.seq ?? 0) + 1; state["named"] = 1; delete state.old; return [sequence, place, state.seq]; };
const arrow = (n) => () => n = n + 1;
const inDefault = (n, later = () => n = 8) => { later(); return n; };
const defaulted = (n, { up } = { up: 1 }) => { const add = () => { n += up; return n; }; add(); return add(); };
function factory() { "use strict"; const kept = [], made = new Map(), by = Object.create(null); let at = 0, text = ""; return { push: (v) => kept.push(v), set: (v) => made.set(v, 1).size, in: (v) => (by[v] = 1, Object.keys(by).length), at: () => at++, down: () => at--, say: (v) => text = v }; }
const shadowed = (x) => { { let x = 2; const g = () => ++x; g(); x; } return x; };
function hoists() { const first = early(); let n = 1; function early() { return typeof later; } var later = () => n++; return [first, later(), n]; }
function* generated(n) { const up = () => ++n; while (n < 4) yield up(); }
const waits = async (n) => { const more = async () => n = n + 1; await more(); return n; };
const loops = () => { const made = []; for (let i = 0; i < 3; i++) made.push(() => ++i); return made.map((f) => f()); };
export async function run() {
  const next = arrow(1), f = factory(), g = factory();
  const old = require_old();
  return JSON.stringify([take(), take(), next(), next(), inDefault(1), defaulted(1), f.push(1), f.push(2), f.set("a"), f.in("a"), f.in("b"),
    f.at(), f.at(), f.down(), g.at(), f.say("x"), shadowed(1), hoists(), [...generated(0)], await waits(1), loops(), old.next(), old.next(), sequence, blocked(), blocked(), i]);
}
`;

function packaged(): string {
  const program = parse(PACKAGE, { ecmaVersion: "latest", sourceType: "module" });
  const helper = PACKAGE.indexOf("var __commonJS"), behind = PACKAGE.indexOf("\n", helper);
  const originAt = (at: number): Origin =>
    at >= helper && at < behind ? { kind: "platform" } : { kind: "package", name: "lib" };
  const sources = { originAt, nameAt: () => undefined };
  return splice(PACKAGE, moduleStateCuts(PACKAGE, program, () => sources));
}

Deno.test("a package that tells of what it changes does what it did, whether somebody listens or not", async () => {
  const code = packaged();
  const wanted = await resultOf(PACKAGE);
  assert.equal(await resultOf(code), wanted);
  assert.match(code, /\.variable\?\.\("lib", "sequence", true/);
  for (const owner of [0, {}]) {
    const slot = { owner, made: () => 0, hold() {}, variable: () => ({}), held() {}, change() {} };
    const listening = code.replace(`globalThis[Symbol.for("sojourn.modules")]`, "slotOfTest");
    Object.assign(globalThis, { slotOfTest: slot });
    try {
      assert.equal(await resultOf(listening), wanted);
    } finally {
      Reflect.deleteProperty(globalThis, "slotOfTest");
    }
  }
});

Deno.test("a package tells which variables it changes, which are only counted up, what holds objects, and what it assigns to (MS2)", async () => {
  const told: string[] = [], held: string[] = [];
  let touched: readonly string[] = [];
  const slot = {
    owner: 0,
    made: () => 0,
    hold: (all: { touched: readonly string[] }) => touched = all.touched,
    variable: (of: string, name: string, isCounted: boolean) => void told.push(`${of} ${name} ${isCounted}`),
    held: (of: string, values: [string][]) =>
      void held.push(`${of} ${values.map(([name]) => name).join(" ")}`),
  };
  Object.assign(globalThis, { slotOfTest: slot });
  try {
    await resultOf(packaged().replace(`globalThis[Symbol.for("sojourn.modules")]`, "slotOfTest"));
  } finally {
    Reflect.deleteProperty(globalThis, "slotOfTest");
  }
  assert.deepEqual([...new Set(told)].toSorted(), [
    ...["lib at false", "lib count true", "lib inBlock true", "lib last false", "lib n true"],
    ...["lib place false", "lib sequence true", "lib text false", "lib x true"],
  ]);
  assert.deepEqual([...new Set(held)].toSorted(), ["lib count table last", "lib kept made by"]);
  assert.deepEqual([...touched].toSorted(), ["named", "next", "old", "seq"]);
});
