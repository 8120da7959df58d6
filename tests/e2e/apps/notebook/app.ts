/** A notebook for clients that move: lines of a stateful session, over HTTP and WebSockets, and a note in KV. */
import { defineApp, type EnvOf, type From, list, Session } from "sojourn";
import { Hono } from "hono";

type Env = EnvOf<Record<never, never>, { notebook: Notebook }>;

export class Notebook extends Session<Env> {
  lines = list<string>();

  add(line: string): number {
    this.lines.push(line);
    return this.lines.length;
  }

  override onMessage(message: string | Uint8Array, from: From) {
    if (message === "throw") throw new Error("as it was asked to");
    from.send(JSON.stringify({ number: this.add(String(message)), line: message, id: from.id }));
  }

  override fetch(): Response {
    return Response.json([...this.lines]);
  }
}

const http = new Hono<{ Bindings: Env }>();
http.put("/note", async (c) => {
  await c.env.kv.set(["note"], await c.req.text());
  return c.text("kept");
});
http.get("/note", async (c) => c.text(`${(await c.env.kv.get<string>(["note"])).value ?? ""}`));
http.post(
  "/lines/:id",
  async (c) => c.text(`${await c.env.sessions.notebook.get(c.req.param("id")).add(await c.req.text())}`),
);
http.get("/lines/:id", (c) => c.env.sessions.notebook.get(c.req.param("id")).fetch(c.req.raw));

export default defineApp({ sessions: { notebook: Notebook }, fetch: http.fetch, assets: "./public" });
