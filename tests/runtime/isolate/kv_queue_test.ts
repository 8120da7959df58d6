/** The queue of a KV in an isolate: who listens is in the manifest, and is given what the site has. */
import assert from "node:assert/strict";
import type { LiveVersion } from "../../../runtime/deploy/mod.ts";
import type { Prepared } from "../../../runtime/gateway/app_runner.ts";
import type { OwnRunServices } from "../../../runtime/gateway/own_run.ts";
import { runQueue } from "../../../runtime/gateway/queue_run.ts";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { decodeKvMessage, KV_QUEUE } from "../../../functions/queues/kv_queue.ts";
import { decodeValue, encodeValue } from "../../../functions/values/value.ts";
import type { QueuedMessage } from "../../../functions/vocabulary/queue_sender.ts";
import type { Check, CommitResult, Mutation } from "../../../functions/vocabulary/store_client.ts";
import { appOf, callOf, MemoryStore } from "./apps.ts";

/** A program in Deno's style: no default export, and no word of a queue but its listeners. */
const APP = appOf(`
  const kv = await Deno.openKv(), other = await Deno.openKv(), closed = await Deno.openKv();
  kv.listenQueue(async (value) => {
    if (value === "throws") throw new RangeError("on purpose");
    await kv.atomic().set(["seen"], value).enqueue("next", { delay: 5 }).commit();
    console.log("first", JSON.stringify(value));
  });
  other.listenQueue((value) => console.log("second", JSON.stringify(value)));
  const ends = closed.listenQueue(() => console.log("closed")).then(() => "ended");
  closed.close();
  const early = await (async () => await kv.enqueue("too early"))().catch(({ code }) => code);
  Deno.serve(async () => Response.json([
    early,
    await ends,
    await kv.listenQueue(() => {}).catch(({ code }) => code),
    (await kv.enqueue({ a: 1 }, { keysIfUndelivered: [["lost"]] })).ok,
    kv instanceof Deno.Kv,
  ]));`);

/** A store that keeps what is sent with its writes. */
class SendingStore extends MemoryStore {
  readonly sent: QueuedMessage[] = [];

  override async commit(
    checks: readonly Check[],
    mutations: readonly Mutation[],
    sends: readonly QueuedMessage[] = [],
  ): Promise<CommitResult> {
    this.sent.push(...sends);
    return await super.commit(checks, mutations);
  }
}

async function handled(pool: IsolatePool, value: unknown) {
  const lines: string[] = [], written: unknown[] = [];
  const write = (mutations: readonly unknown[]) => {
    written.push(...mutations);
    return Promise.resolve({ ok: true, version: { clock: 1, replica: 1 } });
  };
  const session = { id: new Uint8Array(16), highest: 0, durable: () => Promise.resolve(), write };
  const services = {
    ...{ site: "edge-1", isolates: pool, nowMs: Date.now, redact: (_: string, text: string) => text },
    limits: { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 },
    replica: { attach: () => session, durable: () => Promise.resolve() },
    outbox: {
      outgoing: (_: string, messages: readonly QueuedMessage[]) => ({
        mutations: messages.map(({ queue, delayMs }) => ({ queue, delayMs })),
        written: () => {},
      }),
    },
    appLog: ({ text }: { text: string }) => void lines.push(text),
    metrics: { invoked: () => {} },
  } as unknown as OwnRunServices;
  const prepared = {
    app: APP,
    space: { app: "", root: "" },
    lane: () => null,
    highest: 0,
    strayLog: () => {},
  };
  const version = { app: "a", version: "v", manifest: { sessions: {} } } as unknown as LiveVersion;
  const [outcome] = await runQueue(services, prepared as unknown as Prepared, version, {
    queue: KV_QUEUE,
    messages: [{ id: "m", sentMs: 0, attempt: 1, format: "value", body: encodeValue(value) }],
    said: () => {},
  });
  return { outcome, lines, written };
}

Deno.test("a program that listens to its KV's queue says so in its manifest, and is given what was enqueued (KR1, KR2)", async (t) => {
  const pool = new IsolatePool({ spares: 0 });
  try {
    await t.step("its manifest names the listener beside its handlers", async () => {
      for (
        const [code, handlers] of [
          [new TextDecoder().decode(await APP.bundle()), ["fetch", "listenQueue"]],
          [`(await Deno.openKv()).listenQueue(() => {});`, ["listenQueue"]],
          [`(await Deno.openKv()).listenQueue(() => {}); export default { queue() {} };`, [
            "queue",
            "listenQueue",
          ]],
        ] as const
      ) {
        const found = await pool.evaluate(new TextEncoder().encode(code), { vars: {} });
        if (found.kind === "error") throw new Error(found.message);
        assert.deepEqual((found.manifest as { handlers: string[] }).handlers, handlers);
      }
    });
    await t.step("a request enqueues, and adds no listener", async () => {
      const store = new SendingStore();
      const answer = await pool.call(APP, callOf("/", { store }));
      if (answer.kind !== "response") throw new Error(JSON.stringify(answer));
      assert.deepEqual(await answer.response.json(), ["no_request", "ended", "not_available", true, true]);
      const [sent] = store.sent;
      const { value, keys } = decodeKvMessage(sent?.body ?? new Uint8Array());
      assert.deepEqual([sent?.queue, decodeValue(value), keys.length], [KV_QUEUE, { a: 1 }, 1]);
    });
    await t.step(
      "a value is handled by one listener, in a run of its own that reads and writes",
      async () => {
        const first = await handled(pool, { b: 2 }), second = await handled(pool, "two");
        assert.deepEqual([first.outcome, first.lines], [{ kind: "ack" }, [`first {"b":2}`]]);
        assert.deepEqual(first.written.at(-1), { queue: KV_QUEUE, delayMs: 5 });
        assert.deepEqual([second.outcome, second.lines], [{ kind: "ack" }, [`second "two"`]]);
      },
    );
    await t.step("a listener that throws has failed", async () => {
      const { outcome } = await handled(pool, "throws");
      assert.equal(outcome?.kind, "failed");
    });
  } finally {
    await pool.close();
  }
});
