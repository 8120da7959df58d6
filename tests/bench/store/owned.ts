/**
 * What f = 1 adds to a durable write at an edge, and how soon a session goes on elsewhere when that edge is killed.
 *
 * Writes with and without owners take turns on one cluster: the site file is changed and read again (SIGHUP), so that
 * both are measured on the same disk, links and load.
 */
import { join } from "node:path";
import { ask } from "../../e2e/client.ts";
import { eventually } from "../../e2e/cluster.ts";
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import type { LoadInput, LoadResult } from "../http/load.ts";
import { type BenchRecord, median, quantile, record } from "../record.ts";
import { RTT_MS, sleep, type Tree } from "../tree.ts";
import { syncMs } from "./sync.ts";

const LOAD = new URL("../http/load.ts", import.meta.url);

/** A neighbour below the same core, and a site in another region. */
const OWNERS = [
  { site: "edge-2", rttMs: RTT_MS.sibling },
  { site: "edge-3", rttMs: RTT_MS.cousin },
] as const;
const WRITERS = [1, 16];

/** TARGETS: a session's failover beyond what finds out that its site is dead. */
const FAILOVER_MS_MAX = 1_000;

/** A client that asks again. */
const RETRY_MS = 20;

export async function owned(tree: Tree, context: BenchContext): Promise<BenchRecord[]> {
  using file = await Deno.open(join(tree.cluster.data, "fsync-owned"), { write: true, create: true });
  const records: BenchRecord[] = [];
  for (const owner of context.quick ? OWNERS.slice(0, 1) : OWNERS) {
    for (const writers of context.quick ? WRITERS.slice(0, 1) : WRITERS) {
      records.push(...await adds(tree, file, owner, writers, context));
    }
  }
  records.push(...await failover(tree, context));
  await owners(tree, []);
  return records;
}

/** Gives edge-1 these owners and waits until they, and no others, are in effect. */
async function owners(tree: Tree, sites: readonly string[]): Promise<void> {
  const path = join(tree.cluster.data, "sites", "edge-1", "site.json");
  const file = JSON.parse(await Deno.readTextFile(path)) as Record<string, unknown>;
  const fields = sites.length === 0 ? { f: 0, owners: {} } : { f: sites.length, owners: { sites } };
  await Deno.writeTextFile(path, JSON.stringify({ ...file, ...fields }));
  Deno.kill((await tree.cluster.site("edge-1")).pid, "SIGHUP");
  await eventually(`edge-1 has owners ${sites}`, async () => {
    const { text } = await ask(`${tree.cluster.url("edge-1")}/_sojourn/status`);
    const { wards } = JSON.parse(text) as { wards: { owners: string[]; next: string[] | null } };
    return wards.next === null && String(wards.owners) === String(sites);
  });
}

async function adds(
  tree: Tree,
  file: Deno.FsFile,
  owner: (typeof OWNERS)[number],
  writers: number,
  { quick, say }: BenchContext,
): Promise<BenchRecord[]> {
  const alone: number[] = [], held: number[] = [], beyond: number[] = [];
  for (let run = 0; run < (quick ? 1 : 3); run++) {
    await owners(tree, []);
    const without = await pass(tree, writers, quick);
    await owners(tree, [owner.site]);
    const withOne = await pass(tree, writers, quick);
    const syncs: number[] = [];
    for (let i = 0; i < 16; i++) syncs.push(await syncMs(file));
    const sync = quantile(syncs, 0.5);
    alone.push(without);
    held.push(withOne);
    beyond.push(withOne - without - owner.rttMs - sync);
    say(
      `f = 1 at ${owner.site} (${owner.rttMs} ms), ${writers} writers: p50 ${withOne.toFixed(2)} ms, ` +
        `f = 0 ${without.toFixed(2)} ms, fsync ${sync.toFixed(2)} ms`,
    );
  }
  const base = {
    bench: "store",
    case: `write 1 KB, ${writers} writer${writers === 1 ? "" : "s"}, owner ${owner.rttMs} ms away`,
  };
  return [
    record({ ...base, unit: "ms p50 at the client, f = 0", samples: alone }),
    record({ ...base, unit: "ms p50 at the client, f = 1", samples: held }),
    record({
      ...base,
      unit: "ms p50 that f = 1 adds, beyond the round trip and the owner's fsync",
      samples: beyond,
      // One writer: nothing else is under way. Of several, each waits for what is on its way to the owner's disk.
      ...writers === 1 ? { target: { of: "median", op: "<=", value: 2 }, comparable: !quick } : {},
    }),
  ];
}

async function pass(tree: Tree, writers: number, quick: boolean): Promise<number> {
  const { p50Ms } = await runFresh({
    name: `${writers} writers with or without owners`,
    script: LOAD,
    input: {
      hostname: "127.0.0.1",
      port: Number(new URL(tree.cluster.url("edge-1")).port),
      path: "/load/timed?op=put&set={session}",
      connections: writers,
      sessions: writers,
      warmMs: 500,
      runMs: quick ? 1_500 : 4_000,
    } satisfies LoadInput,
  }) as LoadResult;
  return p50Ms;
}

/** A session writes where it is cut off from the parent, its site is killed, it asks elsewhere. */
async function failover(tree: Tree, { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const took: number[] = [];
  await owners(tree, ["edge-3"]);
  for (let n = 0; n < (quick ? 1 : 7); n++) {
    const session = tree.session();
    await session.get("edge-1", "/hello");
    await chaos(tree, { action: "partition", a: ["edge-1"], b: ["core-1"] });
    await session.get("edge-1", `/timed?op=put&set=failover-${n}&from=0`);
    await tree.cluster.control("kill", "edge-1");
    const begunMs = performance.now();
    for (;;) {
      const answer = await session.get("edge-2", "/hello").catch(() => null);
      if (answer !== null) break;
      await sleep(RETRY_MS);
    }
    took.push(performance.now() - begunMs);
    await chaos(tree, { action: "heal" });
    await tree.cluster.control("start", "edge-1");
    await tree.cluster.ready("edge-1");
    await owners(tree, ["edge-3"]);
    await tree.settled();
  }
  say(`its site killed, a session goes on at edge-2 after ${median(took).toFixed(0)} ms`);
  return [record({
    bench: "store",
    case: "a session goes on after its site was killed, f = 1",
    unit: "ms to the answer",
    samples: took,
    target: { of: "median", op: "<=", value: FAILOVER_MS_MAX },
    comparable: !quick,
  })];
}

async function chaos(tree: Tree, action: Record<string, unknown>): Promise<void> {
  const { status, text } = await ask(`${tree.cluster.url("cloud")}/_sojourn/admin/chaos`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${tree.cluster.adminToken}` },
    body: JSON.stringify(action),
  });
  if (status !== 200) throw new Error(`chaos ${JSON.stringify(action)} answered ${status}: ${text}`);
}
