import assert from "node:assert/strict";
import { join } from "node:path";
import { type Outcome, runSteps } from "./run.ts";
import type { Part, Step } from "./steps.ts";

const step = (name: string, code: string, more: Partial<Step> = {}): Step => ({
  name,
  says: name,
  parts: [{ args: ["eval", code] }],
  limitS: 60,
  ...more,
});

const part = (name: string, code: string, more: Partial<Part> = {}): Part => ({
  name,
  args: ["eval", code],
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

Deno.test("steps beside each other run three at a time, behind those that are not (R2)", () =>
  noted(async (note, read) => {
    const file = /"[^"]*"/.exec(note(""))?.[0];
    // Each of the three waits until the other two are there.
    const meets = (mine: string, ...others: string[]) =>
      `${note(mine)} while (!${JSON.stringify(others)}.every((other) => Deno.readTextFileSync(${file})` +
      `.includes(other + " "))) await new Promise((resolve) => setTimeout(resolve, 5));`;
    const [all, ended] = await run([
      step("a", meets("a", "b", "c"), { isBeside: true }),
      step("alone", note("alone")),
      step("b", meets("b", "a", "c"), { isBeside: true }),
      step("c", meets("c", "a", "b"), { isBeside: true }),
      step("d", note("d"), { isBeside: true }),
    ]);
    assert.equal(all, "a true, alone true, b true, c true, d true", "in the order of the steps");
    assert.equal(read()[0], "alone");
    assert.deepEqual([ended[0], ended.length, read().at(-1)], ["alone", 5, "d"]);
  }));

Deno.test("of parts the longest begins first, and of one step no more at a time than it allows (R2)", () =>
  noted(async (note, read) => {
    const lasts = (name: string) =>
      `${note(name)} await new Promise((resolve) => setTimeout(resolve, 20)); ${note(`-${name}`)}`;
    await run([
      step("few", "", {
        isBeside: true,
        partsMax: 1,
        parts: [
          part("a", lasts("a")),
          part("b", lasts("b"), { seconds: 9 }),
          part("c", lasts("c"), { seconds: 4 }),
        ],
      }),
    ]);
    assert.deepEqual(read(), ["b", "-b", "c", "-c", "a", "-a"]);
  }));

Deno.test("a step has passed when all its parts have, and counts what they count (R4)", async () => {
  const [all, ended, [outcome]] = await run([
    step("parted", "", {
      isBeside: true,
      counts: (output) => ({ passed: output.trim().length, failed: 0 }),
      parts: [
        part("a", `Deno.stdout.writeSync(new TextEncoder().encode("four"))`),
        part("b", `Deno.stdout.writeSync(new TextEncoder().encode("sixsix")); Deno.exit(1)`),
        part("c", ""),
      ],
    }),
  ]);
  assert.deepEqual([all, ended], ["parted false", ["parted"]]);
  assert.deepEqual([outcome?.passed, outcome?.failed], [10, 1]);
  assert.deepEqual([outcome?.output.join(""), outcome?.wrong.map(([first]) => first)], ["foursixsix", [
    "sixsix",
  ]]);
});

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
