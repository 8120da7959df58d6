/** Stateful sessions that send messages to queues; a row for each delivery, which every site shows. */
import { defineApp, type EnvOf, queue, Session, table } from "sojourn";
import * as z from "zod";

const schema = z.object({ name: z.string() });
const resources = {
  tables: {
    handled: table({
      schema: z.object({ name: z.string(), at: z.string(), id: z.string() }),
      key: ["name", "at"],
    }),
  },
  queues: {
    jobs: queue({ schema, f: 1 }),
    tiny: queue({ schema, f: 1, messagesMax: 1 }),
  },
} as const;
type Env = EnvOf<typeof resources, { sender: Sender }>;
type QueueName = keyof typeof resources.queues;

interface Sending {
  readonly queue: QueueName;
  readonly names: readonly string[];
  readonly delayMs: number;
  readonly fails: boolean;
}

export class Sender extends Session<Env> {
  sent = 0;

  async send({ queue, names, delayMs, fails }: Sending): Promise<number> {
    const [first = "", ...others] = names;
    await this.env.queues[queue].send({ name: first }, { delayMs });
    await this.env.queues[queue].sendBatch(others.map((name) => ({ body: { name }, delayMs })));
    this.sent += names.length;
    if (fails) throw new Error("on purpose");
    return this.sent;
  }

  count(): number {
    return this.sent;
  }
}

export default defineApp({
  ...resources,
  sessions: { sender: Sender },
  fetch: async (request, env: Env) => {
    const session = new URL(request.url).searchParams.get("session");
    if (request.method === "PUT") {
      const { queue, name, checks } = await request.json() as {
        queue: QueueName;
        name: string;
        checks: boolean;
      };
      const atomic = env.kv.atomic().set(["written", name], name).send(queue, { name });
      // A check that does not hold: nothing is written, and nothing sent.
      if (checks) atomic.check({ key: ["never"], versionstamp: "0".repeat(20) });
      return Response.json((await atomic.commit()).ok);
    }
    if (request.method === "DELETE") {
      const { name } = await request.json() as { name: string };
      const atomic = env.tables.handled.atomic().put({ name: `row of ${name}`, at: "", id: "" });
      return Response.json((await atomic.send("jobs", { name }).commit()).ok);
    }
    if (request.method === "POST") {
      return Response.json(
        await env.sessions.sender.get(session ?? "").send(await request.json() as Sending),
      );
    }
    if (session !== null) return Response.json(await env.sessions.sender.get(session).count());
    return Response.json((await env.tables.handled.list({ limit: 1000 })).rows.map(({ value }) => value));
  },
  queue: async (batch, env: Env, ctx) => {
    for (const { id, body, attempts } of batch.messages) {
      const { name } = body as z.infer<typeof schema>;
      await env.tables.handled.put({ name, id, at: `${ctx.site} ${attempts} ${crypto.randomUUID()}` });
    }
  },
});
