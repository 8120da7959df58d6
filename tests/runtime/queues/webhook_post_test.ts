/** One post to an endpoint: what it carries, and what becomes of each kind of answer, of no answer and of no end. */
import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import type { MessageEnvelope } from "../../../functions/queues/envelope.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { EgressRules } from "../../../runtime/isolate/egress_rules.ts";
import {
  type Endpoint,
  headerId,
  LATER_MS_MAX,
  LATER_MS_MIN,
  post,
  postedMessage,
  type PostOutcome,
  type PostParts,
} from "../../../runtime/queues/webhook_post.ts";

const KEY = `whsec_${btoa("k".repeat(24))}`, signer = new Webhook(KEY);
const utf8 = new TextEncoder();
const envelopeOf = (more: Partial<MessageEnvelope> = {}): MessageEnvelope => ({
  ...{ id: "order-1", sentMs: 1, trace: "", backoffMs: null, undelivered: new Uint8Array() },
  ...{ format: "json", body: utf8.encode('{"drink": "tea", "big": 12345678901234567890}') },
  ...more,
});

interface Seen {
  readonly headers: Record<string, string>;
  readonly text: string;
}

/** An endpoint that answers as a test says. */
async function endpoint(
  answer: (seen: Seen) => Response | Promise<Response>,
  use: (url: string, seen: readonly Seen[]) => Promise<void>,
): Promise<void> {
  const all: Seen[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const seen = { headers: Object.fromEntries(request.headers), text: await request.text() };
    all.push(seen);
    return await answer(seen);
  });
  try {
    await use(`http://127.0.0.1:${server.addr.port}/in?from=shop`, all);
  } finally {
    await server.shutdown();
  }
}

/** An endpoint below HTTP: what it does with a connection is up to the test. */
async function rawEndpoint(
  serve: (connection: Deno.TcpConn, over: AbortSignal) => Promise<void>,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" }), over = new AbortController();
  const served = (async () => {
    for await (const connection of listener) {
      await serve(connection, over.signal).catch(() => {});
      connection.close();
    }
  })();
  try {
    await use(`http://127.0.0.1:${listener.addr.port}/`);
  } finally {
    over.abort();
    listener.close();
    await served;
  }
}

type PartsGiven = Partial<Omit<PostParts, "endpoint">> & { readonly endpoint?: Partial<Endpoint> };

function partsOf(url: string, more: PartsGiven = {}): PostParts {
  const host = URL.canParse(url) ? new URL(url).host : "";
  return {
    sign: (id: string, at: Date, payload: string) => signer.sign(id, at, payload),
    rules: new EgressRules({ fetchHosts: [host], privateHosts: [host] }),
    nowMs: () => Date.now(),
    signal: new AbortController().signal,
    ...more,
    endpoint: { url, timeoutMs: 10_000, headers: {}, ...more.endpoint },
  };
}

const posted = (url: string, more: PartsGiven = {}): Promise<PostOutcome> =>
  post(postedMessage("tuple", envelopeOf()), partsOf(url, more));

