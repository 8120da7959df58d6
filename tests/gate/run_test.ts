import assert from "node:assert/strict";
import { join } from "node:path";
import { type Outcome, runSteps } from "./run.ts";
import type { Step } from "./steps.ts";

const step = (name: string, code: string, more: Partial<Step> = {}): Step => ({
  name,
  says: name,
  args: ["eval", code],
  limitS: 60,
  ...more,
});

async function run(steps: readonly Step[], isVerbose = false): Promise<[string, string[], Outcome[]]> {
  const ended: string[] = [];
  const outcomes = await runSteps(steps, {
    isVerbose,
    say: () => {},
    ended: ({ step }) => ended.push(step.name),
  });
  return [outcomes.map(({ step, ok }) => `${step.name} ${ok}`).join(", "), ended, outcomes];
}

/** Steps that write down when they begin and end. */
async function noted(
  use: (note: (name: string) => string, read: () => string[]) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "gate-" });
  const file = join(folder, "notes");
  await Deno.writeTextFile(file, "");
  try {
    await use(
      (text) => `Deno.writeTextFileSync(${JSON.stringify(file)}, "${text} ", { append: true });`,
      () => Deno.readTextFileSync(file).trim().split(" "),
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("steps run one after another where they are not beside others, all of them when one fails (R2)", () =>
  noted(async (note, read) => {
    const [all, ended] = await run([
      step("a", note("a") + note("-a")),
      step("b", note("b") + "Deno.exit(3)"),
      step("c", note("c")),
    ]);
    assert.equal(all, "a true, b false, c true");
    assert.deepEqual([ended, read()], [["a", "b", "c"], ["a", "-a", "b", "c"]]);
  }));

Deno.test("steps beside each other run two at a time, behind those that are not (R2)", () =>
  noted(async (note, read) => {
    // Each of the two waits until the other one is there.
    const meets = (mine: string, other: string) =>
      `${note(mine)} while (!Deno.readTextFileSync(${
        /"[^"]*"/.exec(note(""))?.[0]
      }).includes("${other} ")) await new Promise((resolve) => setTimeout(resolve, 5));`;
    const [all, ended] = await run([
      step("a", meets("a", "b"), { isBeside: true }),
      step("alone", note("alone")),
      step("b", meets("b", "a"), { isBeside: true }),
      step("c", note("c"), { isBeside: true }),
    ]);
    assert.equal(all, "a true, alone true, b true, c true", "in the order of the steps");
    assert.equal(read()[0], "alone");
    assert.deepEqual([ended[0], ended.length, read().at(-1)], ["alone", 4, "c"]);
  }));

Deno.test("steps whose output is shown run one after another (R3)", () =>
  noted(async (note, read) => {
    const slow = (name: string) => `${note(name)} await 0; ${note(`-${name}`)}`;
    await run([step("a", slow("a"), { isBeside: true }), step("b", slow("b"), { isBeside: true })], true);
    assert.deepEqual(read(), ["a", "-a", "b", "-b"]);
  }));

Deno.test("a step that does not end is killed at its limit, and has failed (R1)", async () => {
  const [all, , [outcome]] = await run([step("hangs", "setInterval(() => {}, 1000)", { limitS: 0.5 })]);
  assert.equal(all, "hangs false");
  assert.match(outcome?.output.at(-1) ?? "", /stopped after its limit of 0.5 s/);
  assert.deepEqual([outcome?.passed, outcome?.failed], [0, 1]);
});
