/** The KV probes as a program for Deno Deploy: answers what each of them printed, as JSON. */
import { runProbes } from "../probes/probe.ts";
import { limitsAndRest } from "./limit_probes.ts";
import { lists } from "./list_probes.ts";
import { basics, type KvProbes, probesOn } from "./probes.ts";
import { listenerOn, queueing, retrying } from "./queue_probes.ts";

const kv = await Deno.openKv(), other = await Deno.openKv(), closed = await Deno.openKv();
kv.listenQueue(listenerOn(kv, "first"));
kv.listenQueue(listenerOn(kv, "second"));
other.listenQueue(listenerOn(kv, "third"));
const ends = closed.listenQueue(listenerOn(kv, "closed")).then(() => "ended");
closed.close();

/** Probes by the path that runs them: each of these takes a while. */
const PARTS: Readonly<Record<string, KvProbes>> = {
  "/run": { ...basics, ...lists, ...limitsAndRest },
  "/queues": queueing({ closed: ends }),
  "/retries": retrying,
};

Deno.serve(async (request) => {
  // Whoever starts the program may look whether it answers; the probes run once.
  const found = Object.entries(PARTS).find(([path]) => request.url.endsWith(path));
  if (found === undefined) return new Response("ready");
  const context = { echo: "", request };
  return Response.json(await runProbes(probesOn(kv, found[1]), context));
});
