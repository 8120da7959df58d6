/** Webhooks of a site: when a queue's messages are posted from it, and what becomes of them. */
import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import type { DeliveryOutcome, MessageDelivery, QueueHandler } from "../../../functions/queues/hand.ts";
import type { LiveApp } from "../../../runtime/deploy/mod.ts";
import { EgressRules } from "../../../runtime/isolate/egress_rules.ts";
import { SiteQueues } from "../../../runtime/isolate/mod.ts";
import { Consumers, type ConsumersParts } from "../../../runtime/queues/consumers.ts";
import { DeclaredQueues } from "../../../runtime/queues/declared_queues.ts";
import { isKey, POSTS_WAITING_MAX, Webhooks } from "../../../runtime/queues/webhooks.ts";

const KEY = `whsec_${btoa("k".repeat(24))}`;
const TOPIC = "shop/orders", OTHER = "shop/others", SLOW = "shop/slow";

const delivery = (id: string, body = '{"drink":"tea"}'): MessageDelivery => ({
  ticket: { id, lease: 1, sentMs: 1, owners: ["a"] },
  attempt: 1,
  envelope: {
    ...{ id: "", sentMs: 1, trace: "", backoffMs: null, undelivered: new Uint8Array() },
    ...{ format: "json", body: new TextEncoder().encode(body) },
  },
});

/** Webhooks with an endpoint that answers as a test says, and a clock that passes when it says so. */
class Site implements AsyncDisposable {
  readonly secrets: Record<string, string> = { KEY };
  readonly lines: string[] = [];
  readonly metered: string[] = [];
  readonly served = new Map<string, QueueHandler>();
  readonly timers: { readonly ms: number; readonly run: () => void }[] = [];
  readonly got: { readonly path: string; readonly headers: Record<string, string>; readonly text: string }[] =
    [];
  answer: () => Response | Promise<Response> = () => new Response(null, { status: 204 });
  path = "/in";
  readonly #server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const headers = Object.fromEntries(request.headers), text = await request.text();
    this.got.push({ path: new URL(request.url).pathname, headers, text });
    return await this.answer();
  });
  readonly host = `127.0.0.1:${this.#server.addr.port}`;
  readonly queues: SiteQueues;
  readonly declared: DeclaredQueues;
  readonly webhooks: Webhooks;
  readonly consumers: Consumers;

  constructor(bytesMax?: number) {
    this.queues = new SiteQueues(bytesMax);
    const table = { get: () => this.#app(), list: () => [this.#app()] };
    this.declared = new DeclaredQueues(table, 1_000);
    const meter = {
      handled: (topic: string, _: number, error: string | null) =>
        void this.metered.push(`${topic} ${error}`),
    };
    this.webhooks = new Webhooks({
      ...{ declared: this.declared, queues: this.queues, meter },
      secrets: {
        values: (app, names) =>
          Object.fromEntries(
            Object.entries(this.secrets).filter(([name]) => app === "shop" && Object.hasOwn(names, name)),
          ),
      },
      running: {
        appLog: ({ text }) => void this.lines.push(text),
        redact: (_, text) => text.replaceAll("hidden", "*"),
        nowMs: () => Date.now(),
      },
      rulesOf: (fetchHosts) =>
        new EgressRules({ fetchHosts, privateHosts: [this.host], lookup: () => new Promise(() => {}) }),
      after: (ms, run) => {
        const timer = { ms, run };
        this.timers.push(timer);
        return () => void this.timers.splice(this.timers.indexOf(timer), 1);
      },
      rested: (topic) => this.consumers.configured(topic),
    });
    this.consumers = new Consumers({
      ...{ declared: this.declared, meter, webhooks: this.webhooks },
      outlet: {
        unsettled: 0,
        serve: (topic, handler) =>
          void (handler === null ? this.served.delete(topic) : this.served.set(topic, handler)),
      },
      running: {} as ConsumersParts["running"],
      prepared: () => assert.fail("no handler is there"),
      opened: () => assert.fail("no KV is there"),
    });
    this.configured();
  }

  /** Tells the consumers that something has changed. */
  configured(): void {
    this.declared.refresh();
    for (const topic of this.declared.topics) this.consumers.configured(topic);
  }

  get serves(): string[] {
    return [...this.served.keys()].sort();
  }

  async one(topic: string, message: MessageDelivery): Promise<DeliveryOutcome> {
    const handler = this.served.get(topic) ?? assert.fail(`${topic} is not served`);
    const [outcome, ...more] = await handler([message], () => {});
    assert.deepEqual(more, []);
    return outcome ?? assert.fail("no outcome");
  }

  #app(): LiveApp {
    const url = `http://${this.host}${this.path}`;
    const queues = {
      orders: { webhook: { url, secret: "KEY", headers: { "x-shop": "one" } }, batchMax: 7, concurrency: 3 },
      others: { webhook: { url: `http://${this.host}/others`, secret: "KEY", timeoutMs: 5_000 } },
      slow: { webhook: { url: "http://looked-up-for-ever.example/", secret: "KEY", timeoutMs: 3_600_000 } },
    };
    const manifest = { queues, secrets: { KEY: {} }, handlers: ["fetch"] };
    const current = { app: "shop", version: "0".repeat(64), manifest };
    return {
      name: "shop",
      record: { name: "shop", versions: [], current: null },
      current,
    } as unknown as LiveApp;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.webhooks.close();
    await this.#server.shutdown();
  }
}

