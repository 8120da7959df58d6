/**
 * The program that docs/app-api.md promises to accept: every part of the app API in one module. It must type-check
 * as it stands; env_test.ts evaluates it.
 */
// deno-lint-ignore-file require-await no-unused-vars -- the queue handler shows its full signature
import { defineApp, type EnvOf, type From, map, queue, Session, table } from "sojourn";
import { Hono } from "hono";
import { z } from "zod";
const resources = {
  tables: {
    users: table({ schema: z.object({ name: z.string(), hash: z.string() }), key: ["name"], at: "root" }), // no replica below
    orders: table({
      schema: z.object({ by: z.string(), id: z.string(), drink: z.string(), at: z.number() }),
      key: ["by", "id"],
      indexes: { newest: ["by", "at"] },
      consistency: "session",
    }),
  },
  queues: { sms: queue({ schema: z.object({ to: z.string(), text: z.string() }), f: 1, maxAttempts: 5 }) },
  secrets: { PEPPER: { at: "root" }, SMS_KEY: {} }, // values only by `sojourn secrets set`
  vars: { CURRENCY: "EUR" },
} as const;
type Env = EnvOf<typeof resources, { card: Card }>;
export class Card extends Session<Env> { // a stateful session, addressed by id
  stamps = map<string, number>(); // tracked; plain fields are checkpointed whole
  stamp(drink: string): number { // RPC
    this.stamps.set(drink, (this.stamps.get(drink) ?? 0) + 1);
    this.setTimer("idle", 60_000);
    return this.stamps.get(drink) ?? 0;
  }
  override onMessage(message: string | Uint8Array, from: From) {
    from.send(`${this.stamp(String(message))}`);
  }
  override onTimer(name: string) {
    if (name === "idle") this.end();
  }
  override fetch() {
    return Response.json(Object.fromEntries(this.stamps));
  }
}
const http = new Hono<{ Bindings: Env }>();
http.post("/login/:name", async (c) =>
  c.json({ // runs at the root, see `routes`
    ok: (await c.env.tables.users.get([c.req.param("name")]))?.value.hash ===
      await c.req.text() + c.env.secrets.PEPPER,
  }));
http.post("/orders", async (c) => {
  const order = {
    id: crypto.randomUUID(),
    at: Date.now(),
    ...await c.req.json<{ by: string; drink: string }>(),
  };
  await c.env.tables.orders.put(order); // a bad row throws "row_invalid"; uncaught, it is the 422 problem
  await c.env.kv.set(["last", order.by], order.id, { expireIn: 3_600_000 });
  const n = await c.env.sessions.card.get(order.by).stamp(order.drink);
  await c.env.queues.sms.send({ to: order.by, text: `stamp ${n}` }, { id: order.id });
  return c.json({ ...order, n }, 201);
});
http.get("/orders/:by", async (c) =>
  // { rows: { key, value, versionstamp }[], cursor }; `for await` works too
  c.json(
    await c.env.tables.orders.list({
      index: "newest",
      prefix: [c.req.param("by")],
      reverse: true,
      limit: 20,
    }),
  ));
http.all("/card/:id", (c) => c.env.sessions.card.get(c.req.param("id")).fetch(c.req.raw)); // HTTP, or upgrade → onMessage
export default defineApp({
  ...resources,
  sessions: { card: Card },
  fetch: http.fetch,
  assets: "./public",
  routes: { "/login/*": { at: "root" } },
  cron: { nightly: "0 3 * * *" },
  fetchHosts: ["api.sms.example"],
  scheduled: (event, env: Env) => env.kv.set(["ran", event.name], event.scheduledTime),
  queue: async (batch, env: Env) => {
    for (const m of batch.messages) m.ack(); // or m.retry({ delayMs })
  },
});
