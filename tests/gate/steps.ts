/**
 * The steps of the gate, in order: what is cheap and fails most comes first.
 *
 * G1  Every step is one child process with a time limit that only a hang reaches: on two idle cores all of them
 *     together are kept below twenty minutes.
 * G2  A step counts tests only where its tool prints how many; any other step counts as one.
 * G3  Steps that run beside each other share nothing: no folder but caches, no port, no process of the other.
 */
import { PROBE_SEEDS } from "../sim/expected_probes.ts";
import { testsCounted } from "./counts.ts";

/** Tests that passed and failed in a step. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** One step of the gate. */
export interface Step {
  readonly name: string;
  readonly says: string;
  /** Arguments of `deno`. */
  readonly args: readonly string[];
  /** Several times what it takes on two cores, so that only a hang reaches it. */
  readonly limitS: number;
  /** It may run while another such step does: G3. Without it, alone. */
  readonly isBeside?: true;
  /** Counts of a run that ended; absent where the step counts as one. */
  readonly counts?: (output: string) => Counts | null;
}

/** The faces that people import: `sojourn`, its client, and what the store shows its host. */
const PUBLIC_FACES = ["functions/mod.ts", "functions/client/mod.ts"];
/** Tests that start whole clusters: one after another, apart from the quick ones. */
const END_TO_END = "tests/e2e";

/**
 * Seeds of the gate's simulator run: as many as it takes to reach every rare path. More find more, but not in the
 * minute that the gate has: nightly runs take thousands.
 */
const SIM_SEEDS = PROBE_SEEDS;

const test = (...args: string[]) => ["test", "-A", "--no-check", "--quiet", ...args];

/** All steps, of those beside each other the longest first. `types` has checked the tests already, hence their `--no-check`. */
export const STEPS: readonly Step[] = [
  { name: "lock", says: "packages are those of deno.lock", args: ["install", "--frozen"], limitS: 180 },
  { name: "format", says: "deno fmt", args: ["fmt", "--check"], limitS: 60 },
  { name: "lint", says: "deno lint", args: ["lint"], limitS: 60 },
  { name: "types", says: "deno check", args: ["check", "--quiet", "."], limitS: 180 },
  { name: "docs", says: "public faces are documented", args: ["doc", "--lint", ...PUBLIC_FACES], limitS: 60 },
  {
    name: "examples",
    says: "code in docs type-checks and runs",
    args: ["test", "-A", "--doc", "--quiet", ...PUBLIC_FACES, "functions", "README.md", "docs"],
    limitS: 120,
    counts: testsCounted,
  },
  {
    name: "tests",
    says: "unit, contract and property tests",
    args: test("--permit-no-files", `--ignore=${END_TO_END}`),
    limitS: 1_800,
    isBeside: true,
    counts: testsCounted,
  },
  {
    name: "e2e",
    says: "clusters of real processes",
    args: test("--permit-no-files", END_TO_END),
    limitS: 1_800,
    isBeside: true,
    counts: testsCounted,
  },
  {
    name: "sim",
    says: `simulator: ${SIM_SEEDS} fixed seeds, all rare paths, and every broken variant is caught`,
    args: ["run", "-A", "--no-check", "tests/sim/main.ts", "--seeds", `${SIM_SEEDS}`, "--variants", "--json"],
    limitS: 900,
    isBeside: true,
  },
  {
    name: "bench",
    says: "benchmarks run, at smoke size",
    args: ["run", "-A", "--no-check", "tests/bench/mod.ts", "--quick"],
    limitS: 900,
    isBeside: true,
  },
];
