/** Shrinking on a store that is broken on purpose. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { carriesPart } from "./broken/handoff.ts";
import { openReplica } from "../../store/replica.ts";
import { changedPlan, planChanges, shrink } from "./shrink.ts";
import { simulate } from "./simulation.ts";
import { drawPlan, type Plan } from "./topology.ts";
import { hunt } from "./variants.ts";

Deno.test("a failing run shrinks to one of a few requests that fails with the same checker, and can be repeated", async () => {
  const caught = await hunt(carriesPart, 50);
  ok(caught !== null);
  const { seed } = caught;
  const drawn = drawPlan(seed);
  const plan = carriesPart.change?.(drawn) ?? drawn;
  const run = (plan: Plan) => simulate({ seed, open: carriesPart.make(), change: () => plan });
  const shrunk = await shrink({ run, plan, runsMax: 400 });
  ok(shrunk !== null);
  const requests = shrunk.plan.only?.requests?.length ?? Infinity;
  ok(requests <= plan.requests / 4, `${requests} of ${plan.requests} requests are left`);
  ok(shrunk.plan.sites.length <= plan.sites.length && shrunk.plan.sites.length <= 5);
  // The text that is printed makes the same run.
  const again = changedPlan(drawn, planChanges(drawn, shrunk.plan));
  deepStrictEqual(again, shrunk.plan);
  const { violations } = await simulate({ seed, open: carriesPart.make(), change: () => again });
  strictEqual(
    violations.find(({ checker }) => checker === shrunk.violation.checker)?.message,
    shrunk.violation.message,
  );
});

Deno.test("a run that does not fail is not shrunk", async () => {
  const run = (plan: Plan) => simulate({ seed: 3, open: openReplica, change: () => plan });
  strictEqual(await shrink({ run, plan: drawPlan(3) }), null);
});
