/** Links by themselves: echo and throughput between two processes, with and without emulation. */
import type { Bench } from "./bench.ts";
import { runPairs } from "./fresh.ts";
import { type BenchRecord, record, type Target } from "./record.ts";

const CASES: readonly { of: string; case: string; unit: string; target?: Target; peer?: [string, string] }[] =
  [
    { of: "echo", case: "echo, no delay", unit: "ms", peer: ["bare TCP echo", "bareEcho"] },
    {
      of: "echo2",
      case: "echo, emulated round trip 2 ms",
      unit: "ms",
      target: { of: "median", op: "<=", value: 2.5 },
    },
    {
      of: "echo20",
      case: "echo, emulated round trip 20 ms",
      unit: "ms",
      target: { of: "median", op: "<=", value: 21 },
    },
    { of: "small", case: "store messages of 100 B", unit: "messages/s" },
    { of: "large", case: "store messages of 60 KB", unit: "messages/s" },
  ];

export const bench: Bench = {
  name: "link",
  summary: "links between two processes: echo, emulated echo, store messages a second (with MAC)",
  notMeasured: "other machines: both ends share the cores, bytes never leave memory",
  byDefault: false,
  async run({ quick }): Promise<BenchRecord[]> {
    const script = new URL("./link_pass.ts", import.meta.url);
    const passes = await runPairs([{ name: "link", script, input: { quick } }], quick ? 1 : 5);
    const answers = (passes.get("link") ?? []) as Record<string, number>[];
    const samples = (name: string) => answers.map((answer) => answer[name] ?? NaN);
    return CASES.map(({ of, peer, ...rest }) =>
      record({
        bench: "link",
        ...rest,
        samples: samples(of),
        comparable: !quick,
        ...(peer ? { peer: { name: peer[0], samples: samples(peer[1]) } } : {}),
      })
    );
  },
};
