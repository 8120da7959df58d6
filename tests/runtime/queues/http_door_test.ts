/** The door of queues for programs outside: what it makes of requests, and how much of them it takes at a time. */
import assert from "node:assert/strict";
import type { NewMessage } from "../../../functions/queues/broker.ts";
import type { MessageDelivery } from "../../../functions/queues/hand.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import type { ProblemCode } from "../../../functions/vocabulary/problem.ts";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import type { QueueScope } from "../../../runtime/deploy/mod.ts";
import type { DeclaredQueue } from "../../../runtime/queues/declared_queues.ts";
import { PULLS_WAITING_MAX, QueueDoor, SENDS_AT_ONCE_MAX } from "../../../runtime/queues/http_door.ts";
import { LeaseSeal } from "../../../runtime/queues/lease_seal.ts";
import { messageIn, shownBody } from "../../../runtime/queues/outside_message.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (text: string) => new TextEncoder().encode(text);

/** A door before queues that do as a test says. */
class Before {
  readonly stored: NewMessage[] = [];
  readonly said: string[] = [];
  readonly metered: string[] = [];
  store: (messages: readonly NewMessage[]) => Promise<string[]> = (messages) => {
    this.stored.push(...messages);
    return Promise.resolve(messages.map(({ id }, place) => id ?? `drawn-${place}`));
  };
  pulled: (signal: AbortSignal | undefined) => Promise<readonly MessageDelivery[]> = () =>
    Promise.resolve([]);
  readonly door = new QueueDoor({
    declared: {
      get: (topic) =>
        topic === "shop/sms" || topic === "shop/kv.queue"
          ? { consumer: "pull", isOfKv: topic === "shop/kv.queue" } as DeclaredQueue
          : undefined,
      hasApp: (app) => app === "shop",
    },
    outlet: {
      pull: (_queue, _options, signal) => this.pulled(signal),
      say: (ticket, { kind }) => {
        this.said.push(`${kind} ${ticket.id}`);
        return Promise.resolve("done");
      },
    },
    sends: { store: (_app, _queue, messages) => this.store(messages) },
    leases: new LeaseSeal([new Uint8Array(32)]),
    meter: {
      operated: (topic, operation, _, error) => void this.metered.push(`${operation} ${topic} ${error}`),
    },
  });

  async ask(path: string, body: BodyInit = "", init: RequestInit = {}, scope: QueueScope | null = null) {
    const request = new Request(`http://edge-1/_sojourn/queues/${path}`, { method: "POST", body, ...init });
    return await this.door.handle(request, path, scope);
  }

  async fails(code: ProblemCode, ...asked: Parameters<Before["ask"]>): Promise<void> {
    await assert.rejects(
      () => this.ask(...asked),
      (error) => error instanceof Problem && error.code === code,
      asked[0],
    );
  }
}

const delivery = (body: Uint8Array, format: "text" | "value" = "text"): MessageDelivery => ({
  ticket: { id: "t", lease: 1, sentMs: 5, owners: ["edge-1"] },
  attempt: 1,
  envelope: {
    ...{ id: "", sentMs: 5, trace: "", backoffMs: null, undelivered: new Uint8Array() },
    ...{ format, body },
  },
});

Deno.test("a token does what it says, and hears of no other queue (QD1)", async () => {
  const before = new Before();
  const send = { may: "send", app: "shop", queue: null } as const;
  const consume = { may: "consume", app: "shop", queue: "sms" } as const;
  assert.equal((await before.ask("shop/sms", "x", {}, send)).status, 202);
  assert.equal((await before.ask("shop/sms/pull", "", {}, consume)).status, 200);
  const rows: [path: string, scope: QueueScope | null, code: ProblemCode][] = [
    ["shop/sms/pull", send, "admin_role"],
    ["shop/sms/ack", send, "admin_role"],
    ["shop/sms", consume, "admin_role"],
    ["shop/sms/batch", consume, "admin_role"],
    ["shop/none/pull", consume, "admin_role"],
    ["none/sms", send, "admin_role"],
    ["shop/none", send, "queue_unknown"],
    ["none/sms", null, "app_unknown"],
    ["shop", null, "app_unknown"],
    ["shop/sms/send", null, "not_found"],
    ["shop/sms/toString", null, "not_found"],
    ["shop/sms/ack/more", null, "not_found"],
  ];
  for (const [path, scope, code] of rows) {
    await before.fails(
      code === "app_unknown" && path === "shop" ? "queue_unknown" : code,
      path,
      "",
      {},
      scope,
    );
  }
  await before.fails("method_not_allowed", "shop/sms", null as unknown as BodyInit, { method: "GET" });
});

