/** Queues in an isolate: what a handler is given and says, what bounds it, and what functions send. */
import assert from "node:assert/strict";
import { encodeValue } from "../../../functions/values/value.ts";
import type { SentMessage } from "../../../functions/vocabulary/queue_sender.ts";
import { type MessageOutcome, runQueue } from "../../../runtime/gateway/queue_run.ts";
import type { OwnRunServices } from "../../../runtime/gateway/own_run.ts";
import type { Prepared } from "../../../runtime/gateway/app_runner.ts";
import type { LiveVersion } from "../../../runtime/deploy/mod.ts";
import { type IsolateAnswer, IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "./apps.ts";

const SENT_MS = Date.UTC(2026, 10, 21, 3);
const APP = appOf(`
  const schema = { "~standard": { version: 1, vendor: "test", validate: (value) =>
    typeof value === "string" ? { value: value.trim() } : { issues: [{ message: "no text" }] } } };
  export default {
    queues: { jobs: { kind: "queue", schema, f: 1, maxAttempts: 5 } },
    async fetch(request, env) {
      const told = [];
      const { jobs } = env.queues;
      await jobs.send(" one ", { id: "1", delayMs: 5, ttlMs: 10 });
      await jobs.sendBatch([{ body: "two" }, { body: "three", id: "3" }]);
      await jobs.sendBatch([]);
      for (const wrong of [() => jobs.send(1), () => jobs.send("a", { id: "" }), () => jobs.send("full")]) {
        await wrong().catch(({ code, message, detail }) => told.push([code, message, detail]));
      }
      return Response.json(told);
    },
    async queue(batch, env, ctx) {
      const [first, second] = batch.messages;
      console.log(JSON.stringify([batch.queue, ctx.site, batch.messages.map(({ id, body, attempts, timestamp }) =>
        [id, body, attempts, timestamp.getTime()])]));
      switch (first.body) {
        case "says":
          first.ack(), first.retry(), second.retry({ delayMs: 7 });
          return;
        case "throws":
          second.ack();
          throw new RangeError("not secret");
        case "waits":
          ctx.waitUntil(new Promise((_, reject) => setTimeout(() => reject(new Error("too late")), 5)));
          return;
        case "loops":
          second.ack();
          await new Promise((resolve) => setTimeout(resolve, 20));
          for (;;);
        case "hangs":
          return await new Promise(() => {});
      }
    },
  };`);

/** Services of a run without a site: all is on disk when it is told. */
function servicesOf(pool: IsolatePool, lines: string[], gate = () => Promise.resolve()): OwnRunServices {
  const session = { id: new Uint8Array(16), highest: 0, durable: gate };
  const said = {
    ...{
      site: "edge-1",
      isolates: pool,
      nowMs: Date.now,
      redact: (_: string, text: string) => text.replaceAll("secret", "***"),
    },
    limits: { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 },
    replica: { attach: () => session, durable: () => Promise.resolve() },
    appLog: ({ text }: { text: string }) => void lines.push(text),
    metrics: { invoked: () => {} },
  };
  return said as unknown as OwnRunServices;
}

async function work(
  pool: IsolatePool,
  app: ReturnType<typeof appOf>,
  bodies: readonly string[],
  gate?: () => Promise<void>,
) {
  const lines: string[] = [], early: [number, MessageOutcome][] = [];
  const prepared = { app, lane: () => null, highest: 0, strayLog: () => {} } as unknown as Prepared;
  const version = { app: "a", version: "v", manifest: { sessions: {} } } as unknown as LiveVersion;
  const outcomes = await runQueue(servicesOf(pool, lines, gate), prepared, version, {
    queue: "jobs",
    messages: bodies.map((body, place) => ({
      ...{ id: `m${place}`, sentMs: SENT_MS, attempt: 1 + place, format: "value" },
      body: encodeValue(body),
    })),
    said: (place, outcome) => void early.push([place, outcome]),
  });
  return { outcomes, lines, early };
}

Deno.test("a queue handler is given messages, and what it says of each holds", async (t) => {
  const pool = new IsolatePool({ spares: 0 });
  const ack = { kind: "ack" } as const;
  try {
    await t.step("it is given all of them, and returning acknowledges", async () => {
      const { outcomes, lines } = await work(pool, APP, ["a", "b"]);
      assert.deepEqual(JSON.parse(lines[0] ?? ""), [
        ...["jobs", "edge-1"],
        [["m0", "a", 1, SENT_MS], ["m1", "b", 2, SENT_MS]],
      ]);
      assert.deepEqual(outcomes, [ack, ack]);
    });
    await t.step(
      "what is said first of a message holds, and is told at once (inside/queues.ts S2)",
      async () => {
        const { outcomes, early } = await work(pool, APP, ["says", "x", "y"]);
        const retry = { kind: "retry", delayMs: 7 } as const;
        assert.deepEqual(outcomes, [ack, retry, ack]);
        assert.deepEqual(early, [[0, ack], [1, retry]]);
      },
    );
    await t.step(
      "what it throws has all others come again, without secrets (QR2, own_run.ts OWR2)",
      async () => {
        const { outcomes, lines } = await work(pool, APP, ["throws", "x", "y"]);
        const failed = { kind: "failed", error: "not ***" };
        assert.deepEqual(outcomes, [failed, ack, failed]);
        assert.match(lines.at(-1) ?? "", /RangeError: not \*\*\*/);
      },
    );
    await t.step("waitUntil work is part of it", async () => {
      assert.deepEqual((await work(pool, APP, ["waits"])).outcomes, [{ kind: "failed", error: "too late" }]);
    });
    await t.step("one that loops is killed, and what it had said stands", async () => {
      const { outcomes } = await work(pool, {
        ...APP,
        version: "loops",
        limits: { ...APP.limits, cpuMs: 300 },
      }, [
        ...["loops", "x"],
      ]);
      assert.equal(outcomes[0]?.kind, "failed");
      assert.deepEqual(outcomes[1], ack);
    });
    await t.step("one that never ends is given up", async () => {
      const app = { ...APP, version: "hangs", limits: { ...APP.limits, wallMs: 300 } };
      const { outcomes } = await work(pool, app, ["hangs"]);
      assert.match(JSON.stringify(outcomes), /the handler did not end in 300 ms/);
    });
    await t.step(
      "what it says counts when what it wrote is on disk, and not before (QR1, own_run.ts OWR1)",
      async () => {
        let gates = 0;
        const { outcomes, early } = await work(pool, APP, ["says", "x"], () => {
          return ++gates === 1 ? Promise.reject(new Error("the disk failed")) : Promise.resolve();
        });
        assert.deepEqual(early.map(([place]) => place), [1]);
        assert.equal(outcomes[0]?.kind, "failed");
      },
    );
    await t.step("an app without the handler says so", async () => {
      const { outcomes } = await work(pool, appOf("export default { fetch: () => new Response() };"), ["a"]);
      assert.match(JSON.stringify(outcomes), /the app has no queue handler/);
    });
    await t.step("messages that no isolate was given were not tried", async () => {
      const closed = new IsolatePool({ spares: 0 });
      await closed.close();
      assert.deepEqual((await work(closed, APP, ["a"])).outcomes, [{ kind: "release" }]);
    });
  } finally {
    await pool.close();
  }
});

// request_queue.ts RQ1, RQ2; queue_sends.ts QS1
Deno.test("what a function sends goes to its site at once, after its gate, and what is refused does not", async () => {
  const pool = new IsolatePool({ spares: 0 });
  const sent: [string, readonly SentMessage[]][] = [];
  let gates = 0;
  const call = callOf("/", {
    gate: () => {
      gates++;
      return Promise.resolve();
    },
    queues: {
      send: (queue, messages) => {
        if (messages[0]?.body.length === encodeValue("full").length && messages[0].id === undefined) {
          const why = Object.assign(new Error("no room"), { code: "queue_full", detail: { failed: [0] } });
          return Promise.reject(why);
        }
        assert.equal(gates, sent.length + 1);
        sent.push([queue, messages]);
        return Promise.resolve();
      },
    },
  });
  try {
    const answer: IsolateAnswer = await pool.call(APP, call);
    assert(answer.kind === "response", JSON.stringify(answer));
    assert.deepEqual(await answer.response.json(), [
      ["message_invalid", "a message to the queue jobs does not match its schema: no text", {
        issues: [{ path: "", message: "no text" }],
        queue: "jobs",
      }],
      ["message_invalid", 'cannot send to the queue jobs with the id "": expected 1 to 200 bytes of UTF-8', {
        queue: "jobs",
      }],
      ["queue_full", "no room", { failed: [0] }],
    ]);
    assert.deepEqual(sent, [
      ["jobs", [{ body: encodeValue("one"), id: "1", delayMs: 5, ttlMs: 10 }]],
      ["jobs", [{ body: encodeValue("two") }, { body: encodeValue("three"), id: "3" }]],
    ]);
    // Where nobody takes them.
    const refused = await pool.call(APP, callOf("/"));
    assert(refused.kind === "error" && refused.code === "not_available", JSON.stringify(refused));
  } finally {
    await pool.close();
  }
});
