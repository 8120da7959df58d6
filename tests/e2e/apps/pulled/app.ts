/** Queues that programs outside send to and pull from; of one of them the app's handler gets the messages. */
import { defineApp, type EnvOf, queue, table } from "sojourn";
import * as z from "zod";

const resources = {
  tables: {
    handled: table({ schema: z.object({ id: z.string(), body: z.string() }), key: ["id"] }),
  },
  queues: {
    calls: queue({ schema: z.any(), pull: true, maxAttempts: 3, retryMinMs: 100 }),
    tiny: queue({ schema: z.any(), pull: true, messagesMax: 1 }),
    alone: queue({ schema: z.any(), pull: true, f: 0 }),
    own: queue({ schema: z.any() }),
  },
} as const;
type Env = EnvOf<typeof resources>;

export default defineApp({
  ...resources,
  fetch: async (request, env: Env) => {
    if (request.method === "GET") {
      return Response.json((await env.tables.handled.list({ limit: 100 })).rows.map(({ value }) => value));
    }
    const sent = await request.json() as { name: string };
    await env.queues.calls.send({ ...sent, bytes: new Uint8Array([1, 2]), big: 3n });
    return new Response("sent", { status: 202 });
  },
  queue: async (batch, env: Env) => {
    for (const { id, body } of batch.messages) {
      const shown = body instanceof Uint8Array ? `bytes ${body.join()}` : JSON.stringify(body);
      await env.tables.handled.put({ id, body: shown });
    }
  },
});
