/** An app that does one thing a path: what the end-to-end tests look at. */
import { defineApp, type EnvOf, table } from "sojourn";
import { Hono } from "hono";
import * as z from "zod";

const resources = {
  tables: {
    notes: table({ schema: z.object({ id: z.string(), text: z.string() }), key: ["id"] }),
  },
  vars: { GREETING: "hello" },
} as const;
type Env = EnvOf<typeof resources>;

const http = new Hono<{ Bindings: Env }>();
http.get("/", (c) => c.text("probe"));
http.get(
  "/where",
  (c) =>
    c.json({
      url: c.req.url,
      prefix: c.req.header("x-forwarded-prefix") ?? null,
      cookie: c.req.header("cookie") ?? null,
      token: c.req.header("sojourn-session") ?? null,
    }),
);
http.get("/root/where", (c) => c.json({ url: c.req.url }));
http.put("/root/notes/:id", async (c) => {
  await c.env.tables.notes.put({ id: c.req.param("id"), text: await c.req.text() });
  return c.text("stored", 201);
});
http.post("/root/echo", (c) => new Response(c.req.raw.body));
http.put("/notes/:id", async (c) => {
  await c.env.tables.notes.put({ id: c.req.param("id"), text: await c.req.text() });
  return c.text("stored", 201);
});
http.get("/notes/:id", async (c) => {
  const row = await c.env.tables.notes.get([c.req.param("id")]);
  return row === null ? c.text("absent", 404) : c.text(row.value.text);
});
/** Many at once, all with one text. */
http.post("/many-notes", async (c) => {
  const { ids, text } = await c.req.json<{ ids: string[]; text: string }>();
  const notes = c.env.tables.notes.atomic();
  for (const id of ids) notes.put({ id, text });
  await notes.commit();
  return c.text("stored", 201);
});
/** Those whose ids begin as is said: how many have each text. */
http.get("/many-notes/:start", async (c) => {
  const start = c.req.param("start"), texts: Record<string, number> = {};
  for await (const { value } of c.env.tables.notes.list({ start: [start], end: [`${start}~`] })) {
    texts[value.text] = (texts[value.text] ?? 0) + 1;
  }
  return c.json(texts);
});
http.post("/bad-note", async (c) => {
  await c.env.tables.notes.put({ id: 7 } as unknown as { id: string; text: string });
  return c.text("stored");
});
http.post("/large-value", async (c) => {
  await c.env.kv.set(["large"], new Uint8Array(1024 * 1024 + 1));
  return c.text("stored");
});
http.post("/echo", (c) => new Response(c.req.raw.body));
http.post("/length", async (c) => c.text(String((await c.req.arrayBuffer()).byteLength)));
http.get("/events", () => events());
http.get("/root/events", () => events());
http.get("/socket", (c) => socket(c.req.raw));
http.get("/root/socket", (c) => socket(c.req.raw));
http.get("/later", (c) => {
  c.executionCtx.waitUntil(
    new Promise<void>((resolve) => setTimeout(resolve, 100)).then(() => c.env.kv.set(["later"], "done")).then(
      () => {},
    ),
  );
  return c.text("begun");
});
http.get("/forever", (c) => forever(() => c.env.kv.set(["cancelled"], "forever")));
http.get("/root/forever", (c) => forever(() => c.env.kv.set(["cancelled"], "root")));
http.get("/slow", (c) => untilGone(c.req.raw.signal, (word) => c.env.kv.set(["gone"], `slow${word}`)));
http.get("/root/slow", (c) => untilGone(c.req.raw.signal, (word) => c.env.kv.set(["gone"], `root${word}`)));
http.get("/kv/:key", async (c) => c.json({ value: (await c.env.kv.get([c.req.param("key")])).value }));
/** Three events, one after the other. */
function events(): Response {
  let n = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      controller.enqueue(new TextEncoder().encode(`data: ${++n}\n\n`));
      if (n === 3) controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** A stream that ends only when nobody reads it any more. */
function forever(cancelled: () => Promise<unknown>): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      controller.enqueue(new TextEncoder().encode("data: on\n\n"));
    },
    cancel: async () => {
      await cancelled();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** An answer that waits for its client to leave, and notes both. */
async function untilGone(signal: AbortSignal, note: (word: string) => Promise<unknown>): Promise<Response> {
  const gone = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  await note(" waits");
  await gone;
  await note("");
  return new Response("nobody reads this");
}

/** Says back what it hears. */
function socket(request: Request): Response {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.binaryType = "arraybuffer";
  socket.onmessage = (event) => {
    if (event.data === "bye") socket.close(4001, "as asked");
    else socket.send(typeof event.data === "string" ? `heard ${event.data}` : event.data);
  };
  return response;
}

/** Hono answers what its handlers throw by itself; this reaches the platform. */
const fetch: typeof http.fetch = (request, env, ctx) => {
  const { pathname, searchParams } = new URL(request.url);
  const code = searchParams.get("code");
  if (pathname === "/throw") throw Object.assign(new Error("on purpose"), code === null ? {} : { code });
  return http.fetch(request, env, ctx);
};

export default defineApp({ ...resources, fetch, routes: { "/root/*": { at: "root" } } });
