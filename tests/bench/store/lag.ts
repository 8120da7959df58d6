/**
 * Feed lag: a row written at one edge, seen by a function that watches it at an edge below another core, by way of
 * edge → core → cloud → core → edge. Both ends take the time from the machine's clock.
 */
import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, median, quantile, record } from "../record.ts";
import { syncMs } from "./sync.ts";
import { RTT_MS, sleep, sliced, slices, type Tree } from "../tree.ts";

/** One way up and down. */
const LINKS_MS = RTT_MS.cousin / 2;
const OURS_MS = 5;
/** On the way the row is on disk at edge-1, core-1, cloud and core-2 before it leaves each. */
const COMMITS = 4;

/** Events of a stream of server-sent events, parsed. */
async function* events(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<{ n: number; lagMs: number }> {
  let buffer = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    buffer += text;
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      yield JSON.parse(buffer.slice("data: ".length, end));
      buffer = buffer.slice(end + 2);
    }
  }
}

/** Writes at edge-1, watches at edge-3. */
export async function feedLag(tree: Tree, { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const count = quick ? 10 : 200, runs = quick ? 1 : 5;
  const stop = new AbortController();
  const stream = await fetch(`${tree.cluster.url("edge-3")}/load/changes?set=lag`, { signal: stop.signal });
  if (stream.body === null) throw new Error("the stream of changes has no body");
  const seen = events(stream.body);
  // The first event says what is there already, once the row is covered.
  await seen.next();
  const writer = tree.session();
  using file = await Deno.open(join(tree.cluster.data, "fsync-probe"), { write: true, create: true });
  const syncs: number[] = [];
  const inside: number[] = [], client: number[] = [];
  for (let n = 0; n < count; n++) {
    // Off the beat of whatever timers there are on the way.
    await sleep(10 + 37 * (n % 4) / 4 + n % 3);
    syncs.push(await syncMs(file));
    const begunMs = performance.now();
    const written = writer.get("edge-1", `/stamp?set=lag&n=${n}`);
    for (;;) {
      const { done, value } = await seen.next();
      if (done) throw new Error("the stream of changes ended");
      if (value.n < n) continue;
      inside.push(value.lagMs);
      client.push(performance.now() - begunMs);
      break;
    }
    await written;
  }
  stop.abort();
  say(
    `feed lag: p50 ${quantile(inside, 0.5).toFixed(1)} ms, p99 ${quantile(inside, 0.99).toFixed(1)} ms, ` +
      `client to client p50 ${quantile(client, 0.5).toFixed(1)} ms; links alone ${LINKS_MS} ms, fsync p50 ${
        quantile(syncs, 0.5).toFixed(2)
      } ms`,
  );
  const base = { bench: "store", case: "feed lag edge → cloud → other edge" };
  return [
    record({
      ...base,
      unit: "ms p50, function to function",
      samples: sliced(inside, 0.5, runs),
      target: { of: "median", op: "<=", value: LINKS_MS + OURS_MS },
      comparable: !quick,
    }),
    record({
      ...base,
      case: `${base.case}, beyond links and ${COMMITS} fsyncs`,
      unit: "ms p50, function to function",
      samples: slices(inside.map((ms, i) => [ms, syncs[i] ?? NaN] as const), runs).map((slice) =>
        median(slice.map(([ms]) => ms)) - LINKS_MS - COMMITS * median(slice.map(([, ms]) => ms))
      ),
    }),
    record({ ...base, unit: "ms p99, function to function", samples: sliced(inside, 0.99, runs) }),
    record({ ...base, unit: "ms p50, client to client", samples: sliced(client, 0.5, runs) }),
  ];
}
