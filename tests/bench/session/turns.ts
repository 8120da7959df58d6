/** What the executor of stateful sessions adds to a message, takes for its replay, and holds for one that is idle. */
import { z } from "zod";
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import { type BenchRecord, record } from "../record.ts";

const Measured = z.object({
  without: z.number(),
  within: z.number(),
  again: z.number(),
  logBytes: z.number(),
  idle: z.number(),
});

/** The figures of turns. */
export async function turns({ quick, say }: BenchContext): Promise<BenchRecord[]> {
  const runs: z.infer<typeof Measured>[] = [];
  for (let run = 0; run < (quick ? 1 : 7); run++) {
    const measured = Measured.parse(
      await runFresh({
        name: "turns",
        script: new URL("./loop.ts", import.meta.url),
        input: quick ? { messages: 2_000, idle: 200 } : { messages: 100_000, idle: 10_000 },
        flags: ["--v8-flags=--expose-gc"],
      }),
    );
    const { without, within, again } = measured;
    say(`without ${without.toFixed(2)}, in a session ${within.toFixed(2)}, replayed ${again.toFixed(2)} µs`);
    runs.push(measured);
  }
  const of = { bench: "session", comparable: !quick } as const;
  const most = (value: number) => ({ of: "median", op: "<=", value }) as const;
  return [
    record({
      ...of,
      case: "added per message, 64 in flight, over the same handler without sessions",
      unit: "µs",
      samples: runs.map(({ within, without }) => within - without),
      target: most(5),
    }),
    record({
      ...of,
      case: "replay of a message, beyond 1.5 times the handler's own time",
      unit: "µs",
      samples: runs.map(({ again, without }) => again - 1.5 * without),
      target: most(1),
    }),
    record({
      ...of,
      case: "log of a method call, its bytes included",
      unit: "bytes",
      samples: runs.map(({ logBytes }) => logBytes),
    }),
    record({
      ...of,
      case: "idle stateful session with a field, its checkpoint included",
      unit: "bytes",
      samples: runs.map(({ idle }) => idle),
      target: most(6 * 1024),
    }),
  ];
}
