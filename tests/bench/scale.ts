/**
 * Benchmark `scale`: what the store's operations cost against the number of sites (docs/scaling.md): a parent with
 * N direct children (scale/parent_pass.ts), and a tree of N edges below cores (scale/tree_pass.ts).
 */
import type { Bench, BenchContext } from "./bench.ts";
import { type Contender, runFresh, runPairs } from "./fresh.ts";
import { type BenchRecord, record } from "./record.ts";
import type { ParentInput } from "./scale/parent_pass.ts";
import type { TreeInput } from "./scale/tree_pass.ts";

type Figures = Readonly<Record<string, number>>;

const PARENT = new URL("./scale/parent_pass.ts", import.meta.url);
const TREE = new URL("./scale/tree_pass.ts", import.meta.url);
/** A tree of 10,000 edges takes 3.7 GB: every core holds a row of every site. */
const FLAGS = ["--v8-flags=--expose-gc,--max-old-space-size=5000"];
/** The count of sites that ratios are taken against. */
const FEW = 10;
const RUNS = 3;

/** A tree's shape: doubles beyond three edges, unless all are real. */
const TREES: readonly Omit<TreeInput, "count">[] = [
  { edges: 10, cores: 2, allReal: false },
  { edges: 100, cores: 4, allReal: true },
  { edges: 100, cores: 4, allReal: false },
  { edges: 1_000, cores: 10, allReal: false },
  { edges: 10_000, cores: 100, allReal: false },
];

/** Figures whose growth is what this is about, and how far they may grow from {@link FEW} sites on. */
const CONSTANT: Readonly<Record<string, number>> = {
  "write, 5 interested: CPU µs": 1.2,
  "pushed row, 5 interested: CPU µs": 1.2,
  "read miss: bytes down": 1,
  "mark: bytes": 1.2,
};

/** Named like `mark: bytes`: the unit is what follows the last colon. */
const unitOf = (name: string): string => name.slice(name.lastIndexOf(": ") + 2);

function edgesOf(args: readonly string[]): number {
  const at = args.indexOf("--edges");
  const edges = at < 0 ? 10_000 : Number(args[at + 1]);
  if (!Number.isInteger(edges) || edges < FEW) {
    throw new Error(`--edges takes a number from ${FEW}: ${args[at + 1]}`);
  }
  return edges;
}

async function parents(context: BenchContext, edgesMax: number): Promise<BenchRecord[]> {
  const { quick, say } = context, records: BenchRecord[] = [];
  const contender = (children: number): Contender => {
    const input: ParentInput = {
      children,
      interested: 5,
      points: quick ? 2 : 10,
      writesPerMs: 1,
      phaseMs: quick ? 200 : 2_000,
    };
    return { name: `${children}`, script: PARENT, input, flags: FLAGS };
  };
  const counts = (quick ? [FEW, 100] : [FEW, 100, 1_000, 10_000]).filter((count) => count <= edgesMax);
  const answers = await runPairs(counts.map(contender), quick ? 1 : RUNS);
  const few = (answers.get(`${FEW}`) ?? []) as Figures[];
  for (const [name, runs] of answers) {
    say(`a parent of ${name} children: ${runs.length} runs`);
    for (const figure of Object.keys(few[0] ?? {})) {
      const samples = (runs as Figures[]).map((figures) => figures[figure] ?? NaN), limit = CONSTANT[figure];
      const peer = { name: `${FEW} children`, samples: few.map((figures) => figures[figure] ?? NaN) };
      records.push(record({
        bench: "scale",
        case: `parent of ${name}: ${figure}`,
        unit: unitOf(figure),
        samples,
        ...name === `${FEW}` || limit === undefined
          ? {}
          : { peer, target: { of: "ratio", op: "<=", value: limit }, comparable: !quick },
      }));
    }
  }
  return records;
}

async function trees({ quick, say }: BenchContext, edgesMax: number): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const shape of quick ? TREES.slice(0, 1) : TREES.filter(({ edges }) => edges <= edgesMax)) {
    const input: TreeInput = { ...shape, count: quick ? 5 : 50 };
    const name = `${shape.edges} edges, ${shape.cores} cores${shape.allReal ? ", none a double" : ""}`;
    say(name);
    const figures = await runFresh({ name, script: TREE, input, flags: FLAGS }) as Figures;
    for (const [figure, value] of Object.entries(figures)) {
      records.push(record({
        bench: "scale",
        case: `tree of ${name}: ${figure}`,
        unit: unitOf(figure),
        samples: [value],
        ...figure === "token: bytes" ? { target: { of: "median", op: "<=", value: 256 } } : {},
      }));
    }
  }
  return records;
}

async function run(context: BenchContext): Promise<BenchRecord[]> {
  const edgesMax = edgesOf(context.args);
  return [...await parents(context, edgesMax), ...await trees(context, edgesMax)];
}

/** See the file header. */
export const bench: Bench = {
  name: "scale",
  summary: "what writes, misses, handoffs, joins and idling cost against the number of sites",
  options: ["--edges N   no tree larger than this (10,000 edges take minutes and 4 GB)"],
  notMeasured:
    "real links, disks and processes: one process holds all, in virtual time; CPU figures hold the " +
    "doubles' and the links' share; most edges are doubles that keep nothing",
  byDefault: true,
  run,
};
