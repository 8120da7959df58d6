/**
 * The steps of the gate, in order: what is cheap and fails most comes first.
 *
 * G1  Every part of a step is one child process with a time limit that only a hang reaches: on two idle cores all of
 *     them together are kept below twenty minutes.
 * G2  A step counts tests only where its tool prints how many; any other step counts as one.
 * G3  Parts that run beside each other, of one step or of several, share nothing: no folder but caches, no port, no
 *     process of the other.
 * G4  Every test is in one part of `tests` or `e2e`: a new file too, without a word here.
 */
import { PROBE_SEEDS } from "../sim/expected_probes.ts";
import { testsCounted } from "./counts.ts";

/** Tests that passed and failed in a step. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** One child process of a step. */
export interface Part {
  /** Which of the step's parts; absent where it has one. */
  readonly name?: string;
  /** Arguments of `deno`. */
  readonly args: readonly string[];
  /** About what it takes on two idle cores with another part beside it: the longest begins first. Absent: little. */
  readonly seconds?: number;
}

/** One step of the gate. */
export interface Step {
  readonly name: string;
  readonly says: string;
  /** Together they do what the step says: none needs what another one does (G3). */
  readonly parts: readonly Part[];
  /** So many of its parts at a time, although more might begin. */
  readonly partsMax?: number;
  /** Of each part, several times what it takes on two cores, so that only a hang reaches it. */
  readonly limitS: number;
  /** It may run while another such step does: G3. Without it, alone. */
  readonly isBeside?: true;
  /** Counts of a part that ended; absent where the step counts as one. */
  readonly counts?: (output: string) => Counts | null;
}

/** The faces that people import: `sojourn`, its client, and what the store shows its host. */
const PUBLIC_FACES = ["functions/mod.ts", "functions/client/mod.ts"];
/** Tests that start whole clusters, each file a part: they are apart from the quick ones. */
const END_TO_END = "tests/e2e";
/** Clusters at a time: more of them would wait for the cores, and not for each other. */
const CLUSTERS_MAX = 2;

/**
 * Seeds of the gate's simulator run: as many as it takes to reach every rare path. More find more, but not in the
 * minute that the gate has: nightly runs take thousands.
 */
const SIM_SEEDS = PROBE_SEEDS;

const test = (...args: string[]) => ["test", "-A", "--no-check", "--quiet", ...args];
const sim = (...args: string[]) => ["run", "-A", "--no-check", "tests/sim/main.ts", "--json", ...args];

/** All tests of some paths in one isolate (together.ts): each file in its own would load the same modules again. */
const together = (paths: readonly string[]) => [...test("tests/gate/together.ts"), "--", ...paths];

interface TestPart {
  readonly seconds: number;
  readonly paths: readonly string[];
  /** True where files change what is everyone's, or look at it: each has an isolate of its own. */
  readonly isApart?: true;
}

/** The parts of `tests` that are named, and what they take; all that none of them names is one more. */
const TEST_PARTS: Readonly<Record<string, TestPart>> = {
  simulator: { seconds: 140, paths: ["tests/sim"] },
  sites: { seconds: 100, paths: ["tests/sites_test.ts"] },
  isolate: { seconds: 120, paths: ["tests/runtime/isolate", "runtime/isolate"], isApart: true },
  disks: { seconds: 80, paths: ["tests/contract", "tests/runtime/link"] },
  stateful: { seconds: 130, paths: ["tests/stateful"] },
  sessions: {
    seconds: 130,
    paths: [
      "tests/functions/sessions/attach",
      "tests/functions/sessions/home",
      "tests/functions/sessions/log",
      "tests/functions/sessions/serve",
      "tests/runtime/stateful",
    ],
  },
  protocols: {
    seconds: 110,
    paths: [
      "tests/owners",
      "tests/queues",
      "tests/store",
      "tests/functions/sessions/turn",
      "tests/functions/tracked",
    ],
  },
};

function testParts(): Part[] {
  const named = Object.entries(TEST_PARTS);
  const ignored = [END_TO_END, ...named.flatMap(([, { paths }]) => paths)];
  return [
    ...named.map(([name, { seconds, paths, isApart }]) => ({
      name,
      seconds,
      args: isApart === true ? test(...paths) : together(paths),
    })),
    { name: "rest", seconds: 90, args: test(`--ignore=${ignored.join(",")}`) },
  ];
}

/** Of the files in {@link END_TO_END} those that take long. */
const CLUSTER_SECONDS: Readonly<Record<string, number>> = {
  pages_test: 120,
  control_test: 70,
  soak_test: 60,
  chaos_test: 55,
  examples_test: 40,
  deploy_test: 50,
  cart_test: 40,
  stateful_test: 40,
  telemetry_test: 40,
  dev_test: 35,
  sessions_test: 40,
  sms_test: 20,
  links_test: 30,
  site_test: 30,
  damage_test: 25,
};
/** What any other of them takes. */
const SECONDS_OF_MOST = 12;

function clusterParts(): Part[] {
  const folder = new URL("../e2e", import.meta.url);
  const names = [...Deno.readDirSync(folder)].flatMap(({ name }) => /^(.+_test)\.ts$/.exec(name)?.[1] ?? []);
  return names.sort().map((name) => ({
    name,
    seconds: CLUSTER_SECONDS[name] ?? SECONDS_OF_MOST,
    args: test(`${END_TO_END}/${name}.ts`),
  }));
}

/** A step that is one process. */
const only = (...args: string[]): readonly Part[] => [{ args }];

/** All steps. `types` has checked the tests already, hence their `--no-check`. */
export const STEPS: readonly Step[] = [
  { name: "lock", says: "packages are those of deno.lock", parts: only("install", "--frozen"), limitS: 180 },
  { name: "format", says: "deno fmt", parts: only("fmt", "--check"), limitS: 60 },
  { name: "lint", says: "deno lint", parts: only("lint"), limitS: 60 },
  { name: "types", says: "deno check", parts: only("check", "--quiet", "."), limitS: 180 },
  {
    name: "docs",
    says: "public faces are documented",
    parts: only("doc", "--lint", ...PUBLIC_FACES),
    limitS: 60,
  },
  {
    name: "examples",
    says: "code in docs type-checks and runs",
    parts: only("test", "-A", "--doc", "--quiet", ...PUBLIC_FACES, "functions", "README.md", "docs"),
    limitS: 120,
    counts: testsCounted,
  },
  {
    name: "tests",
    says: "unit, contract and property tests",
    parts: testParts(),
    limitS: 1_800,
    isBeside: true,
    counts: testsCounted,
  },
  {
    name: "e2e",
    says: "clusters of real processes",
    parts: clusterParts(),
    partsMax: CLUSTERS_MAX,
    limitS: 900,
    isBeside: true,
    counts: testsCounted,
  },
  {
    name: "sim",
    says: `simulator: ${SIM_SEEDS} fixed seeds, all rare paths, and every broken variant is caught`,
    parts: [
      { name: "seeds", seconds: 40, args: sim("--seeds", `${SIM_SEEDS}`) },
      { name: "variants", seconds: 50, args: sim("--variants") },
    ],
    limitS: 900,
    isBeside: true,
  },
  {
    name: "bench",
    says: "benchmarks run, at smoke size",
    parts: [{ seconds: 110, args: ["run", "-A", "--no-check", "tests/bench/mod.ts", "--quick"] }],
    limitS: 900,
    isBeside: true,
  },
];
