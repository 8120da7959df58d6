/**
 * Guestbook: the smallest useful Sojourn app. A plain Hono app over `env.kv`, as one would write it for
 * `Deno.openKv()`; sessions keep seeing their own entries at whichever site they arrive.
 */
import { contextOf, defineApp, type EnvOf } from "sojourn";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import * as z from "zod";
import { listEntries, sign } from "./entries.ts";
import { page } from "./page.ts";

const http = new Hono<{ Bindings: EnvOf }>();

/** An app sees the same paths under `/guestbook/…` and `guestbook.localhost`; links need what was cut off. */
const prefixOf = (request: Request): string => request.headers.get("x-forwarded-prefix") ?? "";

http.get("/", async (c) => {
  const { site } = contextOf(c);
  const book = await listEntries(c.env.kv, c.req.query("cursor"));
  return c.html(page({ site, prefix: prefixOf(c.req.raw), ...book }));
});

/** The form of the page. */
http.post("/", async (c) => {
  const signed = await sign(c.env.kv, await c.req.parseBody());
  if (!signed.ok) return c.text(signed.problem, 400);
  return c.redirect(`${prefixOf(c.req.raw)}/`, 303);
});

http.get("/entries", async (c) => c.json(await listEntries(c.env.kv, c.req.query("cursor"))));

http.post("/entries", async (c) => {
  const body: unknown = await c.req.json().catch(() => null);
  const signed = await sign(c.env.kv, z.record(z.string(), z.unknown()).catch({}).parse(body));
  return signed.ok ? c.json(signed.entry, 201) : c.json({ problem: signed.problem }, 400);
});

/** One event for each change of the number of entries, wherever it was made. */
http.get("/changes", (c) =>
  streamSSE(c, async (stream) => {
    const changes = c.env.kv.watch<[number]>([["count"]]).getReader();
    stream.onAbort(() => void changes.cancel());
    for (let next = await changes.read(); !next.done; next = await changes.read()) {
      await stream.writeSSE({ data: String(next.value[0].value ?? 0) });
    }
  }));

export default defineApp({ name: "guestbook", fetch: http.fetch });
