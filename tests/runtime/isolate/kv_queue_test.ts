/** The queue of a KV in an isolate: who listens is in the manifest, and is given what the site has. */
import assert from "node:assert/strict";
import type { LiveVersion } from "../../../runtime/deploy/mod.ts";
import type { Prepared } from "../../../runtime/gateway/app_runner.ts";
import type { OwnRunServices } from "../../../runtime/gateway/own_run.ts";
import { runQueue } from "../../../runtime/gateway/queue_run.ts";
import { StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import type { MessageDelivery, QueueHandler } from "../../../functions/queues/hand.ts";
import { Consumers } from "../../../runtime/queues/consumers.ts";
import type { DeclaredQueue } from "../../../runtime/queues/declared_queues.ts";
import { decodeKvMessage, encodeKvDelivery, KV_QUEUE } from "../../../functions/queues/kv_queue.ts";
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

/** A token, which the stand-in for a site does not look into. */
const SEEN = { session: new Uint8Array(16) } as unknown as TokenState;
const VERSION = { app: "a", version: "v", manifest: { sessions: {} } } as unknown as LiveVersion;
const PREPARED = {
  ...{ app: APP, space: { app: "", root: "" }, lane: () => null, highest: 0, strayLog: () => {} },
} as unknown as Prepared;

/** A stand-in for a site, which says what was done. @param isLost true: no site can tell what a token names. */
function site(pool: IsolatePool, isLost = false) {
  const lines: string[] = [], written: unknown[] = [], attached: unknown[] = [];
  const write = (mutations: readonly unknown[]) => {
    written.push(...mutations);
    return Promise.resolve({ ok: true, version: { clock: 1, replica: 1 } });
  };
  const session = { id: new Uint8Array(16), highest: 0, durable: () => Promise.resolve(), write };
  const attach = (token: unknown) => {
    attached.push(token);
    if (token !== null && isLost) throw new StoreUnavailable("source_unreachable", "away");
    return session;
  };
  const services = {
    ...{ site: "edge-1", isolates: pool, nowMs: Date.now, redact: (_: string, text: string) => text },
    limits: { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 },
    replica: { attach, durable: () => Promise.resolve() },
    outbox: {
      outgoing: (_: string, messages: readonly QueuedMessage[]) => ({
        mutations: messages.map(({ queue, delayMs }) => ({ queue, delayMs })),
        written: () => {},
      }),
    },
    appLog: ({ text }: { text: string }) => void lines.push(text),
    metrics: { invoked: () => {} },
  } as unknown as OwnRunServices;
  return { services, lines, written, attached };
}

async function handled(
  pool: IsolatePool,
  value: unknown,
  { seen = null, isLost = false }: { readonly seen?: TokenState | null; readonly isLost?: boolean } = {},
) {
  const { services, ...said } = site(pool, isLost);
  const [outcome] = await runQueue(services, PREPARED, VERSION, {
    queue: KV_QUEUE,
    messages: [{ id: "m", sentMs: 0, attempt: 1, format: "value", body: encodeValue(value) }],
    said: () => {},
    seen,
  });
  return { outcome, ...said };
}

/** What a site's consumer of a KV's queue attached for a value with a token. */
async function consumed(pool: IsolatePool, seen: string): Promise<unknown[]> {
  const { services, attached } = site(pool);
  let handler: QueueHandler | null = null;
  const consumers = new Consumers({
    outlet: { serve: (_, given) => handler = given, unsettled: 0 },
    declared: {
      get: () => ({ consumer: "handler", isOfKv: true }) as DeclaredQueue,
      handlerOf: () => VERSION,
    },
    webhooks: { serves: () => false, handle: () => assert.fail("nothing is posted"), close: () => {} },
    running: services,
    prepared: () => PREPARED,
    meter: { handled: () => {} },
    opened: (text) => text === "token" ? SEEN : null,
  });
  consumers.configured("a/kv.queue");
  const envelope = {
    ...{ id: "", sentMs: 1, trace: "", backoffMs: null, format: "value", body: encodeValue("x") },
    undelivered: encodeKvDelivery({ seen, undelivered: new Uint8Array(0) }),
  };
  const delivery = { ticket: { id: "m" }, attempt: 1, envelope } as unknown as MessageDelivery;
  await (handler as QueueHandler | null)?.([delivery], () => {});
  return attached;
}

Deno.test("a program that listens to its KV's queue says so in its manifest, and is given what was enqueued (KVL1, KVL2)", async (t) => {
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
    await t.step(
      "its session has seen what it is told, where a site can tell (own_run.ts OWR3)",
      async () => {
        const told = await handled(pool, "a", { seen: SEEN });
        const lost = await handled(pool, "b", { seen: SEEN, isLost: true });
        const untold = await handled(pool, "c");
        assert.deepEqual([told, lost, untold].map(({ attached }) => attached), [[SEEN], [SEEN, null], [
          null,
        ]]);
        assert.deepEqual([told, lost, untold].map(({ outcome }) => outcome?.kind), ["ack", "ack", "ack"]);
      },
    );
    await t.step("a site begins it with the token that came with the value (CN2)", async () => {
      assert.deepEqual(await consumed(pool, "token"), [SEEN]);
      assert.deepEqual(await consumed(pool, "expired"), [null]);
      assert.deepEqual(await consumed(pool, ""), [null]);
    });
    await t.step("a listener that throws has failed", async () => {
      const { outcome } = await handled(pool, "throws");
      assert.equal(outcome?.kind, "failed");
    });
  } finally {
    await pool.close();
  }
});
