/** What is tried on a mutant, and which results count. */
import assert from "node:assert/strict";
import { choiceOf, type Kinship, namesRule } from "./choice.ts";
import { type Mutant, mutantsOf } from "./mutant.ts";
import { type Result, Results } from "./results.ts";
import type { Surveyed } from "./survey.ts";
import { sampled } from "./sample.ts";
import { parse } from "./syntax.ts";

const test = (suite: string, costMs: number): Surveyed => ({
  kind: "test",
  suite,
  name: "",
  costMs,
  passes: {},
});
const seed = (suite: string, name: string, costMs: number): Surveyed => ({
  kind: "simulator",
  suite,
  name,
  costMs,
  passes: {},
});
const namesOf = (trials: readonly Surveyed[]) => trials.map(({ suite, name }) => `${suite} ${name}`.trim());

const file = (suite: string, costMs: number): Surveyed => ({ ...test(suite, costMs), kind: "file" });
const never = () => false;
const far = (): Kinship => "far";

Deno.test("tests of the rule and of the file come before those of its folder and others, the cheap before the dear (CO1, CO2)", () => {
  const kin = new Map<string, Kinship>([["near", "near"], ["dear", "near"], ["folder", "folder"]]);
  const kinshipOf = ({ suite }: Surveyed) => kin.get(suite) ?? "far";
  const tests = [
    test("far", 100),
    test("dear", 2_900),
    test("near", 800),
    test("huge", 9_000),
    test("cheap", 50),
    test("folder", 2_000),
    file("whole", 10),
  ];
  const { shared, files } = choiceOf(tests, kinshipOf, never);
  assert.deepEqual(namesOf(shared), ["near", "dear", "folder", "cheap", "far"]);
  assert.deepEqual(namesOf(files), ["whole"]);
  assert.deepEqual(namesOf(choiceOf(tests.slice(0, 5), far, never).shared), ["cheap", "far", "near"]);
  assert.deepEqual(namesOf(choiceOf(tests.slice(3, 4), far, never).shared), ["huge"]);
});

Deno.test("a test names a rule by its id, as a word", () => {
  const rules = ["store/session/session.ts E2"];
  assert.deepEqual(
    ["is collected (E2)", "(E1, E2)", "E2E", "(E21)", "none"].map((name) => namesRule(name, rules)),
    [true, true, false, false, false],
  );
});

Deno.test("what caught a mutant before comes first, once (CO1)", () => {
  const tests = [test("near", 800), test("far", 100), seed("quick", "1", 10)];
  const kinshipOf = ({ suite }: Surveyed) => suite === "near" ? "near" : "far";
  const { shared } = choiceOf(tests, kinshipOf, ({ name }) => name === "1");
  assert.deepEqual(namesOf(shared), ["quick 1", "near", "far"]);
});

Deno.test("simulators take turns, each with its middling trials first, and each has one (CO2, CO3)", () => {
  const trials = [
    ...[10, 20, 30, 40, 50].map((ms) => seed("quick", `${ms}`, ms)),
    ...[2_000, 3_000, 4_000].map((ms) => seed("slow", `${ms}`, ms)),
  ];
  assert.deepEqual(namesOf(choiceOf(trials, far, never).shared), [
    "quick 30",
    "slow 3000",
  ]);
  const effort = choiceOf(trials, far, never, 4).shared;
  assert.equal(effort.length, trials.length);
});

Deno.test("results are kept, the last of a mutant counts, wherever its file lies (RE1, RE2, RE3)", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const text = "function f() { if (a) b(); }";
    const [first, second] = await mutantsOf(parse("store/a.ts", text), []);
    const [moved] = await mutantsOf(parse("store/rows/b.ts", `let x = 0;\n\n// Moved.\n${text}`), []);
    const [changed] = await mutantsOf(parse("store/a.ts", "function f() { if (a) c(); }"), []);
    assert.ok(first !== undefined && second !== undefined && moved !== undefined && changed !== undefined);
    const result = ({ id, memberHash }: Mutant, outcome: Result["outcome"]): Result => ({
      ...{ id, outcome, tried: 1, cpuMs: 1, member: memberHash, tests: "t" },
    });
    const results = new Results(`${folder}/own.jsonl`, `${folder}/published`);
    await results.put(result(first, "survived"));
    await results.put(result(first, "caught"));
    const read = new Results(`${folder}/own.jsonl`, `${folder}/published`);
    assert.equal((await read.get(first))?.outcome, "caught");
    assert.equal((await read.get(moved))?.outcome, "caught");
    assert.equal(await read.get(changed), undefined);
    assert.equal(await read.get(second), undefined);
    await read.publish([moved, second]);
    const elsewhere = new Results(`${folder}/elsewhere.jsonl`, `${folder}/published`);
    assert.equal((await elsewhere.get(first))?.outcome, "caught");
    await elsewhere.put(result(first, "hung"));
    const here = new Results(`${folder}/elsewhere.jsonl`, `${folder}/published`);
    assert.equal((await here.get(first))?.outcome, "hung"); // What was found since counts before it.
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("of each rule a few mutants of different kinds are chosen, the same each time (SA1)", async () => {
  const parsed = parse("store/a.ts", "function f() { if (a < 1) b(); if (c < 2) d(); if (e) g(); }");
  const mutants = (await mutantsOf(parsed, [])).map((mutant, at) => ({
    ...mutant,
    rules: at === 0 ? [] : ["store/a.ts A1"],
  }));
  const chosen = sampled(mutants, 3);
  assert.deepEqual(chosen.map(({ operator }) => operator).sort(), [
    "boundary",
    "guard always",
    "guard never",
  ]);
  assert.deepEqual(sampled(mutants.toReversed(), 3).toReversed(), chosen);
  assert.ok(!sampled(mutants, 100).includes(mutants.slice(0, 1)[0] ?? assert.fail()));
  assert.equal(sampled(mutants, 100).length, mutants.length - 1);
});
