/**
 * The paper's strategies beside ours, at its sizes: table III (1,400 rows that 100 RUBBoS clients brought to an
 * edge, 141 of which one session touched) and figure 6 (10,000 rows of 1 KB, sessions of growing age).
 */
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import { type BenchRecord, record } from "../record.ts";
import { RTT_MS } from "../tree.ts";
import type { BaselineInput, BaselineResult, Strategy } from "./baseline_pass.ts";

const PASS = new URL("./baseline_pass.ts", import.meta.url);

interface Case {
  readonly name: string;
  readonly strategy: Strategy;
  readonly rows: number;
  readonly rowBytes: number;
  readonly touched: number;
  readonly shared?: number;
  readonly rttMs: number;
  /** Bytes and milliseconds of the paper's own. */
  readonly paper?: readonly [kb: number, ms: number];
}

/** Rows of RUBBoS: 1.86 MB in all, 187 KB a session; a quarter of a session's rows is at the destination already. */
const RUBBOS = { rows: 1_400, rowBytes: 1_300, touched: 141 } as const;
const FIGURE_6 = { rows: 10_000, rowBytes: 1_024, rttMs: RTT_MS.cousin } as const;
const CASES: readonly Case[] = [
  { name: "full, RUBBoS", strategy: "full", ...RUBBOS, rttMs: RTT_MS.cousin, paper: [1860, 562] },
  { name: "session-aware, RUBBoS", strategy: "session", ...RUBBOS, rttMs: RTT_MS.cousin, paper: [187, 344] },
  {
    name: "Δ-list, RUBBoS",
    strategy: "delta",
    ...RUBBOS,
    shared: 0.25,
    rttMs: RTT_MS.cousin,
    paper: [141, 289],
  },
  { name: "sibling, RUBBoS", strategy: "sibling", ...RUBBOS, rttMs: RTT_MS.sibling, paper: [14.2, 15.9] },
  { name: "full, 10,000 rows", strategy: "full", ...FIGURE_6, touched: 0 },
  ...[1, 16, 128, 1_024, 8_192].map((touched): Case => ({
    name: `session-aware, ${touched.toLocaleString("en-US")} operations`,
    strategy: "session",
    ...FIGURE_6,
    touched,
  })),
];

/** Each case in processes of its own. */
export async function baselines({ quick, say, folder }: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const one of quick ? CASES.slice(1, 2) : CASES) {
    const input: BaselineInput = { shared: 0, ...one, times: quick ? 1 : 3, folder };
    const samples: BaselineResult[] = [];
    for (let run = 0; run < (quick ? 1 : 2); run++) {
      samples.push(await runFresh({ name: one.name, script: PASS, input }) as BaselineResult);
    }
    const paper = one.paper === undefined ? "" : ` (paper: ${one.paper[0]} KB, ${one.paper[1]} ms)`;
    const [first] = samples;
    say(`baseline ${one.name}: ${Math.round(first?.bytes ?? 0)} bytes, ${first?.ms.toFixed(1)} ms${paper}`);
    const base = { bench: "handoff", case: `baseline ${one.name}` };
    records.push(
      record({ ...base, unit: "bytes", samples: samples.map(({ bytes }) => bytes) }),
      record({ ...base, unit: "ms", samples: samples.map(({ ms }) => ms) }),
    );
  }
  return records;
}