Deno.test("a message is stored with what its headers say, and its trace", async () => {
  const before = new Before(), traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const headers = {
    "content-type": "application/vnd.shop+json; charset=utf-8",
    "sojourn-message-id": "one",
    "sojourn-message-delay-ms": "250",
    "sojourn-message-ttl-ms": "60000",
    traceparent,
  };
  assert.deepEqual(await (await before.ask("shop/sms", "[1]", { headers })).json(), { id: "one" });
  const [{ body, ...sent } = { body: bytes("") }] = before.stored;
  assert.equal(text(body), "[1]");
  assert.deepEqual(sent, { format: "json", id: "one", delayMs: 250, ttlMs: 60_000, trace: traceparent });
});

Deno.test("what is no text or no JSON is not stored as such, and any bytes are as bytes (OM1)", () => {
  const of = (type: string | null) => new Headers(type === null ? {} : { "content-type": type });
  const broken = new Uint8Array([0xff, 0xfe]);
  const rows: [type: string | null, body: Uint8Array, format: string | null][] = [
    ["text/plain", bytes("ü"), "text"],
    ["TEXT/csv;x=y", bytes("a,b"), "text"],
    ["text/plain", broken, null],
    ["application/json", bytes("1"), "json"],
    ["application/json", bytes(""), null],
    ["application/json", broken, null],
    ["application/jsonx", broken, "bytes"],
    ["image/png", broken, "bytes"],
    [null, broken, "bytes"],
  ];
  for (const [type, body, format] of rows) {
    const stored = () => messageIn(of(type), body);
    if (format !== null) assert.equal(stored().format, format, `${type}`);
    else assert.throws(stored, (error) => error instanceof Problem && error.code === "message_invalid");
  }
});

Deno.test("a body is shown as what it is, and an app's value as JSON", () => {
  assert.deepEqual(shownBody({ format: "bytes", body: new Uint8Array([255]) }), {
    format: "bytes",
    body: "/w==",
  });
  assert.deepEqual(shownBody({ format: "text", body: bytes("ü") }), { format: "text", body: "ü" });
  const value = { n: 1n, map: new Map([["a", 1]]) };
  assert.deepEqual(shownBody({ format: "value", body: encodeValue(value) }), {
    format: "json",
    body: { n: { $bigint: "1" }, map: { $map: [["a", 1]] } },
  });
});

Deno.test("what a client can't be told of goes back, and what nobody can read is given up (QD2)", async () => {
  const before = new Before(), gone = new AbortController();
  before.pulled = () => {
    gone.abort();
    return Promise.resolve([delivery(bytes("x"))]);
  };
  await before.fails("overloaded", "shop/sms/pull", "", { signal: gone.signal });
  assert.deepEqual(before.said, ["release t"]);
  assert.deepEqual(before.metered, []);
  before.pulled = () => Promise.resolve([delivery(new Uint8Array([1, 2, 3]), "value")]);
  assert.deepEqual(await (await before.ask("shop/sms/pull")).json(), { leaseMs: 30_000, messages: [] });
  assert.deepEqual(before.said, ["release t", "reject t"]);
  assert.deepEqual(before.metered, ["receive shop/sms null"]);
});

Deno.test("so many sends are under way at a site, and so many pulls wait (QD3)", async () => {
  const before = new Before(), { promise, resolve } = Promise.withResolvers<string[]>();
  before.store = () => promise;
  const sends = Array.from({ length: SENDS_AT_ONCE_MAX }, () => before.ask("shop/sms", "x"));
  await before.fails("overloaded", "shop/sms", "x");
  resolve(["id"]);
  assert.ok((await Promise.all(sends)).every(({ status }) => status === 202));
  assert.equal((await before.ask("shop/sms", "x")).status, 202, "there is room again");
  const waiting = Promise.withResolvers<readonly MessageDelivery[]>();
  before.pulled = () => waiting.promise;
  const pulls = Array.from({ length: PULLS_WAITING_MAX }, () => before.ask("shop/sms/pull"));
  await before.fails("overloaded", "shop/sms/pull");
  waiting.resolve([]);
  assert.ok((await Promise.all(pulls)).every(({ status }) => status === 200));
  before.door.close();
  await before.fails("draining", "shop/sms/pull");
});

Deno.test("no program outside has to do with the queue of an app's KV", async () => {
  const before = new Before();
  for (const path of ["shop/kv.queue", "shop/kv.queue/batch", "shop/kv.queue/pull", "shop/kv.queue/ack"]) {
    await before.fails("queue_unknown", path, "{}");
  }
  assert.deepEqual([before.stored, before.metered], [[], []]);
});