const ACK = { kind: "ack", ms: null, error: "" }, RELEASED = { kind: "release", ms: null, error: "" };

Deno.test("a queue with a webhook is given out one message at a time, for as long as its endpoint has", async () => {
  await using site = new Site();
  const { settings, consumer } = site.declared.get(TOPIC) ?? assert.fail();
  assert.deepEqual([consumer, settings.batchMax, settings.batchWaitMs, settings.concurrency], [
    "webhook",
    1,
    0,
    3,
  ]);
  assert.equal(settings.leaseMs, 45_000);
  assert.equal(site.declared.get(OTHER)?.settings.leaseMs, 35_000);
  assert.equal(site.declared.handlerOf(TOPIC), undefined);
  assert.deepEqual(await site.one(TOPIC, delivery("m1")), ACK);
  const { headers, text } = site.got[0] ?? assert.fail();
  assert.deepEqual(new Webhook(KEY).verify(text, headers), { drink: "tea" });
  assert.deepEqual([headers["webhook-id"], headers["x-shop"]], ["m1", "one"]);
  assert.deepEqual(site.metered, [`${TOPIC} null`]);
  assert.deepEqual(site.lines, []);
});

Deno.test("messages wait while the secret has no value, or one that is no key, and are posted once it has (WB1)", async () => {
  await using site = new Site();
  for (
    const [value, lacks] of [
      [undefined, "no secret KEY"],
      ["plain", "secret KEY is no key of a webhook"],
      [KEY, null],
    ] as const
  ) {
    if (value === undefined) delete site.secrets["KEY"];
    else site.secrets["KEY"] = value;
    site.configured();
    assert.equal(site.webhooks.lacks(TOPIC), lacks);
    assert.deepEqual(site.serves, lacks === null ? [TOPIC, OTHER, SLOW] : []);
  }
  assert.deepEqual(await site.one(TOPIC, delivery("m1")), ACK);
  // Gone between the outlet's look and the post.
  const handler = site.served.get(TOPIC) ?? assert.fail();
  delete site.secrets["KEY"];
  assert.deepEqual(await handler([delivery("m2")], () => {}), [RELEASED]);
  assert.equal(site.got.length, 1);

  const bytes = (count: number) => `whsec_${btoa("k".repeat(count))}`;
  const keys: [string, boolean][] = [
    ...[24, 25, 26, 64].map((count): [string, boolean] => [bytes(count), true]),
    ...[0, 23, 65].map((count): [string, boolean] => [bytes(count), false]),
    [bytes(24).slice("whsec_".length), false],
    [`${bytes(24)}A`, false],
    [`${bytes(24)}\n`, false],
    [bytes(24).replace("a", "-"), false],
  ];
  for (const [key, is] of keys) {
    assert.equal(isKey(key), is, key);
    if (is) new Webhook(key).sign("a", new Date(), "b");
  }
});

