/** What a write costs a parent with 10 and with 1,000 children, 5 of them interested (fanout_pass.ts). */
import type { BenchContext } from "../bench.ts";
import { runPairs } from "../fresh.ts";
import { type BenchRecord, record } from "../record.ts";
import type { FanoutInput, FanoutResult } from "./fanout_pass.ts";

const PASS = new URL("./fanout_pass.ts", import.meta.url);

/** Writes per virtual millisecond: one, as a site at ease has them, and ten, grouped. */
const RATES = [1, 10];

/** Pair by pair in fresh processes. */
export async function fanout({ quick, say }: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const writesPerMs of quick ? [10] : RATES) {
    const input = (children: number): FanoutInput => ({
      children,
      interested: 5,
      writesPerMs,
      phaseMs: quick ? 200 : writesPerMs === 1 ? 4_000 : 2_000,
    });
    const contenders = [10, 1_000].map((children) => ({
      name: `${children} children`,
      script: PASS,
      input: input(children),
    }));
    const answers = await runPairs(contenders, quick ? 1 : 5);
    const of = (name: string, field: keyof FanoutResult) =>
      ((answers.get(name) ?? []) as FanoutResult[]).map((answer) => answer[field]);
    const few = of("10 children", "microsPerWrite"), many = of("1000 children", "microsPerWrite");
    const base = { bench: "store", case: `write at a parent, 5 interested, ${writesPerMs * 1000} writes/s` };
    say(
      `${writesPerMs * 1000} writes/s: 10 children ${
        few.map((us) => us.toFixed(1)).join(", ")
      } µs a write; ` +
        `1,000 children ${many.map((us) => us.toFixed(1)).join(", ")} µs; ` +
        `messages ${of("10 children", "messagesPerWrite")[0]?.toFixed(2)}, ` +
        `${of("1000 children", "messagesPerWrite")[0]?.toFixed(2)}`,
    );
    records.push(
      record({ ...base, case: `${base.case}, 10 children`, unit: "CPU µs/write", samples: few }),
      record({
        ...base,
        case: `${base.case}, 1,000 children`,
        unit: "CPU µs/write",
        samples: many,
        peer: { name: "10 children", samples: few },
        target: { of: "ratio", op: "<=", value: 1.2 },
        comparable: !quick,
      }),
      record({
        ...base,
        case: `${base.case}, 1,000 children`,
        unit: "messages to children/write",
        samples: of("1000 children", "messagesPerWrite"),
        peer: { name: "10 children", samples: of("10 children", "messagesPerWrite") },
      }),
    );
    if (writesPerMs === 1) {
      const samples = of("1000 children", "microsPerChildSecond");
      records.push(
        record({ bench: "store", case: "an idle child at its parent", unit: "CPU µs/s", samples }),
      );
    }
  }
  return records;
}