Deno.test("what is posted is verified by the library of Standard Webhooks, whatever the message is", async () => {
  const trace = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const rows: [envelope: Partial<MessageEnvelope>, id: string, format: string, body: unknown][] = [
    [{ body: utf8.encode('{"drink": "tea"}') }, "order-1", "json", { drink: "tea" }],
    [{ id: "", format: "text", body: utf8.encode('grüße "x"\n') }, "tuple", "text", 'grüße "x"\n'],
    [{ format: "bytes", body: new Uint8Array([0, 255, 128]) }, "order-1", "bytes", "AP+A"],
    [{ format: "value", body: encodeValue({ n: 3n, s: "\ud800" }) }, "order-1", "json", {
      n: { $bigint: "3" },
      s: "\ud800",
    }],
    [{ id: "a.b%c ü\r\n", trace }, "a%2Eb%25c%20%C3%BC%0D%0A", "json", undefined],
  ];
  await endpoint(() => new Response(null, { status: 204 }), async (url, seen) => {
    const headers = { "x-shop": "one", "user-agent": "ours" };
    for (const [envelope] of rows) {
      const message = postedMessage("tuple", envelopeOf(envelope));
      assert.deepEqual(await post(message, partsOf(url, { endpoint: { headers } })), { kind: "done" });
    }
    for (const [place, [, id, format, body]] of rows.entries()) {
      const { headers, text } = seen[place] ?? assert.fail();
      const verified = signer.verify(text, headers);
      if (body !== undefined) assert.deepEqual(verified, body);
      assert.equal(headers["webhook-id"], id);
      assert.equal(headers["sojourn-message-format"], format);
      assert.deepEqual([headers["content-type"], headers["x-shop"], headers["user-agent"]], [
        ...["application/json", "one", "ours"],
      ]);
      assert.throws(() => signer.verify(`${text} `, headers), /No matching signature/);
      assert.throws(
        () => signer.verify(text, { ...headers, "webhook-id": "other" }),
        /No matching signature/,
      );
    }
    assert.match(postedMessage("t", envelopeOf()).payload, /12345678901234567890/, "JSON goes as it came");
    assert.equal(seen[4]?.headers["traceparent"], trace);
    assert.equal(seen[0]?.headers["traceparent"], undefined);
  });
});

Deno.test("a message is posted under one id at each try, signed anew, and no two ids are alike (webhook_post.ts WP1)", async () => {
  await endpoint(() => new Response(null, { status: 500 }), async (url, seen) => {
    const message = postedMessage("tuple", envelopeOf()), startMs = Date.now();
    for (const passedMs of [0, 3_000]) await post(message, partsOf(url, { nowMs: () => startMs + passedMs }));
    const [first, second] = seen.map(({ headers }) => headers);
    assert.equal(first?.["webhook-id"], second?.["webhook-id"]);
    assert.equal(Number(second?.["webhook-timestamp"]) - Number(first?.["webhook-timestamp"]), 3);
    assert.notEqual(first?.["webhook-signature"], second?.["webhook-signature"]);
    for (const { headers, text } of seen) signer.verify(text, headers);
  });
  const ids = ["a.b", "a%2Eb", "a%2eb", "a b", "ab", "ü", "u\u0308", "=ab-_~:/", "\ud83d\ude00"];
  assert.equal(new Set(ids.map(headerId)).size, ids.length);
  assert.equal(headerId("=ab-_~:/"), "=ab-_~:/");
  for (const id of ids) {
    assert.match(headerId(id), /^[\x21-\x2d\x2f-\x7e]+$/);
    assert.equal(decodeURIComponent(headerId(id)), id);
  }
});

