/** Outside requests of a stateful session, without a session: to a server of this test, and to an origin. */
import { strict as assert } from "node:assert";
import { decodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import type { Call } from "../../../functions/sessions/turn/mod.ts";
import { decodeOutsideAnswer, encodeOutside } from "../../../functions/sessions/turn/call_bytes.ts";
import { EgressRules } from "../../../runtime/isolate/egress_rules.ts";
import { type CallingSession, makeCall } from "../../../functions/sessions/serve/made_calls.ts";
import { type HttpOrigin, outsideRequests } from "../../../runtime/stateful/outside_requests.ts";

/** An outside request of a session's. */
function outside(
  url: string,
  { effect = 7 as number | null, headers = [] as [string, string][] } = {},
): Call {
  const call = encodeCall({ kind: "fetch", method: "POST", url, headers, body: new Uint8Array(1) });
  return { call: 3, kind: "fetch", bytes: encodeOutside({ redirect: "follow", call }), effect };
}

const making = { signal: new AbortController().signal, kept: () => {} };

/** One that may ask this server. */
const makerFor = (host: string, origin: HttpOrigin | null = null) =>
  ({
    outside: outsideRequests(new EgressRules({ fetchHosts: [host], privateHosts: [host] }), origin),
    keyOf: (effect: number) => `key ${effect}`,
  }) as unknown as CallingSession;

async function serving(
  answer: (request: Request) => Response,
  body: (host: string) => Promise<void>,
): Promise<void> {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, answer);
  try {
    await body(`127.0.0.1:${server.addr.port}`);
  } finally {
    await server.shutdown();
  }
}

Deno.test("an outside request with an effect carries its key to wherever it is sent on, but for one of its own (M2)", async () => {
  const keys: (string | null)[] = [];
  const answer = (request: Request) => {
    keys.push(request.headers.get("idempotency-key"));
    const isAsked = new URL(request.url).pathname === "/first";
    return isAsked
      ? new Response(null, { status: 307, headers: { location: "/next" } })
      : new Response("done");
  };
  await serving(answer, async (host) => {
    const own: [string, string][] = [["Idempotency-Key", "mine"]];
    for (const options of [{}, { effect: null }, { headers: own }]) {
      const made = await makeCall(makerFor(host), outside(`http://${host}/first`, options), making);
      assert.ok(made.ok);
      const told = decodeAnswer(decodeOutsideAnswer(made.bytes).answer);
      assert.equal(told.kind === "response" && told.status, 200);
    }
  });
  assert.deepEqual(keys, ["key 7", "key 7", null, null, "mine", "mine"]);
});

Deno.test("a request to the origin of its class goes by way of it, with its key, and no other does", async () => {
  const asked: (string | null)[] = [];
  await serving(() => new Response("from outside"), async (host) => {
    const origin: HttpOrigin = {
      origin: "http://shop.test",
      fetch: (_, key) => {
        asked.push(key);
        return Promise.resolve({ ok: true, bytes: new Uint8Array(0) });
      },
    };
    const maker = makerFor(host, origin);
    for (const effect of [7, null]) {
      assert.ok((await makeCall(maker, outside("http://shop.test/a", { effect }), making)).ok);
    }
    assert.deepEqual(asked, ["key 7", null]);
    const other = await makeCall(maker, outside(`http://${host}/a`), making);
    assert.ok(other.ok && other.bytes.length > 0);
    assert.equal(asked.length, 2);
  });
});

Deno.test("an outside request that is refused, or not answered, ends with an outcome (M1)", async () => {
  const refused = await makeCall(makerFor("127.0.0.1:1"), outside("http://127.0.0.1:2/"), making);
  assert.ok(!refused.ok && refused.code === "fetch_refused", JSON.stringify(refused));
  const unreachable = await makeCall(makerFor("127.0.0.1:1"), outside("http://127.0.0.1:1/"), making);
  assert.ok(!unreachable.ok && unreachable.code !== "internal", JSON.stringify(unreachable));
});
