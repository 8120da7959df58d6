/** What a session adds to a move of scrabble (CESSNA, figure 3): checkpoints as it takes them, in one process. */
import { z } from "zod";
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import { type BenchRecord, record } from "../record.ts";

const Measured = z.object({
  without: z.number(),
  within: z.number(),
  logBytes: z.number(),
  outBytes: z.number(),
});

/** The figure. */
export async function moves({ quick, say }: BenchContext): Promise<BenchRecord[]> {
  const runs: z.infer<typeof Measured>[] = [];
  for (let run = 0; run < (quick ? 1 : 5); run++) {
    const script = new URL("./scrabble_moves.ts", import.meta.url);
    const measured = Measured.parse(await runFresh({ name: "moves", script, input: quick ? 2 : 20 }));
    say(
      `a move of scrabble: ${measured.within.toFixed(0)} µs, its rules alone ${measured.without.toFixed(0)}`,
    );
    runs.push(measured);
  }
  const of = { bench: "session", comparable: !quick };
  const name = "figure 3: a move of scrabble";
  return [
    record({
      ...{ ...of, case: `${name}, added by the session`, unit: "µs" },
      samples: runs.map(({ within, without }) => within - without),
    }),
    record({ ...of, case: `${name}, log`, unit: "bytes", samples: runs.map(({ logBytes }) => logBytes) }),
    record({
      ...of,
      case: `${name}, told to two players`,
      unit: "bytes",
      samples: runs.map(({ outBytes }) => outBytes),
    }),
  ];
}
