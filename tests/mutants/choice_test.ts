/** What is tried on a mutant, and which results count. */
import assert from "node:assert/strict";
import { choiceOf } from "./choice.ts";
import { mutantsOf } from "./mutant.ts";
import { type Result, Results } from "./results.ts";
import type { Surveyed } from "./survey.ts";
import { sampled } from "./sample.ts";
import { parse } from "./syntax.ts";

const test = (suite: string, cpuMs: number): Surveyed => ({
  kind: "test",
  suite,
  name: "",
  cpuMs,
  passes: {},
});
const seed = (suite: string, name: string, cpuMs: number): Surveyed => ({
  kind: "simulator",
  suite,
  name,
  cpuMs,
  passes: {},
});
const namesOf = (trials: readonly Surveyed[]) => trials.map(({ suite, name }) => `${suite} ${name}`.trim());

Deno.test("tests that import the file come before others, the cheap before the dear, as long as there is time (CO1, CO2)", () => {
  const tests = [
    test("far", 100),
    test("dear", 2_900),
    test("near", 800),
    test("huge", 9_000),
    test("cheap", 50),
  ];
  const { tests: chosen } = choiceOf(tests, (suite) => suite === "near" || suite === "dear");
  assert.deepEqual(namesOf(chosen), ["near", "dear"]);
  assert.deepEqual(namesOf(choiceOf(tests, () => false).tests), ["cheap", "far", "near"]);
  assert.deepEqual(namesOf(choiceOf(tests.slice(3, 4), () => false).tests), ["huge"]);
});

Deno.test("simulators take turns, each with its middling trials first, and each has two (CO2, CO3)", () => {
  const trials = [
    ...[10, 20, 30, 40, 50].map((ms) => seed("quick", `${ms}`, ms)),
    ...[2_000, 3_000, 4_000].map((ms) => seed("slow", `${ms}`, ms)),
  ];
  assert.deepEqual(namesOf(choiceOf(trials, () => false).simulators), [
    "quick 30",
    "slow 3000",
    "quick 50",
    "slow 4000",
  ]);
  const effort = choiceOf(trials, () => false, 4).simulators;
  assert.equal(effort.length, trials.length);
});

Deno.test("results are kept, the last of a mutant counts, and those of mutants that are gone are dropped (RE2, RE3)", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const [first, second] = await mutantsOf(parse("store/a.ts", "function f() { if (a) b(); }"), []);
    assert.ok(first !== undefined && second !== undefined);
    const result = (id: string, outcome: Result["outcome"]): Result => ({
      ...{ id, outcome, tried: 1, cpuMs: 1, member: "m", file: "f", tests: "t" },
    });
    const results = new Results(folder, `${folder}/published`);
    await results.put("store/a.ts", result(first.id, "survived"));
    await results.put("store/a.ts", result("gone", "caught"));
    await results.put("store/a.ts", result(first.id, "caught"));
    const read = new Results(folder, `${folder}/published`);
    assert.equal((await read.get(first))?.outcome, "caught");
    assert.equal(await read.get(second), undefined);
    await read.compact("store/a.ts", [first, second]);
    const last = new Results(folder, `${folder}/published`);
    assert.deepEqual([...(await last.of("store/a.ts")).keys()], [first.id]);
    await last.publish("store/a.ts", [result(first.id, "hung"), result(second.id, "survived")]);
    const elsewhere = new Results(`${folder}/elsewhere`, `${folder}/published`);
    assert.equal((await elsewhere.get(second))?.outcome, "survived");
    const here = new Results(folder, `${folder}/published`);
    assert.equal((await here.get(first))?.outcome, "caught"); // What was found since counts before it.
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
