/** Random programs of stateful sessions do the same in each replay (programs.ts); broken recorders are found by them. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { fromFileUrl } from "../../../runtime/bundle/mod.ts";
import { AT_ONCE, type Bench, membersOf, type Met, programs, replayed, runPrograms } from "./programs.ts";
import { type Broken, withBench } from "./programs_bench.ts";
import { TestHome } from "./stateful_home.ts";

const list = await Deno.readTextFile(fromFileUrl(new URL("session_realm.txt", import.meta.url)));
const atOnce = fc.array(programs(membersOf(list)), { minLength: AT_ONCE, maxLength: AT_ONCE });
const nothing = (): Met => ({ messages: 0, failed: 0, moved: 0, checkpoints: 0 });

Deno.test("programs at random do the same in each replay, at each home, and from each checkpoint", () =>
  withBench(null, async (bench) => {
    const met = nothing();
    await fc.assert(
      fc.asyncProperty(atOnce, async (all) => void await runPrograms(bench, all, met)),
      { numRuns: 1_000 / AT_ONCE, seed: 17 },
    );
    for (const [what, count] of Object.entries(met)) assert.ok(count > 300, `${what}: ${count}`);
  }));

/** What tells of it: a judge, or the session itself, which does not on the same programs where nothing is broken. */
const FOUND = /PR1|PR2|stands still/;

const BROKEN: readonly (readonly [what: string, Broken])[] = [
  ["a source is left out", {
    file: "runtime/isolate/inside/stateful_realm.ts",
    text: "installRandom(current, define);",
    by: "",
  }],
  ["the clock is read, and not written down", {
    file: "functions/sessions/turn/program.ts",
    text: "turn.clocks.push(this.clockMs);",
    by: "",
  }],
  ["results are replayed out of order", {
    file: "functions/sessions/turn/replay.ts",
    text: "  return turns;",
    by: `  for (let i = 1; i < turns.length; i++) {
    const [a, b] = [turns[i - 1]!, turns[i]!];
    if (a.input.kind === "result" && b.input.kind === "result") {
      [turns[i - 1], turns[i]] = [{ ...a, input: b.input }, { ...b, input: a.input }];
    }
  }
  return turns;`,
  }],
];

for (const [what, broken] of BROKEN) {
  Deno.test(`programs at random find it where ${what}`, () =>
    withBench(broken, async (bench) => {
      const check = await fc.check(
        fc.asyncProperty(atOnce, async (all) => void await runPrograms(bench, all, nothing())),
        { numRuns: 60, seed: 17, endOnFailure: true },
      );
      assert.ok(check.failed, "nothing was wrong");
      assert.match(String(check.errorInstance), FOUND);
    }));
}

/** Sessions that tell how often others of their isolate have asked: no log has that, and no two isolates agree. */
async function leak(bench: Bench, sessions: number): Promise<readonly string[]> {
  const ahead = new TestHome(bench.replays, bench.app, "ahead");
  await ahead.open();
  await ahead.call("run", [{ do: "leak" }]);
  const found: string[] = [];
  for (let n = 0; n < sessions && found.every((each) => each.includes("stands still")); n += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, async (_, i) => {
      const home = new TestHome(bench.homes[0], bench.app, `leak${n + i}`);
      await home.open();
      await home.call("run", [{ do: "leak" }]);
      await replayed(bench, home, `leak${n + i}`, () => undefined).catch((error) => found.push(`${error}`));
      home.leave();
    }));
  }
  return found;
}

Deno.test("every session that tells what no log has stands still, and none where a byte of the check is compared", async () => {
  await withBench(null, async (bench) => {
    const found = await leak(bench, 200);
    assert.deepEqual([found.length, found.filter((each) => !each.includes("stands still"))], [200, []]);
  });
  const aByte = {
    file: "functions/sessions/turn/rolling_check.ts",
    text: "return this.#short === null && isSameCheck(this, check);",
    by: "return this.#short === null && (this.low & 0xff) === (check.low & 0xff);",
  };
  await withBench(aByte, async (bench) => {
    const found = await leak(bench, 3_000);
    const passed = found.filter((each) => !each.includes("stands still"));
    assert.match(
      passed.join(),
      /PR1: 1 to q1/,
      `one of 256 passes in silence, and its bytes show it: ${found.length}`,
    );
  });
});
