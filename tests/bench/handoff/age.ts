/**
 * What a handoff costs by the age of its session: how many operations it did at edge-1 before it comes to edge-3
 * (SessionStore, figure 6: there it grows with the commands that the session has executed).
 */
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, quantile, record } from "../record.ts";
import { sleep, sliced, type Tree } from "../tree.ts";
import { MARKS_MS } from "./moves.ts";

/** Operations in one request. */
const AT_ONCE = 100;

/** Ages from 1 to 100,000: writes of distinct rows of 1 KB. */
export async function ages(tree: Tree, { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const operations of quick ? [100] : [1, 10, 100, 1_000, 10_000, 100_000]) {
    const session = tree.session();
    for (let from = 0; from < operations; from += AT_ONCE) {
      const count = Math.min(AT_ONCE, operations - from);
      await session.get("edge-1", `/timed?op=put&set=age-${operations}&from=${from}&count=${count}`);
    }
    await tree.settled();
    await sleep(MARKS_MS);
    const before = await tree.status("edge-3");
    const attachMs: number[] = [];
    for (let n = 0; n < (quick ? 5 : 50); n++) {
      // A token may be presented again and again.
      const arriving = tree.session();
      arriving.token = session.token;
      attachMs.push((await arriving.get("edge-3", "/hello")).handoff.ms);
    }
    const after = await tree.status("edge-3");
    const bytes = (after.counters["carried_bytes"] ?? 0) - (before.counters["carried_bytes"] ?? 0);
    say(
      `session of ${operations} operations: handoff p50 ${quantile(attachMs, 0.5)} ms, ${bytes} bytes, ` +
        `token ${session.token.length} bytes`,
    );
    const base = { bench: "handoff", case: `session of ${operations.toLocaleString("en-US")} operations` };
    records.push(
      record({
        ...base,
        unit: "ms p50 to attach",
        samples: sliced(attachMs, 0.5, 5),
        target: { of: "median", op: "<=", value: 1 },
        comparable: !quick,
      }),
      record({
        ...base,
        unit: "bytes carried",
        samples: [bytes],
        target: { of: "median", op: "<=", value: 0 },
      }),
      record({ ...base, unit: "bytes of token", samples: [session.token.length] }),
    );
  }
  return records;
}
