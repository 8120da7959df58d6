/** A till that charges by an HTTP server which knows nothing of Sojourn: the end-to-end test of origins runs that server. */
import { defineApp, type EnvOf, Session } from "sojourn";
import { Hono } from "hono";

type Env = EnvOf<Record<never, never>, { till: Till }>;

/** The test puts its server's port here. */
const ORIGIN = "http://127.0.0.1:9";

export class Till extends Session<Env> {
  static origin = ORIGIN;
  receipts: string[] = [];

  async charge(cents: number): Promise<readonly string[]> {
    const answer = await fetch(`${ORIGIN}/charges`, { method: "POST", body: `${cents}` });
    this.receipts.push(await answer.text());
    return this.receipts;
  }

  async elsewhere(url: string): Promise<number> {
    return (await fetch(url)).status;
  }
}

const http = new Hono<{ Bindings: Env }>();
http.post(
  "/:till/charges",
  async (c) => c.json(await c.env.sessions.till.get(c.req.param("till")).charge(Number(await c.req.text()))),
);
http.post(
  "/:till/elsewhere",
  async (c) => c.json(await c.env.sessions.till.get(c.req.param("till")).elsewhere(await c.req.text())),
);

export default defineApp({ name: "till", sessions: { till: Till }, fetch: http.fetch });
