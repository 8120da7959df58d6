/** Many random programs of stateful sessions: `deno run -A tests/runtime/isolate/programs_main.ts --programs 100000 [--seed 1]`. */
import { parseArgs } from "node:util";
import fc from "fast-check";
import { fromFileUrl } from "../../../runtime/bundle/mod.ts";
import { AT_ONCE, membersOf, type Met, programs, runPrograms } from "./programs.ts";
import { withBench } from "./programs_bench.ts";

const { values } = parseArgs({
  options: { programs: { type: "string", default: "100000" }, seed: { type: "string" } },
});
const list = await Deno.readTextFile(fromFileUrl(new URL("session_realm.txt", import.meta.url)));
const atOnce = fc.array(programs(membersOf(list)), { minLength: AT_ONCE, maxLength: AT_ONCE });
const met: Met = { messages: 0, failed: 0, moved: 0, checkpoints: 0 };
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
const beginMs = performance.now();
await withBench(null, (bench) =>
  fc.assert(
    fc.asyncProperty(atOnce, async (all) => void await runPrograms(bench, all, met)),
    { numRuns: Math.ceil(Number(values.programs) / AT_ONCE), seed },
  ));
console.log(
  JSON.stringify({ seed, programs: values.programs, ...met, ms: Math.round(performance.now() - beginMs) }),
);
