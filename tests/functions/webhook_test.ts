/** Endpoints of queues, as apps declare them: what is kept of them, and what is refused. */
import assert from "node:assert/strict";
import { z } from "zod";
import { parseManifest, readManifest } from "../../functions/manifest.ts";
import { queue, type WebhookOptions } from "../../functions/queue.ts";
import { codeOf } from "../../functions/vocabulary/errors.ts";

const fetch = () => new Response();
const schema = z.any();
const url = "https://orders.example/in?from=shop",
  secret = "KEY",
  secrets = { KEY: {}, ROOT: { at: "root" } };
const plain = queue({ schema });
const posted = (webhook: Partial<WebhookOptions> = {}, more = {}) =>
  queue({ schema, webhook: { url, secret, ...webhook }, ...more });
const app = (queues: Record<string, unknown>, more = {}) => ({ fetch, secrets, queues, ...more });

Deno.test("the manifest has a queue's webhook as the app declares it", () => {
  const webhook = { url, secret, timeoutMs: 2_000, headers: { "x-shop": "one" } };
  const manifest = readManifest(app({ orders: queue({ schema, webhook, concurrency: 3 }) }));
  assert.deepEqual(manifest.queues, { orders: { f: 1, maxAttempts: 5, concurrency: 3, webhook } });
  assert.deepEqual(parseManifest(JSON.parse(JSON.stringify(manifest))), manifest);
  const other = readManifest(app({ orders: posted(), own: plain }, { queue: () => {} }));
  assert.deepEqual(other.handlers, ["fetch", "queue"], "the handler works off another queue");
});

/** Refusals of one header. */
const headerRefused = (name: string, value = "a"): [object, string, RegExp] => [
  app({ q: posted({ headers: { [name]: value } }) }),
  `queues.q.webhook.headers.${name}`,
  /header|visible ASCII|<=1024/,
];

Deno.test("a queue is worked off in one way, and its webhook's declaration holds no secret (webhook.ts WH1, WH2)", () => {
  const many = Object.fromEntries(Array.from({ length: 26 }, (_, at) => [`q${at}`, posted()]));
  const handler = { queue: () => {} };
  const refused: [object, string, RegExp][] = [
    [app({ q: posted({}, { pull: true }) }), "queues.q.pull", /not both/],
    [app({ q: posted() }, handler), "queue", /no queue handler/],
    [app({ q: posted(), calls: queue({ schema, pull: true }) }, handler), "queue", /q has a webhook/],
    [app({ q: posted({}, { batchMax: 5 }) }), "queues.q", /one message at a time/],
    [app({ q: posted({}, { batchWaitMs: 5 }) }), "queues.q", /one message at a time/],
    [app({ q: posted({ secret: "OTHER" }) }), "queues.q.webhook.secret", /declares in secrets/],
    [app({ q: posted({ secret: "toString" }) }), "queues.q.webhook.secret", /declares in secrets/],
    [app({ q: posted({ secret: "ROOT" }) }), "queues.q.webhook.secret", /without at: "root"/],
    [app(many), "queues", /at most 256/],
    [app({ q: posted({}, { concurrency: 257 }) }), "queues", /at most 256/],
    ...[
      "ftp://a.example/",
      "//a.example",
      "https://",
      "https:///a",
      "https://u@a.example/",
      "https://u:p@a.example/",
    ]
      .concat([
        "https://a.example/#a",
        "https://a.example/#",
        "https://a.example:99999/",
        `https://a/${"a".repeat(2_048)}`,
      ])
      .map((
        url,
      ): [object, string, RegExp] => [app({ q: posted({ url }) }), "queues.q.webhook.url", /https:|2048/]),
    [app({ q: posted({ timeoutMs: 99 }) }), "queues.q.webhook.timeoutMs", />=100/],
    [app({ q: posted({ timeoutMs: 60_001 }) }), "queues.q.webhook.timeoutMs", /<=60000/],
    [app({ q: posted({ more: 1 } as object) }), "queues.q.webhook", /known fields/],
    ...[
      "authorization",
      "cookie",
      "host",
      "content-type",
      "content-length",
      "transfer-encoding",
      "webhook-id",
    ]
      .concat(["webhook-x", "sojourn-message-format", "traceparent", "X-Shop", "x shop", "x:", "é", ""])
      .map((name) => headerRefused(name)),
    headerRefused("x-shop", "a\r\nhost: b"),
    headerRefused("x-shop", "é"),
    headerRefused("x-shop", "a".repeat(1_025)),
    [
      app({
        q: posted({ headers: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`x${at}`, ""])) }),
      }),
      "queues.q.webhook.headers",
      /at most 32/,
    ],
    [
      app({ q: posted({ headers: JSON.parse('{"__proto__":"x"}') }) }),
      "queues.q.webhook.headers.__proto__",
      /another name/,
    ],
    [
      app({ q: posted({ headers: Object.create({ a: "b" }) }) }),
      "queues.q.webhook.headers",
      /plain/,
    ],
  ];
  for (const [given, path, expected] of refused) {
    assert.throws(
      () => readManifest(given),
      (error: Error & { detail?: { issues?: Record<string, string>[] } }) => {
        assert.equal(codeOf(error), "deploy_invalid");
        const issue = error.detail?.issues?.[0];
        assert.equal(issue?.["path"], path, error.message);
        assert.match(`${issue?.["expected"]}`, expected);
        return true;
      },
      path,
    );
  }
});
