/** Values for a KV's listeners, sent by requests and by a stateful session, and what became of each: rows of the KV. */
import { defineApp, type EnvOf, type Kv, queue, Session } from "sojourn";
import * as z from "zod";

const sentSchema = z.object({
  name: z.string(),
  /** Deliveries that fail. */
  fails: z.number().default(0),
  /** True: a delivery takes until all such are let go. */
  waits: z.boolean().default(false),
});
const orderSchema = sentSchema.extend({
  options: z.object({
    delay: z.number().optional(),
    backoffSchedule: z.array(z.number()).optional(),
    keysIfUndelivered: z.array(z.array(z.string())).optional(),
  }).default({}),
  /** How a session's handler ends, or what it asks for besides. */
  ends: z.enum(["well", "thrown", "checked"]).default("well"),
});
type Order = z.infer<typeof orderSchema>;

const kv = await Deno.openKv();

/** Resolves once those that wait may end; of each isolate one looks for all. */
let letGo: Promise<void> | undefined;
async function isLetGo(): Promise<void> {
  while ((await kv.get(["before", "let go"])).value === null) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

kv.listenQueue(async (value: unknown) => {
  const { name, fails, waits } = sentSchema.parse(value);
  await kv.set(["found", name], (await kv.get(["before", name])).value ?? "nothing");
  if (waits) await (letGo ??= isLetGo());
  await kv.set(["seen", name, crypto.randomUUID()], value);
  const times = await Array.fromAsync(kv.list({ prefix: ["seen", name] }));
  if (times.length <= fails) throw new Error("on purpose");
});

async function enqueue(kv: Kv, { options, ends: _, ...value }: Order): Promise<string> {
  const told = {
    ...options.delay === undefined ? {} : { delay: options.delay },
    ...options.backoffSchedule === undefined ? {} : { backoffSchedule: options.backoffSchedule },
    ...options.keysIfUndelivered === undefined ? {} : { keysIfUndelivered: options.keysIfUndelivered },
  };
  return (await kv.enqueue(value, told)).versionstamp;
}

const resources = { queues: { others: queue({ schema: sentSchema, f: 1 }) } } as const;
type Env = EnvOf<typeof resources, { sender: Sender }>;

export class Sender extends Session<Env> {
  async send(order: Order): Promise<string> {
    const stamp = await enqueue(this.env.kv, order);
    await this.env.kv.set(["told", order.name], stamp);
    if (order.ends === "thrown") throw new Error("on purpose");
    if (order.ends === "checked") {
      await this.env.kv.atomic().check({ key: ["none"], versionstamp: null }).enqueue(order).commit();
    }
    return stamp;
  }
}

export default defineApp({
  ...resources,
  sessions: { sender: Sender },
  fetch: async (request, env: Env) => {
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === "GET") {
      const prefix = JSON.parse(searchParams.get("prefix") ?? "[]") as string[];
      return Response.json(await Array.fromAsync(env.kv.list({ prefix }), ({ key, value }) => [key, value]));
    }
    if (pathname === "/others") {
      await env.queues.others.send({ name: "x" }, { delayMs: 3_600_000 });
      return new Response("sent", { status: 202 });
    }
    const order = orderSchema.parse(await request.json());
    if (pathname === "/session") return Response.json(await env.sessions.sender.get("one").send(order));
    await env.kv.set(["before", order.name], "what its sender wrote");
    return Response.json(await enqueue(env.kv, order));
  },
});
