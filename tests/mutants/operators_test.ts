/** What is changed in a file, and what is not. */
import assert from "node:assert/strict";
import { mutantsOf, mutated } from "./mutant.ts";
import { changesOf, OPERATORS } from "./operators.ts";
import { parse, syntaxErrors } from "./syntax.ts";

/** Bodies, and what their changes make of them. */
const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  ["guard never", "if (a) b();", ["if ((a) && Boolean(0)) b();"]],
  ["guard always", "if (a) b();", ["if ((a) || Boolean(1)) b();"]],
  ["guard never", "while (a) b();", ["while ((a) && Boolean(0)) b();"]],
  ["guard always", "while (a) b();", []],
  ["half a guard", "if (a && b || c) d();", [
    "if (a && b) d();",
    "if (c) d();",
    "if (a || c) d();",
    "if (b || c) d();",
  ]],
  ["half a guard", "if (a && b && c) d();", ["if (a && b) d();", "if (a && c) d();", "if (b && c) d();"]],
  ["fallback only", "f(a ?? 0);", ["f((0));"]],
  ["overwrites", "a ??= b;", ["a = b;"]],
  ["boundary", "f(a < b, c >= d);", ["f(a <= b, c >= d);", "f(a < b, c > d);"]],
  ["equality", "f(g(a === b));", ["f(g(a !== b));"]],
  ["equality", "if (a === b) f();", []],
  ["off by one", "f(a + 1, b - 1, 1 + c);", [
    "f(a, b - 1, 1 + c);",
    "f(a + 1, b, 1 + c);",
    "f(a + 1, b - 1, c);",
  ]],
  ["off by one", "f(a + 2);", []],
  ["arithmetic", "f(a + b);", ["f(a - b);"]],
  ["arithmetic", 'f("a" + b);', []],
  ["max or min", "f(Math.max(a, b));", ["f((a));", "f((b));"]],
  ["max or min", "f(Math.max(a, ...b));", ["f((a));", "f(Math.max(...b));"]],
  ["max or min", "f(Math.max(...a));", ["f(Math.min(...a));"]],
  ["truth", "const a = b === c;", ["const a = true;", "const a = false;"]],
  ["truth", "f({ isOpen: true });", ["f({ isOpen: false });"]],
  ["left out", "a(); b.c = 1;", ["; b.c = 1;", "a(); ;"]],
  ["left out", "if (a) b(); else c();", ["if (a) {} else c();", "if (a) b(); else {}"]],
  ["left out", "f(() => void a());", ["f(() => undefined);", ";"]],
  ["not awaited", "await a();", ["a();"]],
  ["goes on", "for (const a of b) { if (a) { c(); continue; } d(); }", [
    "for (const a of b) { if (a) { c(); ; } d(); }",
  ]],
  ["swapped", "a(); b.c = 1;", ["b.c = 1; a();"]],
  ["swapped", "a.b = 1; b.c = 1;", []],
  ["swapped", "a.push(b); c.d = 1;", []],
  ["swapped", "a.push(c.d); c.d = 1;", ["c.d = 1; a.push(c.d);"]],
  ["swapped", "a.push(b()); c.d = 1;", ["c.d = 1; a.push(b());"]],
  ["swapped", "list.push(b.at(-1)); c.d = Math.max(c.d, b.e);", []],
  ["swapped", "a.pop(); b.pop();", []],
  ["swapped", "a.push(b.at(-1)); b.pop();", ["b.pop(); a.push(b.at(-1));"]],
  ["swapped", "const a = await b(); c();", ["c(); const a = await b();"]],
  ["swapped", "const a = await b(); c(a);", []],
  ["field left out", "f({ ...a, b: 1, c });", ["f({ ...a,  c });", "f({ ...a, b: 1,  });"]],
  ["element left out", "f([...a, b]);", ["f([ b]);", "f([...a, ]);"]],
  ["unfiltered", "f(a.filter((b) => b > 0), c.sort());", [
    "f(a, c.sort());",
    "f(a.filter((b) => b > 0), c);",
  ]],
  ["some or every", "f(a.some(b));", ["f(a.every(b));"]],
  ["other end", "f(a.shift(), b.pop());", ["f(a.pop(), b.pop());", "f(a.shift(), b.shift());"]],
];

for (const [operator, body, wanted] of CASES) {
  Deno.test(`changes: ${operator}: ${body}`, () => {
    const wrap = (text: string) => `async function f() { ${text} }`;
    const parsed = parse("store/a.ts", wrap(body));
    const made = changesOf(parsed).filter((change) => change.operator === operator)
      .map((change) => mutated(parsed.text, change));
    assert.deepEqual(made.sort(), wanted.map(wrap).sort());
  });
}

