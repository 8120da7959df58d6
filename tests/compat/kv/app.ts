/** The KV probes as a program for Deno Deploy: answers what each of them printed, as JSON. */
import { runProbes } from "../probes/probe.ts";
import { limitsAndRest } from "./limit_probes.ts";
import { lists } from "./list_probes.ts";
import { basics, probesOn } from "./probes.ts";

const kv = await Deno.openKv();

Deno.serve(async (request) => {
  // Whoever starts the program may look whether it answers; the probes run once.
  if (!request.url.endsWith("/run")) return new Response("ready");
  const context = { echo: "", request };
  return Response.json(await runProbes(probesOn(kv, { ...basics, ...lists, ...limitsAndRest }), context));
});
