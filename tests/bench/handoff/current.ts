/**
 * Handoffs when feeds are current: what a session wrote has reached the common ancestor, and the next site knows
 * it. Nothing should be asked, sent or waited for. What a site does afterwards, in the background, to warm itself
 * for the session is measured too; no request waits for it.
 */
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, median, quantile, record } from "../record.ts";
import { linkSum, sleep, sliced, slices, type Tree } from "../tree.ts";
import { MARKS_MS, type Move, MOVES } from "./moves.ts";

/** Sessions that write at edge-1 and come to another edge; beside each arrival, the session's next request there. */
export async function current(tree: Tree, context: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const move of context.quick ? MOVES.slice(1) : MOVES) {
    records.push(...await moved(tree, move, context));
  }
  return records;
}

async function moved(tree: Tree, move: Move, { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const count = quick ? 10 : 200, runs = quick ? 1 : 5;
  const sessions = Array.from({ length: count }, () => tree.session());
  for (const [n, session] of sessions.entries()) {
    await session.get("edge-1", `/timed?op=put&set=current&from=${n}`);
  }
  await tree.settled();
  await sleep(MARKS_MS);
  const before = await tree.status(move.to), beforeMs = performance.now();
  const handoffMs: number[] = [], arrivalMs: number[] = [], stayMs: number[] = [];
  let nothing = 0;
  for (const session of sessions) {
    const arrival = await session.get(move.to, "/hello");
    handoffMs.push(arrival.handoff.ms);
    arrivalMs.push(arrival.tookMs);
    if (arrival.handoff.how === "nothing") nothing++;
    stayMs.push((await session.get(move.to, "/hello")).tookMs);
  }
  const after = await tree.status(move.to);
  await sleep(WARMED_MS);
  const warmed = await tree.status(move.to), spanMs = performance.now() - beforeMs;
  await sleep(spanMs);
  const idle = await tree.status(move.to);
  const bytes = (status: typeof before) => linkSum(status, "storeBytesOut") + linkSum(status, "storeBytesIn");
  // Marks go on whether anyone moves or not: the same time without handoffs is the comparison.
  const background = Math.max(0, bytes(warmed) - bytes(before) - (bytes(idle) - bytes(warmed))) / count;
  const asked = (after.counters["ask"] ?? 0) - (before.counters["ask"] ?? 0);
  say(
    `${move.name}, feeds current: ${nothing} of ${count} by nothing, ${asked} asked; handoff p50 ${
      quantile(handoffMs, 0.5)
    } ms, p99 ${quantile(handoffMs, 0.99)} ms; in the background ${Math.round(background)} bytes a session`,
  );
  const base = { bench: "handoff", case: `${move.name}, feeds current` };
  const zero = { of: "median", op: "<=", value: 0 } as const;
  const added = slices(arrivalMs.map((ms, i) => ms - (stayMs[i] ?? NaN)), runs).map(median);
  return [
    record({
      ...base,
      unit: "ms p50 to attach",
      samples: sliced(handoffMs, 0.5, runs),
      target: { of: "median", op: "<=", value: 1 },
      comparable: !quick,
    }),
    record({ ...base, unit: "ms p99 to attach", samples: sliced(handoffMs, 0.99, runs) }),
    record({ ...base, unit: "ms p50 at the client, beyond the next request there", samples: added }),
    record({ ...base, unit: "bytes carried", samples: [carried(after) - carried(before)], target: zero }),
    record({ ...base, unit: "round trips", samples: [asked / count], target: zero }),
    record({ ...base, unit: "bytes a session afterwards, to warm the edge", samples: [background] }),
    record({ ...base, unit: "% that need nothing", samples: [100 * nothing / count] }),
  ];
}

/** Sessions are warmed within this time. */
const WARMED_MS = 1_000;

const carried = (status: { counters: Record<string, number> }): number =>
  status.counters["carried_bytes"] ?? 0;