Deno.test("2xx acknowledges, 410 rejects, and all else is a try; each is measured and told (WB2, WB4)", async () => {
  await using site = new Site();
  const rows: [Response, DeliveryOutcome, string][] = [
    [new Response("ok"), { kind: "ack", ms: null, error: "" }, "null"],
    [
      new Response("it is hidden", { status: 410 }),
      { kind: "reject", ms: null, error: "410: it is *" },
      "gone",
    ],
    [new Response("hidden", { status: 500 }), { kind: "retry", ms: null, error: "500: *" }, "status_5xx"],
    [new Response("no", { status: 422 }), { kind: "retry", ms: null, error: "422: no" }, "status_4xx"],
  ];
  for (const [answer, outcome] of rows) {
    site.answer = () => answer;
    assert.deepEqual(await site.one(TOPIC, delivery("m1")), outcome);
  }
  assert.deepEqual(site.metered, rows.map(([, , error]) => `${TOPIC} ${error}`));
  assert.deepEqual(
    site.lines,
    ["410: it is *", "500: *", "422: no"].map((why) => `webhook of orders: message m1: ${why}`),
  );
  const unread = { ...delivery("m2"), envelope: { ...delivery("m2").envelope, body: new Uint8Array([255]) } };
  assert.deepEqual(await site.one(TOPIC, unread), {
    kind: "reject",
    ms: null,
    error: "its body can't be read",
  });
});

Deno.test("a pause that an endpoint asks for is kept for its queue alone, and is no attempt (WB1, WB2)", async () => {
  await using site = new Site();
  site.answer = () => new Response(null, { status: 503, headers: { "retry-after": "90" } });
  assert.deepEqual(await site.one(TOPIC, delivery("m1")), RELEASED);
  assert.deepEqual(site.serves, [OTHER, SLOW], "the other queue goes on");
  assert.deepEqual(site.timers.map(({ ms }) => ms), [90_000]);
  assert.deepEqual(site.metered, [`${TOPIC} later`]);
  const [timer] = site.timers.splice(0);
  timer?.run();
  assert.deepEqual(site.serves, [TOPIC, OTHER, SLOW]);

  // Of several that are open at one time, the longest pause holds.
  const handler = site.served.get(TOPIC) ?? assert.fail();
  for (const seconds of [20, 60, 30]) {
    site.answer = () => new Response(null, { status: 429, headers: { "retry-after": `${seconds}` } });
    assert.deepEqual(await handler([delivery("m1")], () => {}), [RELEASED]);
  }
  assert.deepEqual(site.timers.map(({ ms }) => ms), [60_000]);
  assert.deepEqual(site.serves, [OTHER, SLOW]);
  // Another endpoint has asked for nothing.
  site.path = "/new";
  site.configured();
  assert.deepEqual(site.serves, [TOPIC, OTHER, SLOW]);
  site.answer = () => new Response();
  assert.deepEqual(await site.one(TOPIC, delivery("m1")), ACK);
  assert.equal(site.got.at(-1)?.path, "/new");
});

Deno.test("an app has so many posts open at a site, and their bodies count for it (WB3)", async () => {
  await using site = new Site(100_000);
  const large = delivery("large", JSON.stringify("x".repeat(100_001)));
  assert.deepEqual(await site.one(TOPIC, large), RELEASED, "over the app's budget it is not tried");
  assert.deepEqual(site.got, []);
  assert.deepEqual([...site.queues.waiting()], []);
  const handler = site.served.get(SLOW) ?? assert.fail(), over: DeliveryOutcome[] = [];
  const open = Array.from({ length: POSTS_WAITING_MAX + 2 }, async (_, at) => {
    const [outcome] = await handler([delivery(`m${at}`)], () => {});
    over.push(outcome ?? assert.fail());
  });
  while (over.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(over, [RELEASED, RELEASED], "there is no room for two");
  while (waitingBytes(site) < POSTS_WAITING_MAX * 15) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(waitingBytes(site), POSTS_WAITING_MAX * 15, "fifteen bytes each");
  site.webhooks.close();
  await Promise.all(open);
  assert.deepEqual(over, Array.from({ length: POSTS_WAITING_MAX + 2 }, () => RELEASED));
  assert.deepEqual([...site.queues.waiting()], []);
});

const waitingBytes = ({ queues }: Site): number =>
  [...queues.waiting()].reduce((sum, { queue, bytes }) => queue === "webhook body" ? sum + bytes : sum, 0);

Deno.test("what an endpoint does not answer goes back when the site stops, and nothing more is posted (consumers.ts CN1)", async () => {
  await using site = new Site();
  const held = Promise.withResolvers<Response>(), handler = site.served.get(TOPIC) ?? assert.fail();
  site.answer = () => held.promise;
  const open = handler([delivery("m1")], () => {});
  while (site.got.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await site.consumers.stop(20);
  assert.deepEqual(await open, [RELEASED]);
  assert.deepEqual([site.serves, site.webhooks.serves(TOPIC), site.metered], [[], false, []]);
  assert.deepEqual(await handler([delivery("m2")], () => {}), [RELEASED]);
  assert.equal(site.got.length, 1);
  held.resolve(new Response());
});
