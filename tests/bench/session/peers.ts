/**
 * The same counter as a stateful session, a workerd Durable Object and a Restate virtual object, each on one disk before
 * the answer leaves; pair by pair, by the benchmark `http`'s load generator.
 */
import type { BenchContext } from "../bench.ts";
import { type Contender, runCase } from "../http/compare.ts";
import { installPeer, type PeerName } from "../http/peers.ts";
import { startRestate } from "../http/restate.ts";
import type { Server } from "../http/server.ts";
import { startWorkerd } from "../http/workerd.ts";
import type { BenchRecord } from "../record.ts";
import { startSites } from "./real_sites.ts";

/** Few enough that all of them exist when the warm-up is over: a peer that makes a file for each is not measured at that. */
const SESSIONS = 128;

async function startOurs(folder: string): Promise<Server> {
  const cluster = await startSites(0, folder);
  return {
    port: Number(new URL(cluster.url("edge-1")).port),
    pids: Object.values(cluster.sites).map(({ pid }) => pid),
    prefix: "/stateful",
    stop: () => cluster.stop(),
  };
}

/** A peer from npm, where it can be had. */
async function fromNpm(
  context: BenchContext,
  name: PeerName,
  start: (modules: string, folder: string) => Promise<Server>,
  peer: { readonly name: string; readonly path: string },
): Promise<Contender[]> {
  const modules = await installPeer(name, context.say);
  return modules === null ? [] : [{ ...peer, start: () => start(modules, context.folder) }];
}

/** Their figures; none in a quick run, which has ours in figure 2. */
export async function peers(context: BenchContext): Promise<BenchRecord[]> {
  if (context.quick) return [];
  const path = "/count?s={session}";
  return await runCase({
    ...{
      bench: "session",
      name: "a counter, durable on one disk, 64 under way",
      connections: 64,
      sessions: SESSIONS,
    },
    ...{ runs: 3, warmMs: 2_000, runMs: 3_000 },
    ours: { name: "sojourn", start: () => startOurs(context.folder), path },
    peers: [
      ...await fromNpm(context, "workerd", startWorkerd, { name: "workerd Durable Object", path }),
      ...await fromNpm(context, "restate", startRestate, {
        ...{ name: "Restate virtual object", path: "/counter/{session}/add" },
      }),
    ],
  }, context);
}
