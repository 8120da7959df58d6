/**
 * Handoffs of sessions whose writes have not reached the common ancestor: it is stopped (SIGSTOP) while the session
 * writes and moves, so that the rows are pending and must be carried. And the same at full speed, where a carry
 * races against the feed.
 */
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, median, quantile, record } from "../record.ts";
import { linkSum, sleep, type Tree } from "../tree.ts";
import { MARKS_MS, type Move, MOVES } from "./moves.ts";

const ROW_BYTES = 1024;
const COUNTS = [1, 10, 100];

interface Trial {
  readonly how: string;
  readonly attachMs: number;
  readonly clientMs: number;
  /** Bytes of store messages that the destination exchanged with the source and whoever answers. */
  readonly bytes: number;
}

/** Pending rows by number, then the race. */
export async function pending(tree: Tree, context: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const move of context.quick ? MOVES.slice(0, 1) : MOVES) {
    // The first carry between two sites dials the link between them.
    const first = await trial(tree, move, 1, 0);
    context.say(`${move.name}, first carry, link not yet made: ${first.attachMs.toFixed(1)} ms`);
    records.push(record({
      bench: "handoff",
      case: `${move.name}, first carry between two sites`,
      unit: "ms to attach",
      samples: [first.attachMs],
    }));
    for (const rows of context.quick ? [10] : COUNTS) {
      records.push(...await carries(tree, move, rows, context));
    }
    records.push(...await race(tree, move, context));
  }
  return records;
}

async function carries(
  tree: Tree,
  move: Move,
  rows: number,
  { quick, say }: BenchContext,
): Promise<BenchRecord[]> {
  const trials: Trial[] = [];
  for (let n = 1; n <= (quick ? 1 : 7); n++) trials.push(await trial(tree, move, rows, n));
  const carried = trials.filter((one) => one.how === "carry");
  const hows = trials.map((one) => one.how).join(" ");
  if (carried.length === 0) throw new Error(`${move.name}: no carry among ${hows}`);
  const attach = carried.map((one) => one.attachMs), bytes = carried.map((one) => one.bytes);
  say(
    `${move.name}, ${rows} pending: ${hows}; ${median(attach).toFixed(1)} ms to attach, ${
      median(bytes)
    } bytes, ` +
      `client ${median(carried.map((one) => one.clientMs)).toFixed(1)} ms`,
  );
  const base = {
    bench: "handoff",
    case: `${move.name}, ${rows} pending row${rows === 1 ? "" : "s"} of 1 KB`,
  };
  return [
    record({
      ...base,
      unit: "ms to attach, beyond the round trip",
      samples: attach.map((ms) => ms - move.rttMs),
      target: { of: "median", op: "<=", value: 2 },
      comparable: !quick,
    }),
    record({
      ...base,
      unit: "bytes",
      samples: bytes,
      peer: { name: "rows", samples: bytes.map(() => rows * ROW_BYTES) },
      target: { of: "ratio", op: "<=", value: 1.2 },
    }),
  ];
}

/** One session: writes at edge-1 with the common ancestor stopped, and goes on at the destination. */
async function trial(tree: Tree, move: Move, rows: number, n: number): Promise<Trial> {
  await tree.settled();
  await sleep(MARKS_MS);
  const session = tree.session();
  await session.get("edge-1", "/hello");
  await tree.session().get(move.to, "/hello");
  const set = `pending-${move.to}-${rows}-${n}`;
  const before = await tree.status(move.to);
  await tree.cluster.control("pause", move.ancestor);
  try {
    await session.get("edge-1", `/fill?set=${set}&count=${rows}&bytes=${ROW_BYTES}`);
    // What is pending above the source's parent must have reached the parent, which then answers for both.
    if (move.answers !== "edge-1") await sleep(50);
    const arrival = await session.get(move.to, "/hello");
    const after = await tree.status(move.to);
    const bytes = exchanged(after, move) - exchanged(before, move);
    return { how: arrival.handoff.how, attachMs: arrival.handoff.ms, clientMs: arrival.tookMs, bytes };
  } finally {
    await tree.cluster.control("resume", move.ancestor);
  }
}

function exchanged(status: Parameters<typeof linkSum>[0], move: Move): number {
  const peers = new Set(["edge-1", move.answers]);
  return [...peers].reduce(
    (sum, peer) => sum + linkSum(status, "storeBytesIn", peer) + linkSum(status, "storeBytesOut", peer),
    0,
  );
}

/** Sessions that write one row and are at the next edge with their next request. */
async function race(tree: Tree, move: Move, { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const count = quick ? 5 : 100;
  const attachMs: number[] = [], hows = new Map<string, number>();
  for (let n = 0; n < count; n++) {
    const session = tree.session();
    await session.get("edge-1", `/timed?op=put&set=race&from=${n}`);
    const { handoff } = await session.get(move.to, "/hello");
    attachMs.push(handoff.ms);
    hows.set(handoff.how, (hows.get(handoff.how) ?? 0) + 1);
  }
  say(
    `${move.name}, at once after a write: ${[...hows].map(([how, n]) => `${how} ${n}`).join(", ")}; ` +
      `p50 ${quantile(attachMs, 0.5).toFixed(1)} ms, p99 ${quantile(attachMs, 0.99).toFixed(1)} ms`,
  );
  const base = { bench: "handoff", case: `${move.name}, at once after a write` };
  return [
    record({
      ...base,
      unit: "ms p50 to attach, beyond the round trip",
      samples: [quantile(attachMs, 0.5) - move.rttMs],
      target: { of: "median", op: "<=", value: 2 },
      comparable: !quick,
    }),
    record({ ...base, unit: "ms p99 to attach", samples: [quantile(attachMs, 0.99)] }),
  ];
}
