/**
 * What the benchmarks ask of Sojourn: the same handlers as the peers beside it (tests/bench/http/), and
 * operations on sets of rows that are timed where they run (rows.ts). A path under /core or /root runs at the
 * nearest site of that tier.
 */
import { type AppContext, defineApp, type EnvOf } from "sojourn";
import { changes, cover, fill, stamp, timed } from "./rows.ts";

type Env = EnvOf;

async function fetch(request: Request, env: Env, ctx: AppContext): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  switch (pathname.replace(/^\/(core|root)\//, "/")) {
    case "/hello":
      return new Response("Hello");
    case "/read":
      return new Response(String((await env.kv.get(["one"])).value));
    case "/count": {
      // A counter per session: read, add one, write; on disk before the answer leaves.
      const key = ["counter", ctx.session.id];
      const before = (await env.kv.get<number>(key)).value ?? 0;
      await env.kv.set(key, before + 1);
      return new Response(String(before + 1));
    }
    case "/set":
      await env.kv.set(["one"], 1);
      return new Response("set");
    case "/timed":
      return Response.json(await timed(env.kv, searchParams));
    case "/fill":
      return Response.json(await fill(env.kv, searchParams));
    case "/cover":
      return Response.json(await cover(env.kv, searchParams));
    case "/stamp":
      return Response.json(await stamp(env.kv, searchParams));
    case "/changes":
      return changes(env.kv, searchParams);
    default:
      return new Response("unknown", { status: 404 });
  }
}

export default defineApp({
  name: "load",
  fetch,
  routes: { "/core/*": { at: "core" }, "/root/*": { at: "root" } },
});
