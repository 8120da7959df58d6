/** Messages of all kinds, and what became of each: a row per delivery, which every site shows. */
import { defineApp, type EnvOf, queue, table } from "sojourn";
import * as z from "zod";

const job = z.object({
  name: z.string(),
  /** What the handler does with it. */
  does: z.enum(["ack", "says ack", "retry", "throw", "throw once"]).default("ack"),
  /** The site where nobody ends with it. */
  hangsAt: z.string().default(""),
  filling: z.string().default(""),
});
const resources = {
  tables: {
    deliveries: table({
      schema: z.object({
        name: z.string(),
        at: z.string(),
        attempt: z.number(),
        batch: z.number(),
        lateMs: z.number(),
      }),
      key: ["name", "at"],
    }),
  },
  queues: {
    jobs: queue({ schema: job, f: 1, maxAttempts: 3, batchMax: 5, batchWaitMs: 20, retryMinMs: 100 }),
    near: queue({ schema: job, f: 0 }),
    tiny: queue({ schema: job, messagesMax: 1 }),
    wide: queue({ schema: job, f: 7 }),
  },
} as const;
type Env = EnvOf<typeof resources>;
type Sent = {
  queue: keyof typeof resources.queues;
  messages: Parameters<Env["queues"]["jobs"]["sendBatch"]>[0];
};

export default defineApp({
  ...resources,
  fetch: async (request, env: Env) => {
    if (request.method === "GET") {
      return Response.json(
        (await env.tables.deliveries.list({ limit: 1000 })).rows.map(({ value }) => value),
      );
    }
    const { queue, messages } = await request.json() as Sent;
    const all = [...messages], [first] = all;
    if (all.length === 1 && first !== undefined) {
      const { body, ...options } = first;
      await env.queues[queue].send(body, options);
    } else await env.queues[queue].sendBatch(all);
    return new Response("sent", { status: 202 });
  },
  queue: async (batch, env: Env, ctx) => {
    let fails = false;
    for (const message of batch.messages) {
      const { name, does, hangsAt } = message.body as z.infer<typeof job>;
      if (hangsAt === ctx.site) await new Promise(() => {});
      await env.tables.deliveries.put({
        name,
        at: `${message.attempts} ${ctx.site} ${crypto.randomUUID()}`,
        attempt: message.attempts,
        batch: batch.messages.length,
        lateMs: Date.now() - message.timestamp.getTime(),
      });
      if (does === "says ack") message.ack();
      else if (does === "retry" && message.attempts < 3) message.retry({ delayMs: 50 });
      else if (does === "throw" || (does === "throw once" && message.attempts === 1)) fails = true;
    }
    if (fails) throw new Error("on purpose");
  },
});
