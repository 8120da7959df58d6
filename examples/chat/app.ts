/**
 * Chat: rooms that people at different sites talk in. Messages are rows; a WebSocket and a stream of server-sent
 * events both follow them by the table's `watch`, so nobody has to be at the same site, isolate or socket.
 */
import { contextOf, defineApp } from "sojourn";
import { type Context, Hono } from "hono";
import { upgradeWebSocket } from "hono/deno";
import { streamSSE } from "hono/streaming";
import * as z from "zod";
import { type Env, follow, history, resources, ROOM, say } from "./messages.ts";
import { page } from "./page.ts";

type Ctx = Context<{ Bindings: Env }>;

const http = new Hono<{ Bindings: Env }>();

/** An app sees the same paths under `/chat/…` and `chat.localhost`; links need what was cut off. */
const prefixOf = (c: Ctx): string => c.req.header("x-forwarded-prefix") ?? "";
const siteOf = (c: Ctx): string => contextOf(c).site;

http.get("/", (c) => c.redirect(`${prefixOf(c)}/lobby`));

http.use("/:room/*", async (c, next) => {
  if (ROOM.test(c.req.param("room"))) return await next();
  return c.json({ problem: "a room's name is made of a-z, 0-9 and -, at most 40 of them" }, 404);
});

http.get("/:room", (c) => {
  const room = c.req.param("room");
  return c.html(page({ room, site: siteOf(c), prefix: prefixOf(c) }));
});

http.get("/:room/messages", async (c) => c.json(await history(c.env.tables.messages, c.req.param("room"))));

http.post("/:room/messages", async (c) => {
  const draft: unknown = await c.req.json().catch(() => null);
  const said = await say(c.env.tables.messages, { room: c.req.param("room"), site: siteOf(c), draft });
  return said.ok ? c.json(said.message, 201) : c.json({ problem: said.problem }, 400);
});

/** Server-sent events: one for each message. */
http.get("/:room/events", (c) =>
  streamSSE(c, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    for await (const fresh of follow(c.env.tables.messages, c.req.param("room"), gone.signal)) {
      for (const message of fresh) await stream.writeSSE({ id: message.id, data: JSON.stringify(message) });
    }
  }));

const frame = z.string().max(16_384).transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue({ code: "custom", message: "a frame is JSON" });
    return z.NEVER;
  }
});

/** The same over a WebSocket, which also takes messages: `{name, text}` in, `{messages}` or `{problem}` out. */
http.get(
  "/:room/socket",
  upgradeWebSocket((c: Ctx) => {
    const room = c.req.param("room") ?? "";
    const { messages } = c.env.tables;
    const site = siteOf(c);
    const gone = new AbortController();
    let said: Promise<unknown> = Promise.resolve();
    return {
      onOpen: async (_event, socket) => {
        for await (const fresh of follow(messages, room, gone.signal)) {
          socket.send(JSON.stringify({ messages: fresh }));
        }
      },
      onMessage: (event, socket) => {
        const draft = frame.safeParse(event.data).data;
        // One after the other: the second of two must see the first, or they might change places (M1).
        said = said.then(async () => {
          const result = await say(messages, { room, site, draft });
          if (!result.ok) socket.send(JSON.stringify({ problem: result.problem }));
        }).catch(() => socket.close(1011, "the message was not kept"));
      },
      onClose: () => gone.abort(),
    };
  }),
);

export default defineApp({ name: "chat", ...resources, fetch: http.fetch });
