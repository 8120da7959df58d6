/**
 * The share of handoffs that need nothing: clients that move between the edges every two seconds, think between
 * requests, and write with every tenth.
 */
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, quantile, record } from "../record.ts";
import { sleep, type Tree } from "../tree.ts";

const EDGES = ["edge-1", "edge-2", "edge-3"] as const;
/** Rows that all clients read and write. */
const ROWS = 1_000;
const WRITE_SHARE = 0.1;
/** Mean of an exponential distribution: a page that somebody looks at, quickly. */
const THINK_MS = 400;

/** A generator of numbers in [0, 1) with a seed (mulberry32). */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** 100 clients for 20 s. */
export async function share(tree: Tree, { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const clients = quick ? 10 : 100, runMs = quick ? 1_500 : 20_000, stayMs = quick ? 500 : 2_000;
  const loader = tree.session();
  for (let from = 0; from < ROWS; from += 200) {
    await loader.get("edge-1", `/root/fill?set=shared&from=${from}&count=200`);
  }
  for (const edge of EDGES) await loader.get(edge, "/cover?set=shared");
  const hows = new Map<string, number>(), attachMs: number[] = [];
  let requests = 0;
  const endMs = performance.now() + runMs;
  const client = async (seed: number) => {
    const draw = draws(seed), session = tree.session();
    let edge = Math.floor(draw() * EDGES.length), arrived = true;
    let moveMs = performance.now() + draw() * stayMs;
    await sleep(draw() * THINK_MS);
    while (performance.now() < endMs) {
      if (performance.now() >= moveMs) {
        edge = (edge + 1 + Math.floor(draw() * (EDGES.length - 1))) % EDGES.length;
        moveMs += stayMs;
        arrived = true;
      }
      const op = draw() < WRITE_SHARE ? "put" : "get";
      const path = `/timed?op=${op}&set=shared&from=${Math.floor(draw() * ROWS)}`;
      const { handoff } = await session.get(EDGES[edge] ?? "edge-1", path);
      requests++;
      if (arrived && handoff.how !== "new") {
        hows.set(handoff.how, (hows.get(handoff.how) ?? 0) + 1);
        attachMs.push(handoff.ms);
      }
      arrived = false;
      await sleep(-Math.log(1 - draw()) * THINK_MS);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, n) => client(n + 1)));
  const all = attachMs.length;
  say(
    `${clients} clients: ${requests} requests, ${all} handoffs: ` +
      `${[...hows].map(([how, n]) => `${how} ${n}`).join(", ")}; p50 ${quantile(attachMs, 0.5)} ms, ` +
      `p99 ${quantile(attachMs, 0.99)} ms`,
  );
  const base = {
    bench: "handoff",
    case: `${clients} clients that move every ${stayMs / 1000} s, 10 % writes`,
  };
  return [
    record({
      ...base,
      unit: "% of handoffs that need nothing",
      samples: [100 * (hows.get("nothing") ?? 0) / Math.max(1, all)],
      target: { of: "median", op: ">=", value: 95 },
      comparable: !quick,
    }),
    record({ ...base, unit: "handoffs", samples: [all] }),
    record({ ...base, unit: "ms p50 to attach", samples: [quantile(attachMs, 0.5)] }),
    record({ ...base, unit: "ms p99 to attach", samples: [quantile(attachMs, 0.99)] }),
  ];
}
