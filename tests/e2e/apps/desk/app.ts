/** Desks at which clients sit with their WebSockets, and all that they may do there. */
import { defineApp, type EnvOf, type From, map, Session, value } from "sojourn";
import { Hono } from "hono";

type Env = EnvOf<Record<never, never>, { desk: Desk; deaf: Deaf }>;

/** Tells all what each of them says, numbered. */
export class Desk extends Session<Env> {
  said = value(0);
  opened = value(0);
  closed = value(0);
  /** By client: the number of its last message. */
  last = map<string, number>();

  override onOpen(from: From) {
    this.opened.set(this.opened.get() + 1);
    from.send(JSON.stringify({ kind: "hello", id: from.id, said: this.said.get() }));
  }

  override onMessage(message: string | Uint8Array, from: From) {
    if (typeof message !== "string") return from.send(message.toReversed());
    if (message === "throw") {
      this.said.set(1_000_000);
      throw new Error("as it was asked to");
    }
    if (message === "loop") { for (;;); }
    if (message === "away") return from.close(4001, "as you wish");
    if (message === "tick") return this.setTimer("tick", 50);
    if (message === "over") return this.end();
    const number = Number(message);
    const before = this.last.get(from.id) ?? 0;
    this.last.set(from.id, number);
    this.said.set(this.said.get() + 1);
    const said = { kind: "said", from: from.id, number, follows: before, total: this.said.get() };
    for (const client of this.clients) client.send(JSON.stringify(said));
  }

  override onTimer(name: string) {
    for (const client of this.clients) client.send(JSON.stringify({ kind: name }));
  }

  override onClose() {
    this.closed.set(this.closed.get() + 1);
  }

  counts() {
    return { said: this.said.get(), opened: this.opened.get(), closed: this.closed.get() };
  }

  /** What a session that hands over a WebSocket is told. */
  async handOver(url: string): Promise<string> {
    try {
      await this.env.sessions.desk.get("other").fetch(url, { headers: { upgrade: "websocket" } });
      return "handed over";
    } catch (error) {
      return (error as { code: string }).code;
    }
  }
}

/** Takes no messages. */
export class Deaf extends Session<Env> {}

const http = new Hono<{ Bindings: Env }>();
http.get("/deaf", (c) => c.env.sessions.deaf.get("a").fetch(c.req.raw));
http.get("/:id", (c) => c.env.sessions.desk.get(c.req.param("id")).fetch(c.req.raw));
http.get("/:id/counts", async (c) => c.json(await c.env.sessions.desk.get(c.req.param("id")).counts()));
http.get(
  "/:id/hand",
  async (c) => c.text(await c.env.sessions.desk.get(c.req.param("id")).handOver(c.req.url)),
);

export default defineApp({ sessions: { desk: Desk, deaf: Deaf }, fetch: http.fetch });
