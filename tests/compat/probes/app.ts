/** The probes as an app: answers what each of them printed, as JSON. `?echo=` is where the echo server is. */
import { bodies } from "./bodies.ts";
import { events } from "./events.ts";
import { fetching } from "./fetching.ts";
import { runProbes } from "./probe.ts";
import { streams } from "./streams.ts";
import { urls } from "./urls.ts";
import { values } from "./values.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    const echo = new URL(request.url).searchParams.get("echo") ?? "";
    const probes = { ...urls, ...bodies, ...streams, ...events, ...values, ...fetching };
    return Response.json(await runProbes(probes, { echo, request }));
  },
};
