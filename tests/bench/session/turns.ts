/** What the executor of stateful sessions adds to a message, takes for its replay, and holds for one that is idle. */
import { z } from "zod";
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import { type BenchRecord, record } from "../record.ts";

const Measured = z.object({
  without: z.number(),
  within: z.number(),
  again: z.number(),
  messaged: z.number(),
  sealed: z.number(),
  logBytes: z.number(),
});

/** The figures of turns. */
export async function turns({ quick, say }: BenchContext): Promise<BenchRecord[]> {
  const runs: z.infer<typeof Measured>[] = [];
  for (let run = 0; run < (quick ? 1 : 7); run++) {
    const measured = Measured.parse(
      await runFresh({
        name: "turns",
        script: new URL("./loop.ts", import.meta.url),
        input: quick ? { messages: 2_000 } : { messages: 100_000 },
      }),
    );
    const { without, within, again, messaged, sealed } = measured;
    say(
      `without ${without.toFixed(2)}, in a session ${within.toFixed(2)}, replayed ${
        again.toFixed(2)
      } µs; a ` +
        `client's message ${messaged.toFixed(2)}, sealed for it ${sealed.toFixed(2)} µs`,
    );
    runs.push(measured);
  }
  const open: number[] = [];
  for (let run = 0; run < (quick ? 1 : 3); run++) {
    open.push(
      z.number().parse(
        await runFresh({
          name: "open",
          script: new URL("./open_heap.ts", import.meta.url),
          input: quick ? 200 : 10_000,
          flags: ["--v8-flags=--expose-gc"],
        }),
      ),
    );
  }
  const of = { bench: "session", comparable: !quick } as const;
  const most = (value: number) => ({ of: "median", op: "<=", value }) as const;
  const least = (value: number) => ({ of: "median", op: ">=", value }) as const;
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
      case: "throughput of the same, against the handler's",
      unit: "×",
      samples: runs.map(({ within, without }) => without / within),
      target: least(0.6),
    }),
    record({
      ...of,
      case: "added per message, 64 in flight, sealed for the client that sent it",
      unit: "µs",
      samples: runs.map(({ sealed, without }) => sealed - without),
      target: most(12),
    }),
    record({
      ...of,
      case: "of these for its client's log: the record, and what the home notes of it",
      unit: "µs",
      samples: runs.map(({ sealed, messaged }) => sealed - messaged),
    }),
    record({
      ...of,
      case: "throughput of the same, against the handler's, sealed",
      unit: "×",
      samples: runs.map(({ sealed, without }) => without / sealed),
      target: least(0.35),
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
      case: "open stateful session with a field, idle, in the executor, its checkpoint included",
      unit: "bytes",
      samples: open,
      target: most(6 * 1024),
    }),
  ];
}
