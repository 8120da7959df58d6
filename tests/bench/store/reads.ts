/**
 * Reads of 1 KB rows at an edge (SessionStore, figure 5a): held there, held at its core only, held at the cloud
 * only. Beside each read, in turn, an echo: the same request for a function that touches no row, run at the edge,
 * forwarded to the core, forwarded to the cloud. An echo goes through the same client, gateway, isolate and links.
 */
import { join } from "node:path";
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, median, quantile, record } from "../record.ts";
import { syncMs } from "./sync.ts";
import { RTT_MS, sliced, slices, timedInside, type Tree } from "../tree.ts";

interface Place {
  readonly name: string;
  readonly set: string;
  readonly echo: string;
  readonly rttMs: number;
  /** Syncs that an answer waits for, one after the other: at the core, which fetched the row, and at the edge. */
  readonly syncs: number;
}

const PLACES: readonly Place[] = [
  { name: "local", set: "at-edge", echo: "/hello", rttMs: 0, syncs: 0 },
  { name: "from core", set: "at-core", echo: "/core/hello", rttMs: RTT_MS.core, syncs: 1 },
  { name: "from cloud", set: "at-cloud", echo: "/root/hello", rttMs: RTT_MS.cloud, syncs: 2 },
];
const FILL_ROWS = 200;
const QUICK_IDLE_MS = 300;
/** Points of the distribution; p50 and p99 are records of their own. */
const CDF = [0.1, 0.25, 0.75, 0.9, 0.95];

interface Samples {
  readonly inside: number[];
  readonly client: number[];
  readonly echo: number[];
}

/**
 * Puts each set where it belongs. Each step is a session of its own that is not seen again: a site warms itself
 * for a session that comes back from another with what it touched there.
 */
async function load(tree: Tree, rows: number): Promise<void> {
  const session = tree.session();
  for (const { set } of PLACES) {
    for (let from = 0; from < rows; from += FILL_ROWS) {
      const count = Math.min(FILL_ROWS, rows - from);
      await session.get("edge-1", `/root/fill?set=${set}&from=${from}&count=${count}`);
    }
  }
  await tree.session().get("edge-1", "/core/cover?set=at-core");
  await tree.session().get("edge-1", "/cover?set=at-edge");
}

async function measure(
  tree: Tree,
  rows: number,
): Promise<{ samples: ReadonlyMap<Place, Samples>; syncs: readonly number[] }> {
  using file = await Deno.open(join(tree.cluster.data, "fsync-probe"), { write: true, create: true });
  const syncs: number[] = [];
  const samples = new Map<Place, Samples>(
    PLACES.map((place) => [place, { inside: [], client: [], echo: [] }]),
  );
  const session = tree.session(), echoes = tree.session();
  for (let n = 0; n < rows; n++) {
    syncs.push(await syncMs(file));
    for (const [place, into] of n % 2 === 0 ? samples : [...samples].toReversed()) {
      into.echo.push((await echoes.get("edge-1", place.echo)).tookMs);
      const answer = await session.get("edge-1", `/timed?op=get&set=${place.set}&from=${n}`);
      const { ms, found } = timedInside(answer);
      if (found !== 1) throw new Error(`row ${n} of ${place.set} was not there`);
      into.client.push(answer.tookMs);
      into.inside.push(...ms);
    }
  }
  return { samples, syncs };
}

/** Reads, and what each moves over all links. */
export async function reads(tree: Tree, context: BenchContext): Promise<BenchRecord[]> {
  const rows = context.quick ? 15 : 400;
  const bytesRows = context.quick ? 5 : 200;
  await load(tree, rows + bytesRows);
  // The first reads of a session at a site find nothing warm.
  for (const { echo } of PLACES) await tree.session().get("edge-1", echo);
  const { samples, syncs } = await measure(tree, rows);
  const records = [...samples].flatMap(([place, one]) => figures(place, one, syncs, context));
  for (const [place, paper] of [[PLACES[1], 1620.7], [PLACES[2], 3245.8]] as const) {
    if (place === undefined) continue;
    const bytes = await tree.bytesOf(bytesRows, async () => {
      const session = tree.session();
      for (let n = rows; n < rows + bytesRows; n++) {
        await session.get("edge-1", `/timed?op=get&set=${place.set}&from=${n}`);
      }
    }, context.quick ? QUICK_IDLE_MS : undefined);
    records.push(
      record({
        bench: "store",
        case: `read 1 KB ${place.name}, on all links`,
        unit: "bytes",
        samples: [bytes],
      }),
    );
    context.say(`read ${place.name}: ${Math.round(bytes)} bytes on all links (paper: ${paper})`);
  }
  return records;
}

function figures(
  place: Place,
  samples: Samples,
  syncs: readonly number[],
  { quick, say }: BenchContext,
): BenchRecord[] {
  const runs = quick ? 1 : 5, name = `read 1 KB ${place.name}`;
  const base = { bench: "store", case: name };
  const comparable = !quick;
  const beyond = slices(samples.client.map((ms, i) => [ms, samples.echo[i] ?? NaN] as const), runs)
    .map((slice) => median(slice.map(([ms]) => ms)) - median(slice.map(([, ms]) => ms)));
  say(
    `${name}: inside p50 ${quantile(samples.inside, 0.5).toFixed(2)} ms, p99 ${
      quantile(samples.inside, 0.99).toFixed(2)
    }; ` +
      `client p50 ${quantile(samples.client, 0.5).toFixed(2)}; echo p50 ${
        quantile(samples.echo, 0.5).toFixed(2)
      }`,
  );
  const local = place.rttMs === 0, syncRuns = sliced(syncs, 0.5, runs);
  return [
    record({
      ...base,
      unit: "ms p50 in the function",
      samples: sliced(samples.inside, 0.5, runs),
      ...local ? { target: { of: "median", op: "<=", value: 0.2 } as const, comparable } : {},
    }),
    record({ ...base, unit: "ms p99 in the function", samples: sliced(samples.inside, 0.99, runs) }),
    ...quick ? [] : CDF.map((share) =>
      record({
        ...base,
        unit: `ms p${100 * share} in the function`,
        samples: [quantile(samples.inside, share)],
      })
    ),
    record({ ...base, unit: "ms p50 at the client", samples: sliced(samples.client, 0.5, runs) }),
    record({
      ...base,
      case: `${name}, beyond an echo`,
      unit: "ms p50 at the client",
      samples: beyond,
      ...local ? {} : { target: { of: "median", op: "<=", value: 1 } as const, comparable },
    }),
    ...local ? [] : [
      record({
        ...base,
        case: `${name}, beyond an echo and ${place.syncs} fsync${place.syncs > 1 ? "s" : ""}`,
        unit: "ms p50 at the client",
        samples: beyond.map((ms, run) => ms - place.syncs * (syncRuns[run] ?? NaN)),
      }),
      record({
        ...base,
        case: `${name}, beyond the emulated round trip`,
        unit: "ms p50 in the function",
        samples: sliced(samples.inside, 0.5, runs).map((ms) => ms - place.rttMs),
      }),
    ],
  ];
}
