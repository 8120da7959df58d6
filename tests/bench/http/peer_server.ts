/**
 * The peers that are Deno programs: one handler each, the same work as tests/bench/apps/load does. Prints its
 * port, and ends with its standard input.
 */
import { Hono } from "hono";

const [kind = "bare", file = ""] = Deno.args;

async function handler(): Promise<(request: Request) => Response | Promise<Response>> {
  if (kind === "bare") return () => new Response("Hello");
  if (kind === "hono") {
    const app = new Hono();
    app.get("/hello", (c) => c.text("Hello"));
    return app.fetch;
  }
  const kv = await Deno.openKv(file);
  await kv.set(["one"], 1);
  return async (request) => {
    const url = new URL(request.url);
    if (url.pathname === "/read") return new Response(String((await kv.get(["one"])).value));
    const key = ["counter", url.searchParams.get("s") ?? ""];
    const before = (await kv.get<number>(key)).value ?? 0;
    await kv.set(key, before + 1);
    return new Response(String(before + 1));
  };
}

const serve = await handler();
const server = Deno.serve(
  { port: 0, hostname: "127.0.0.1", onListen: ({ port }) => console.log(port) },
  serve,
);
for await (const _ of Deno.stdin.readable) { /* until the one that measures goes */ }
await server.shutdown();
