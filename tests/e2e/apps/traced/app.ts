/** An app whose requests are recorded: it says something, keeps something, and asks somebody else. */
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { defineApp, type EnvOf, table } from "sojourn";
import { Hono } from "hono";
import * as z from "zod";

const resources = {
  tables: { notes: table({ schema: z.object({ id: z.string(), text: z.string() }), key: ["id"] }) },
  secrets: { KEY: {} },
} as const;
type Env = EnvOf<typeof resources>;

const http = new Hono<{ Bindings: Env }>();
http.get("/", (c) => c.text("traced"));
http.get("/root/say", (c) => {
  console.log("said at the root");
  return c.text("said");
});
http.put("/notes/:id", async (c) => {
  await c.env.tables.notes.put({ id: c.req.param("id"), text: await c.req.text() });
  return c.text("stored", 201);
});
http.get("/notes/:id", async (c) => {
  const row = await c.env.tables.notes.get([c.req.param("id")]);
  return row === null ? c.text("absent", 404) : c.text(row.value.text);
});
http.get("/ask/:port", async (c) => {
  const answer = await fetch(`http://127.0.0.1:${c.req.param("port")}/there?key=hidden-query`);
  return c.text(await answer.text());
});

http.get("/has-key", (c) => c.text(`${c.env.secrets.KEY.length}`));

/** Spans of its own, by the API that libraries use. */
http.get(
  "/work/:port",
  (c) =>
    trace.getTracer("traced").startActiveSpan("outer", { attributes: { step: 1 } }, async (outer) => {
      const inner = trace.getTracer("traced").startSpan("inner", { kind: SpanKind.CLIENT });
      inner.setStatus({ code: SpanStatusCode.ERROR });
      inner.recordException(new Error(`refused: ${c.env.secrets.KEY}`));
      inner.end();
      const answer = await fetch(`http://127.0.0.1:${c.req.param("port")}/`);
      await answer.text();
      const carrier: Record<string, string> = {};
      propagation.inject(context.active(), carrier);
      outer.end();
      return c.json({ carrier, recording: inner.spanContext(), seen: trace.getActiveSpan() === outer });
    }),
);

/** Hono answers what its handlers throw by itself; this reaches the platform. */
const handle: typeof http.fetch = (request, env, ctx) => {
  if (new URL(request.url).pathname === "/throw") throw new Error("hidden-message");
  return http.fetch(request, env, ctx);
};

export default defineApp({
  ...resources,
  fetch: handle,
  routes: { "/root/*": { at: "root" } },
  fetchHosts: ["127.0.0.1"],
  cron: { nightly: "0 3 * * *" },
  scheduled: async (_event, env: Env) => {
    trace.getTracer("traced").startSpan("inside").end();
    await env.kv.set(["ran"], 1);
  },
});
