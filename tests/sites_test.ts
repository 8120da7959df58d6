/** Whole sites in virtual time: real replicas with all that stateful sessions are made of above them (tests/sites). */
import { strict as assert } from "node:assert";
import { excusedTooOften } from "./sim/excuses.ts";
import { VARIANTS } from "./sites/broken.ts";
import { INSIDE_VARIANTS } from "./sites/broken_inside.ts";
import { survey } from "./sites/crash_points.ts";
import { SITES_EXCUSES } from "./sites/excuses.ts";
import { HARD, optionsOf } from "./sites/hard.ts";
import { firstWrong } from "./sites/rewritten.ts";
import { simulateSites } from "./sites/simulation.ts";

/** The seeds of every test run. */
const SEEDS = 60;
/**
 * Beside them: a home's clock leaps by years, and is right again, while its session rests with a timer; a session that
 * stands still throws at the same part of a period each time that it is let go on, where these times have one; a site's
 * disk is a copy from before its owners changed; minutes pass at once while a log alone has a sum, and rows that were
 * written after it.
 */
const MORE_SEEDS = [89000239, 99400471, 99979760, 99975633];
/** Of each plan that wants more of one thing. */
const HARD_SEEDS = 2;
/** Those in which minutes pass at once: what comes due by age is found by few seeds. */
const AGED: ReadonlySet<string> = new Set(["forgetting", "waiting", "late"]);
const AGED_SEEDS = 6;

Deno.test("whole sites lose nothing, contradict nothing and honour every token, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (const seed of [...Array(SEEDS).keys(), ...MORE_SEEDS]) {
    const run = await simulateSites(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  const wanted = [
    ...["recovered", "moved", "standby promoted", "followed", "mended", "undone", "posted", "swapped"],
    ...["rejected message", "rejected timer", "rejected request", "socket resumed", "fault: kill"],
    ...["fault: stop", "fault: partition", "fault: diskFull", "fault: stand"],
    ...["device lost: moved", "asked again", "acts", "carry", "wait", "nothing", "request: ok"],
  ];
  for (const name of wanted) assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  assert.deepEqual(excusedTooOften(SITES_EXCUSES, probes, SEEDS), []);
});

for (const plan of Object.keys(HARD)) {
  Deno.test(`whole sites lose nothing, contradict nothing and honour every token: ${plan}`, async () => {
    for (let seed = 0; seed < (AGED.has(plan) ? AGED_SEEDS : HARD_SEEDS); seed++) {
      assert.deepEqual((await simulateSites(seed, optionsOf(plan))).violations, [], `seed ${seed}`);
    }
  });
}

Deno.test("whole sites: an answer that a run knew leaves with what its handler wrote, where the run is over (R2)", async () => {
  const { change: hollow = (plan) => plan } = optionsOf("hollow");
  const change: typeof hollow = (drawn) => {
    const plan = hollow(drawn);
    return { ...plan, store: { ...plan.store, faults: { ...plan.store.faults, nap: 2 } } };
  };
  assert.deepEqual((await simulateSites(0, { change })).violations, []);
});

Deno.test("whole sites: a seed runs the same twice", async () => {
  assert.equal((await simulateSites(11)).seen, (await simulateSites(11)).seen);
});

for (const { name, make, change, passes, caughtBy, first = 0, seeds } of VARIANTS) {
  Deno.test(`whole sites, broken on purpose, are caught: ${name}`, async () => {
    for (let seed = first; seed < first + seeds; seed++) {
      const options = () => ({ change, ...(passes === undefined ? {} : { passes: passes() }) });
      const { violations } = await simulateSites(seed, { ...options(), wrongs: make() });
      if (!violations.some(({ checker }) => caughtBy.includes(checker))) continue;
      assert.deepEqual((await simulateSites(seed, options())).violations, [], `seed ${seed}, unbroken`);
      return;
    }
    assert.fail(`no checker saw it in ${seeds} seeds from ${first} on`);
  });
}

for (const variant of INSIDE_VARIANTS) {
  const { name, plan, first, seeds, caughtBy } = variant;
  Deno.test(`whole sites, broken inside, are caught: ${name}`, async () => {
    for (let seed = first; seed < first + seeds;) {
      const wrong = await firstWrong(variant, { from: seed, to: first + seeds, plan });
      assert.ok(wrong !== null, `no checker saw it in ${seeds} seeds`);
      const isCaught = caughtBy === undefined
        ? !wrong.checkers.every((one) => one === "fault")
        : wrong.checkers.includes(caughtBy);
      // What is wrong unbroken, too, is for the other tests to say.
      if (isCaught && (await simulateSites(wrong.seed, optionsOf(plan))).violations.length === 0) return;
      seed = wrong.seed + 1;
    }
    assert.fail(`no checker saw it in ${seeds} seeds, and nothing unbroken`);
  });
}

Deno.test("whole sites outlive a fault wherever they take a step", async () => {
  for (const [seed, first] of [[1, 3], [2, 3]] as const) {
    const { points, recovered, violations } = await survey(seed, { every: 25, first });
    assert.deepEqual(violations, []);
    assert.ok(points > 200 && recovered > 5, `${points} points, ${recovered} recoveries`);
  }
});