Deno.test("changes: a function that may return nothing returns it", () => {
  const made = (type: string) => {
    const parsed = parse("store/a.ts", `function f(): ${type} { return g; }`);
    return changesOf(parsed).filter(({ operator }) => operator === "returns nothing").map(({ becomes }) =>
      becomes
    );
  };
  assert.deepEqual(
    ["A | null", "Promise<A | undefined>", "number", "readonly A[]", "A"].map(made),
    [["null"], ["undefined"], ["0"], ["[]"], []],
  );
});

Deno.test("changes: a function that returns a truth value returns either, whatever it asks", () => {
  const made = (type: string) => {
    const parsed = parse("store/a.ts", `function f(): ${type} { return g(); }`);
    return changesOf(parsed).filter(({ operator }) => operator === "truth").map(({ becomes }) => becomes);
  };
  assert.deepEqual(["boolean", "A"].map(made), [["true", "false"], []]);
});

Deno.test("changes: what a constructor must set, types, imports and texts are left alone (OP3)", () => {
  const parsed = parse(
    "store/a.ts",
    'import a from "./b.ts";\ninterface B { c: 1 | 2 }\nclass C { #d: number; constructor(e: number) { this.#d = e; } }\n' +
      "const f = `${g() ?? 1}`;\n",
  );
  assert.deepEqual(changesOf(parsed), []);
});

Deno.test("changes: each kind has a case here", () => {
  const shown = new Set([...CASES.map(([operator]) => operator), "returns nothing"]);
  assert.deepEqual(Object.keys(OPERATORS).filter((operator) => !shown.has(operator)), []);
});

Deno.test("each change of a real file parses, and no two are the same text (OP1, OP2)", async () => {
  const file = "functions/sessions/home/live_home.ts";
  const text = await Deno.readTextFile(new URL(`../../${file}`, import.meta.url));
  const made = changesOf(parse(file, text)).map((change) => mutated(text, change));
  assert.ok(made.length > 100);
  assert.equal(new Set(made).size, made.length);
  for (const one of made) assert.deepEqual(syntaxErrors(file, one), []);
});

Deno.test("a mutant keeps its id where other members change, and has another where its own text does (MU1)", async () => {
  const idsOf = async (text: string) => (await mutantsOf(parse("store/a.ts", text), [])).map(({ id }) => id);
  const before = await idsOf("function f() { if (a) b(); if (a) b(); }");
  assert.equal(new Set(before).size, 4);
  assert.deepEqual(await idsOf("const c = 1;\n\nfunction f() { if (a) b();\n if (a) b(); }"), before);
  assert.notDeepEqual(await idsOf("function f() { if (d) b(); if (d) b(); }"), before);
});

Deno.test("mutants of counters, notes, logs and texts of errors are harmless, others are not", async () => {
  const text = `class A { f() {
    this.#core.count("a");
    core.ports.note("b", { c: d ?? 1 });
    if (e) throw new Error("f" + (g ? 1 : 2));
    this.#h(); core.count("i");
    keepers.log(j).append(k);
  } }`;
  const mutants = await mutantsOf(parse("store/a.ts", text), []);
  const kinds = mutants.filter(({ harmless }) => harmless !== null).map(({ harmless, was }) =>
    `${harmless}: ${was}`
  );
  // In the order of their places; of two that begin together the shorter first.
  assert.deepEqual(kinds, [
    'counter: this.#core.count("a");',
    'counter: this.#core.count("a"); core.ports.note("b", { c: d ?? 1 });',
    'note: core.ports.note("b", { c: d ?? 1 });',
    "note: d ?? 1",
    "text of an error: g",
    "text of an error: g",
    'counter: this.#h(); core.count("i");',
    'counter: core.count("i");',
    'counter: core.count("i"); keepers.log(j).append(k);',
  ]);
});

Deno.test("what no citation covers stands for the rules that no code cites (MU2)", async () => {
  const parsed = parse("store/a.ts", "function f() { if (a) b(); }\nfunction g() { if (c) d(); }");
  const covers = [0, parsed.text.indexOf("function g")] as const;
  const cited = { rule: "store/a.ts A1", file: "store/a.ts", at: 0, covers, by: "code" as const };
  const mutants = await mutantsOf(parsed, [cited], ["store/a.ts A2"]);
  assert.ok(mutants.length >= 4);
  for (const { member, rules } of mutants) {
    assert.deepEqual(rules, [member === "f" ? "store/a.ts A1" : "store/a.ts A2"], member);
  }
});
