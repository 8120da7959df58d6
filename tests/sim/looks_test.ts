/** A last look is given as long where it is refused at once as where it waits, and no longer. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Clock } from "../../store/model/ports.ts";
import { hooked } from "./broken/hooks.ts";
import { simulate } from "./simulation.ts";
import { drawPlan, NO_FAULTS } from "./topology.ts";

const SEED = 0;

/** What is found in a run without faults in which each session is refused at once for so long after its own requests. */
async function refusedFor(ms: number): Promise<{ found: readonly string[]; again: number }> {
  const plan = { ...drawPlan(SEED), faults: NO_FAULTS };
  const open = hooked(() => {
    let now = () => 0;
    return {
      clock: (clock: Clock) => {
        now = () => clock.steadyMs();
        return clock;
      },
      arrives: () => {
        const lateMs = now() - plan.safetyMs;
        if (lateMs >= 0 && lateMs < ms) throw new StoreUnavailable("source_unreachable", "a clock is wrong");
      },
    };
  });
  const { violations, probes } = await simulate({ seed: SEED, open, change: () => plan });
  return {
    found: [...new Set(violations.map(({ checker }) => checker))],
    again: probes["excused a last look that is made again"] ?? 0,
  };
}

Deno.test("a last look that is refused at once is made again for seconds", async () => {
  const { found, again } = await refusedFor(9_000);
  deepStrictEqual(found, []);
  ok(again > 0);
});

Deno.test("a last look that is refused at once for good is found", async () => {
  deepStrictEqual((await refusedFor(Infinity)).found, ["liveness"]);
});
