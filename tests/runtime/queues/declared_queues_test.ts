/** Queues as sites see them: settings and handlers of the version that serves. */
import assert from "node:assert/strict";
import { QUEUE_DEFAULTS } from "../../../functions/queues/settings.ts";
import type { LiveApp } from "../../../runtime/deploy/mod.ts";
import { DeclaredQueues, namesOf, topicOf } from "../../../runtime/queues/declared_queues.ts";

type Declared = Readonly<Record<string, Readonly<Record<string, number>>>>;

const version = (app: string, queues: Declared, handlers = ["fetch", "queue"]) =>
  ({ app, version: "0".repeat(64), manifest: { queues, handlers } }) as unknown as LiveApp["current"];
const app = (name: string, queues: Declared, handlers?: string[], next?: Declared): LiveApp =>
  ({
    name,
    record: { name, versions: [], current: null },
    current: version(name, queues, handlers),
    ...next === undefined ? {} : { rollout: { next: version(name, next), weight: 0.5 } },
  }) as unknown as LiveApp;

function tableOf(apps: LiveApp[]) {
  const table = { get: (name: string) => apps.find((one) => one.name === name), list: () => apps };
  return { apps, declared: new DeclaredQueues(table, 1_000) };
}

Deno.test("a queue has what its app declares of it, and else the defaults", () => {
  const { declared } = tableOf([app("shop", {
    plain: {},
    own: { f: 2, maxAttempts: 7, batchMax: 3, retryMinMs: 5_000, retryMaxMs: 100, perSecond: 4 },
  })]);
  assert.deepEqual(declared.get("shop/plain")?.settings, { ...QUEUE_DEFAULTS, leaseMs: 31_000 });
  assert.deepEqual(declared.get("shop/own")?.settings, {
    ...QUEUE_DEFAULTS,
    ...{ f: 2, maxAttempts: 7, batchMax: 3, perSecond: 4, leaseMs: 31_000 },
    retry: { minMs: 5_000, maxMs: 5_000 },
  });
  assert.equal(declared.others, 2);
  assert.equal(declared.get("shop/none"), undefined);
  assert.deepEqual(namesOf(topicOf("shop", "a-b")), { app: "shop", queue: "a-b" });
});

Deno.test("a queue of a version that is only about to serve can be sent to, and nobody works it off", () => {
  const { declared } = tableOf([
    app("shop", { old: {} }, undefined, { new: { f: 3 } }),
    app("quiet", { q: {} }, []),
  ]);
  assert.equal(declared.get("shop/new")?.settings.f, 3);
  assert.equal(declared.handlerOf("shop/new"), undefined);
  assert.equal(declared.handlerOf("shop/old")?.app, "shop");
  assert.equal(declared.handlerOf("quiet/q"), undefined, "the app has no handler");
});

Deno.test("a queue that is pulled from has no handler, and one other site at least to ask for its messages", () => {
  const pulled = { pull: true, f: 0 } as unknown as Declared[string];
  const { apps, declared } = tableOf([app("shop", { own: { f: 0 }, calls: pulled })]);
  assert.deepEqual(["shop/own", "shop/calls"].map((topic) => declared.get(topic)?.consumer), [
    "handler",
    "pull",
  ]);
  assert.equal(declared.handlerOf("shop/calls"), undefined);
  assert.equal(declared.others, 1);
  apps.splice(0, 1, app("shop", { own: { f: 0 } }));
  declared.refresh();
  assert.equal(declared.others, 0);
});

Deno.test("what has changed is told, and what is declared no more has no settings (DQ1)", () => {
  const { apps, declared } = tableOf([app("shop", { a: {}, b: {} }), app("gone", { c: {} })]);
  assert.deepEqual(declared.refresh(), []);
  apps.splice(0, 2, app("shop", { a: { f: 0 }, d: {} }));
  assert.deepEqual(declared.refresh().sort(), ["gone/c", "gone/kv.queue", "shop/a", "shop/b", "shop/d"]);
  assert.equal(declared.get("shop/b"), undefined);
  assert.equal(declared.hasApp("gone"), false);
  assert.deepEqual(declared.topics.sort(), ["shop/a", "shop/d"]);
});

Deno.test("each app has a queue for its KV, which is listed where it is listened to (DQ2)", () => {
  const { apps, declared } = tableOf([
    app("quiet", {}),
    app("hears", { own: { f: 0 } }, ["fetch", "listenQueue"]),
  ]);
  assert.deepEqual(declared.topics.sort(), ["hears/kv.queue", "hears/own"]);
  assert.equal(declared.handlerOf("hears/kv.queue")?.app, "hears");
  assert.equal(declared.handlerOf("hears/own"), undefined);
  assert.equal(declared.handlerOf("quiet/kv.queue"), undefined);
  assert.deepEqual(["hears", "quiet"].map((name) => declared.get(`${name}/kv.queue`)?.settings.f), [1, 0]);
  const { retry, maxAttempts, batchMax, whenDead, leaseMs } = declared.get("hears/kv.queue")?.settings ?? {};
  assert.deepEqual(retry, { eachMs: [100, 1_000, 5_000, 30_000, 60_000] });
  assert.deepEqual([maxAttempts, batchMax, whenDead, leaseMs], [6, 1, "hand over", 31_000]);
  assert.equal(declared.others, 1);
  apps.splice(1, 1, app("hears", {}, ["fetch"]));
  assert.deepEqual(declared.refresh().sort(), ["hears/kv.queue", "hears/own"]);
  assert.equal(declared.others, 0, "nobody is watched for a queue that nobody listens to");
});
