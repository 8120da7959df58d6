/** What the benchmarks ask of Sojourn: the same handlers as the peers beside it (tests/bench/http/). */
import { type AppContext, defineApp, type EnvOf } from "sojourn";

type Env = EnvOf;

async function fetch(request: Request, env: Env, ctx: AppContext): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  switch (pathname) {
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
      return Response.json(await timed(env, searchParams));
    default:
      return new Response("unknown", { status: 404 });
  }
}

/** How long one operation takes inside the function, milliseconds. */
async function timed(env: Env, query: URLSearchParams): Promise<{ ms: number; found: boolean }> {
  const key = ["rows", query.get("key") ?? ""];
  const value = "x".repeat(Number(query.get("bytes") ?? 1024));
  const start = performance.now();
  if (query.get("op") === "put") {
    await env.kv.set(key, value);
    return { ms: performance.now() - start, found: true };
  }
  const { versionstamp } = await env.kv.get(key);
  return { ms: performance.now() - start, found: versionstamp !== null };
}

export default defineApp({ name: "load", fetch });