Deno.test("the head of an answer decides: 2xx, 410, a pause, or a failed try", async () => {
  const at = Date.parse("Wed, 21 Oct 2026 07:28:00 GMT");
  const later = (ms: number, error: string) => ({ kind: "later", ms, error });
  const failed = (code: string, error: string) => ({ kind: "failed", code, error });
  const rows: [status: number, headers: Record<string, string>, body: string, outcome: unknown][] = [
    [200, {}, "thanks", { kind: "done" }],
    [202, { "retry-after": "5" }, "", { kind: "done" }],
    [299, {}, "", { kind: "done" }],
    [410, { "retry-after": "5" }, "moved away", { kind: "gone", error: "410: moved away" }],
    [429, { "retry-after": "7" }, "", later(7_000, "429")],
    [503, { "retry-after": "0" }, "soon", later(LATER_MS_MIN, "503: soon")],
    [503, { "retry-after": "99999999" }, "", later(LATER_MS_MAX, "503")],
    [503, { "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }, "", later(30_000, "503")],
    [503, { "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT" }, "", later(LATER_MS_MIN, "503")],
    [503, {}, "", failed("status_5xx", "503")],
    [429, { "retry-after": "soon" }, "", failed("status_4xx", "429")],
    [429, { "retry-after": "-1" }, "", failed("status_4xx", "429")],
    [500, { "retry-after": "7" }, "broken", failed("status_5xx", "500: broken")],
    [400, {}, "no such order", failed("status_4xx", "400: no such order")],
    [404, {}, "", failed("status_4xx", "404")],
    [304, {}, "", failed("redirect", "304: redirects are not followed")],
  ];
  for (const [status, headers, body, outcome] of rows) {
    const empty = status === 304 || body === "";
    await endpoint(() => new Response(empty ? null : body, { status, headers }), async (url) => {
      assert.deepEqual(await posted(url, { nowMs: () => at }), outcome, `${status}`);
    });
  }
});

Deno.test("a redirect is a failed try that says so, and nothing goes where it points (webhook_post.ts WP2)", async () => {
  await endpoint(() => new Response(), async (target, reached) => {
    for (const status of [301, 302, 303, 307, 308]) {
      await endpoint(() => new Response(null, { status, headers: { location: target } }), async (url) => {
        const error = `${status}: redirects are not followed`;
        assert.deepEqual(await posted(url), { kind: "failed", code: "redirect", error });
      });
    }
    assert.deepEqual(reached, []);
  });
});

Deno.test("a private address is posted to only where the operator names it (webhook_post.ts WP2)", async () => {
  await endpoint(() => new Response(), async (url, reached) => {
    const { host, port } = new URL(url);
    const outcome = await posted(url, { rules: new EgressRules({ fetchHosts: [host] }) });
    assert.ok(outcome.kind === "failed" && outcome.code === "refused", JSON.stringify(outcome));
    assert.match(outcome.error, /^refused: 127\.0\.0\.1 is not a public address; the operator can permit/);
    // A name that points to one is no way round, and is looked up once.
    let asked = 0;
    const named = `http://orders.example:${port}/`;
    const rules = new EgressRules({
      fetchHosts: [`orders.example:${port}`],
      lookup: () => Promise.resolve(asked++ === 0 ? ["10.0.0.1"] : ["127.0.0.1"]),
    });
    const rebound = await posted(named, { rules });
    assert.ok(rebound.kind === "failed" && rebound.code === "refused", JSON.stringify(rebound));
    assert.equal(asked, 1);
    const closed = await posted(url, {
      rules: new EgressRules({ fetchHosts: [host], allow: ["other.example"] }),
    });
    assert.ok(closed.kind === "failed" && /egress\.allow/.test(closed.error), JSON.stringify(closed));
    assert.deepEqual(reached, []);
  });
});

const TIMED_OUT = { kind: "failed", code: "timeout", error: "no answer within 300 ms" };
const soon = { endpoint: { timeoutMs: 300 } };
const until = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
/** Writes one text again and again, until nobody takes it. */
async function drip(
  connection: Deno.TcpConn,
  over: AbortSignal,
  text: string,
  everyMs: number,
): Promise<void> {
  while (!over.aborted) {
    await connection.write(utf8.encode(text));
    if (everyMs > 0) await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

Deno.test("an endpoint that never answers, or not to the end, is over in its time (webhook_post.ts WP3)", async (t) => {
  const HEAD = "HTTP/1.1 500 Broken\r\ncontent-type: text/plain\r\n";
  const rows: [name: string, serve: Parameters<typeof rawEndpoint>[0], is: (outcome: PostOutcome) => void][] =
    [
      [
        "nothing is answered",
        (_, over) => until(over),
        (outcome) => assert.deepEqual(outcome, TIMED_OUT),
      ],
      [
        "a head that has no end",
        async (connection, over) => {
          await connection.write(utf8.encode("HTTP/1.1 200 OK\r\n"));
          await drip(connection, over, "x: y\r\n", 20);
        },
        (outcome) => assert.ok(outcome.kind === "failed", JSON.stringify(outcome)),
      ],
      [
        "interim answers without end",
        (connection, over) => drip(connection, over, "HTTP/1.1 102 Processing\r\n\r\n", 20),
        (outcome) => assert.ok(outcome.kind === "failed", JSON.stringify(outcome)),
      ],
      [
        "garbage",
        async (connection) => void await connection.write(utf8.encode("\0\x01 no HTTP\r\n\r\n")),
        (outcome) =>
          assert.ok(outcome.kind === "failed" && outcome.code === "unreachable", JSON.stringify(outcome)),
      ],
      [
        "a body that stops: what came is the reason",
        async (connection, over) => {
          await connection.write(utf8.encode(`${HEAD}content-length: 100\r\n\r\nhalf`));
          await until(over);
        },
        (outcome) => assert.deepEqual(outcome, { kind: "failed", code: "status_5xx", error: "500: half" }),
      ],
      [
        "a body without end: its beginning is the reason",
        async (connection, over) => {
          await connection.write(utf8.encode(`${HEAD}\r\n`));
          await drip(connection, over, "endless ".repeat(1_000), 0);
        },
        (outcome) => {
          assert.ok(outcome.kind === "failed" && outcome.code === "status_5xx", JSON.stringify(outcome));
          assert.equal(outcome.error.length, "500: ".length + 200);
        },
      ],
      [
        "a taken message is taken whatever else is sent",
        async (connection, over) => {
          await connection.write(utf8.encode("HTTP/1.1 200 OK\r\n\r\n"));
          await drip(connection, over, "endless ".repeat(1_000), 0);
        },
        (outcome) => assert.deepEqual(outcome, { kind: "done" }),
      ],
    ];
  for (const [name, serve, is] of rows) {
    await t.step(name, () =>
      rawEndpoint(serve, async (url) => {
        const sinceMs = performance.now();
        is(await posted(url, soon));
        assert.ok(performance.now() - sinceMs < 8_000, "it is over in its time, on a busy machine too");
      }));
  }
});

Deno.test("a name that is looked up for ever, and a site that stops, end a post as well (webhook_post.ts WP3)", async () => {
  const url = "http://orders.example/", gone = new AbortController();
  const rules = new EgressRules({ fetchHosts: ["orders.example"], lookup: () => new Promise(() => {}) });
  assert.deepEqual(await posted(url, { ...soon, rules }), TIMED_OUT);
  const open = posted(url, { rules, signal: gone.signal });
  gone.abort();
  assert.deepEqual(await open, { kind: "aborted" });
  assert.deepEqual(await posted(url, { rules, signal: gone.signal }), { kind: "aborted" });
  const nowhere = await posted("http://127.0.0.1:1/");
  assert.ok(nowhere.kind === "failed" && nowhere.code === "unreachable", JSON.stringify(nowhere));
});

Deno.test("what is told of an answer is one line without control characters (webhook_post.ts WP4)", async () => {
  const body = "\x1b[31m<h1>\r\n\tno\u0000 \u202eway\u2066\u200b</h1>\x9b\ud83d\ude00";
  await endpoint(() => new Response(body, { status: 500 }), async (url) => {
    const outcome = await posted(url);
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.error, "500: [31m<h1> no way </h1> \ud83d\ude00");
  });
});

Deno.test("the receiver of the guide takes what is posted, once, and nothing else", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-receiver-" }), printed: unknown[][] = [];
  const page = new URL("../../../docs/guides/queues.md", import.meta.url), { log } = console;
  try {
    const [, code = ""] = /```ts receiver\.ts\n([^`]+)```/.exec(await Deno.readTextFile(page)) ?? [];
    await Deno.writeTextFile(`${folder}/receiver.ts`, code);
    Deno.env.set("ORDERS_KEY", KEY);
    const receiver = await import(`file://${folder}/receiver.ts`) as {
      readonly default: { fetch(request: Request): Promise<Response> };
    };
    console.log = (...words) => void printed.push(words);
    const answer = ({ headers, text }: Seen) =>
      receiver.default.fetch(new Request("http://localhost/orders", { method: "POST", headers, body: text }));
    await endpoint(answer, async (url) => {
      for (const _ of [1, 2]) assert.deepEqual(await posted(url), { kind: "done" });
      const forged = await posted(url, { sign: () => `v1,${btoa("x".repeat(32))}` });
      const error = "401: not signed by the shop";
      assert.deepEqual(forged, { kind: "failed", code: "status_4xx", error });
    });
    assert.deepEqual(printed.map(([id]) => id), ["order-1"]);
  } finally {
    console.log = log;
    Deno.env.delete("ORDERS_KEY");
    await Deno.remove(folder, { recursive: true });
  }
});
