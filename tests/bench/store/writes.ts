/**
 * Writes of 1 KB rows at an edge (SessionStore, figure 5b): on its disk before the answer leaves. Each write stands
 * beside the same request for a function that touches no row, and beside a sync of the same disk: what a write
 * adds beyond both is ours.
 */
import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import type { LoadInput, LoadResult } from "../http/load.ts";
import { type BenchRecord, median, quantile, record } from "../record.ts";
import { syncMs } from "./sync.ts";
import { sliced, slices, timedInside, type Tree } from "../tree.ts";

const LOAD = new URL("../http/load.ts", import.meta.url);

/** One writer, then many at once. */
export async function writes(tree: Tree, context: BenchContext): Promise<BenchRecord[]> {
  using file = await Deno.open(join(tree.cluster.data, "fsync-probe"), { write: true, create: true });
  const records = await oneWriter(tree, file, context);
  for (const writers of context.quick ? [16] : [16, 64]) {
    records.push(...await manyWriters(tree, file, writers, context));
  }
  return records;
}

async function oneWriter(
  tree: Tree,
  file: Deno.FsFile,
  { quick, say }: BenchContext,
): Promise<BenchRecord[]> {
  const rounds = quick ? 20 : 500, runs = quick ? 1 : 5;
  const session = tree.session();
  const samples: { inside: number; put: number; echo: number; sync: number }[] = [];
  for (let n = 0; n < rounds; n++) {
    const sync = await syncMs(file);
    const echo = (await session.get("edge-1", "/hello")).tookMs;
    const answer = await session.get("edge-1", `/timed?op=put&set=written&from=${n}`);
    samples.push({ inside: timedInside(answer).ms[0] ?? NaN, put: answer.tookMs, echo, sync });
  }
  const middle = (of: keyof (typeof samples)[number]) => (slice: typeof samples) =>
    median(slice.map((sample) => sample[of]));
  const perRun = slices(samples, runs);
  const beyond = perRun.map((slice) => middle("put")(slice) - middle("echo")(slice) - middle("sync")(slice));
  const all = (of: keyof (typeof samples)[number]) => samples.map((sample) => sample[of]);
  say(
    `write: client p50 ${middle("put")(samples).toFixed(2)} ms, echo ${
      middle("echo")(samples).toFixed(2)
    }, ` +
      `fsync ${middle("sync")(samples).toFixed(2)}; in the function ${middle("inside")(samples).toFixed(2)}`,
  );
  const base = { bench: "store", case: "write 1 KB" };
  const bytes = await tree.bytesOf(quick ? 10 : 200, async () => {
    for (let n = 0; n < (quick ? 10 : 200); n++) {
      await session.get("edge-1", `/timed?op=put&set=sent&from=${n}`);
    }
  });
  say(`write: ${Math.round(bytes)} bytes on all links (paper: 2346.8)`);
  return [
    record({ ...base, unit: "ms p50 in the function, applied", samples: sliced(all("inside"), 0.5, runs) }),
    record({ ...base, unit: "ms p50 at the client, durable", samples: sliced(all("put"), 0.5, runs) }),
    record({ ...base, unit: "ms p99 at the client, durable", samples: sliced(all("put"), 0.99, runs) }),
    record({ ...base, unit: "ms p50 of the disk's fsync", samples: sliced(all("sync"), 0.5, runs) }),
    record({
      ...base,
      case: "write 1 KB, beyond an echo and the fsync",
      unit: "ms p50",
      samples: beyond,
      target: { of: "median", op: "<=", value: 0.5 },
      comparable: !quick,
    }),
    record({ ...base, case: "write 1 KB, on all links", unit: "bytes", samples: [bytes] }),
  ];
}

async function manyWriters(
  tree: Tree,
  file: Deno.FsFile,
  writers: number,
  { quick, say }: BenchContext,
): Promise<BenchRecord[]> {
  const runs = quick ? 1 : 3;
  const pass = async (path: string) =>
    await runFresh({
      name: `${writers} writers`,
      script: LOAD,
      input: {
        hostname: "127.0.0.1",
        port: Number(new URL(tree.cluster.url("edge-1")).port),
        path: `/load${path}`,
        connections: writers,
        sessions: writers,
        warmMs: quick ? 300 : 500,
        // Long enough for an answer on a machine that is busy otherwise: no answers, no quantiles.
        runMs: quick ? 1_500 : 2_000,
      } satisfies LoadInput,
    }) as LoadResult;
  const perSecond: number[] = [], p50: number[] = [], added: number[] = [], perCommit: number[] = [];
  for (let run = 0; run < runs; run++) {
    const syncs: number[] = [];
    for (let i = 0; i < 16; i++) syncs.push(await syncMs(file));
    const echo = await pass("/hello");
    const before = await tree.status("edge-1");
    const put = await pass("/timed?op=put&set={session}");
    const after = await tree.status("edge-1");
    perSecond.push(put.perSecond);
    p50.push(put.p50Ms);
    added.push(put.p50Ms - echo.p50Ms - quantile(syncs, 0.5));
    const commits = (after.counters["commits"] ?? 0) - (before.counters["commits"] ?? 0);
    perCommit.push((after.position - before.position) / Math.max(1, commits));
    say(
      `${writers} writers: ${Math.round(put.perSecond)}/s, p50 ${put.p50Ms.toFixed(2)} ms, echo ${
        echo.p50Ms.toFixed(2)
      } ms, fsync ${quantile(syncs, 0.5).toFixed(2)} ms, ${perCommit.at(-1)?.toFixed(1)} writes a commit`,
    );
  }
  const base = { bench: "store", case: `write 1 KB, ${writers} writers` };
  return [
    record({ ...base, unit: "writes/s", samples: perSecond }),
    record({ ...base, unit: "ms p50 at the client, durable", samples: p50 }),
    record({ ...base, unit: "writes a commit", samples: perCommit }),
    record({
      ...base,
      case: `write 1 KB, ${writers} writers, beyond an echo and the fsync`,
      unit: "ms p50",
      samples: added,
      target: { of: "median", op: "<=", value: 0.5 },
      comparable: !quick,
    }),
  ];
}
