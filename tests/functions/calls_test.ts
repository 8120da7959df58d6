/** Calls of stateful sessions: their bytes, and the stubs that make them. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  CALL_BODY_BYTES_MAX,
  CALL_BYTES_MAX,
  decodeAnswer,
  decodeCall,
  encodeAnswer,
  encodeCall,
  type SessionAnswer,
  type SessionCall,
} from "../../functions/calls/call.ts";
import type { SessionStub } from "../../functions/calls/namespace.ts";
import { namespaceOf, type SessionCaller, sessionIdProblem } from "../../functions/calls/stub.ts";
import { codeOf } from "../../functions/vocabulary/errors.ts";
import { decodeValue, encodeValue } from "../../functions/values/value.ts";
import { CodecError } from "../../store/model/codec.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { noNullPrototype: true });
const text = fc.string({ unit: "grapheme", maxLength: 40 });
const bytes = fc.uint8Array({ maxLength: 200 });
const headers = fc.array(fc.tuple(text, text), { maxLength: 5 });
const body = fc.option(bytes, { nil: null });
const call: fc.Arbitrary<SessionCall> = fc.oneof(
  record({ kind: fc.constant("rpc" as const), method: text.filter((name) => name !== ""), args: bytes }),
  record({
    kind: fc.constant("fetch" as const),
    method: fc.constantFrom("GET", "POST"),
    ...{ url: text, headers, body },
  }),
);
const answer: fc.Arbitrary<SessionAnswer> = fc.oneof(
  record({ kind: fc.constant("value" as const), value: bytes }),
  record({ kind: fc.constant("error" as const), code: text, message: text }),
  record({
    kind: fc.constant("response" as const),
    status: fc.integer({ min: 200, max: 599 }),
    ...{ statusText: text, headers, body },
  }),
);

Deno.test("a call and an answer are read as they were written (K1)", () => {
  fc.assert(fc.property(call, (one) => assert.deepEqual(decodeCall(encodeCall(one)), one)));
  fc.assert(fc.property(answer, (one) => assert.deepEqual(decodeAnswer(encodeAnswer(one)), one)));
});

Deno.test("bytes that are no call throw CodecError, or are the one form of another (K1)", () => {
  const held = (read: (bytes: Uint8Array) => Uint8Array) => (noise: Uint8Array) => {
    try {
      assert.deepEqual(read(noise), noise);
    } catch (error) {
      assert.ok(error instanceof CodecError, String(error));
    }
  };
  const asCall = held((noise) => encodeCall(decodeCall(noise)));
  const asAnswer = held((noise) => encodeAnswer(decodeAnswer(noise)));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => (asCall(noise), asAnswer(noise))));
  fc.assert(fc.property(call, fc.nat(), fc.integer({ min: 1, max: 255 }), (one, at, by) => {
    const bent = encodeCall(one);
    const place = at % bent.length;
    bent[place] = (bent[place] ?? 0) ^ by;
    asCall(bent);
  }));
  assert.throws(() => decodeCall(new Uint8Array(CALL_BYTES_MAX + 1)), CodecError);
});

interface Card {
  stamp(drink: string, times: number): number;
  fail(): void;
}

function setUp(answer: (call: SessionCall) => SessionAnswer) {
  const calls: { id: string; class: string; call: SessionCall }[] = [];
  const caller: SessionCaller = {
    site: "edge-1",
    draw: () => "0123",
    call: (target, call) => {
      calls.push({ ...target, call });
      return Promise.resolve(answer(call));
    },
  };
  const cards = namespaceOf("card", caller);
  return { calls, cards, card: cards.get("ann") as unknown as SessionStub<Card> };
}

Deno.test("a method of a stub sends its arguments and answers the value", async () => {
  const { calls, card } = setUp(() => ({ kind: "value", value: encodeValue(new Map([[1, 2n]])) }));
  assert.deepEqual(await card.stamp("tea", 2), new Map([[1, 2n]]));
  const [sent] = calls;
  assert.deepEqual([sent?.class, sent?.id], ["card", "ann"]);
  assert.ok(sent?.call.kind === "rpc");
  assert.deepEqual([sent.call.method, decodeValue(sent.call.args)], ["stamp", ["tea", 2]]);
});

Deno.test("what a method throws is thrown by its stub, with message and code", async () => {
  const { card } = setUp(() => ({ kind: "error", code: "sold_out", message: "no tea is left" }));
  const error = await card.fail().then(() => null, (thrown) => thrown);
  assert.ok(error instanceof Error);
  assert.deepEqual([codeOf(error), error.message], ["sold_out", "no tea is left"]);
});

Deno.test("a request through a stub has both bodies", async () => {
  const { calls, card } = setUp((call) => ({
    kind: "response",
    status: 201,
    statusText: "Made",
    headers: [["x-a", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]],
    body: call.kind === "fetch" ? call.body : null,
  }));
  const answer = await card.fetch(new Request("http://host/p?q=1", { method: "POST", body: "hello" }));
  assert.deepEqual([answer.status, answer.statusText, await answer.text()], [201, "Made", "hello"]);
  assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
  const [sent] = calls;
  assert.ok(sent?.call.kind === "fetch");
  assert.deepEqual([sent.call.method, sent.call.url], ["POST", "http://host/p?q=1"]);
  assert.equal((await card.fetch("http://host/get")).status, 201);
});

Deno.test("nothing is sent for arguments without a clone, a body that is too long, a WebSocket (S1, S3)", async () => {
  const { calls, card } = setUp(() => ({ kind: "value", value: encodeValue(1) }));
  const refused: [Promise<unknown>, string][] = [
    [card.stamp((() => 1) as never, 1), "value_invalid"],
    [card.stamp("x".repeat(2 * 1024 * 1024), 1), "limit_value"],
    [
      card.fetch("http://host/", { method: "POST", body: new Uint8Array(CALL_BODY_BYTES_MAX + 1) }),
      "limit_body",
    ],
    [card.fetch("http://host/", { headers: { upgrade: "websocket" } }), "not_available"],
  ];
  for (const [promise, code] of refused) await assert.rejects(promise, { code });
  assert.equal(calls.length, 0);
});

Deno.test("a stub is awaited, printed and serialised without a call (S2)", async () => {
  const { calls, card } = setUp(() => ({ kind: "value", value: encodeValue(1) }));
  assert.equal(await card, card);
  assert.match(Deno.inspect(card), /ann/);
  JSON.stringify(card);
  assert.equal(`${card.id}`, "ann");
  assert.equal(calls.length, 0);
});

Deno.test("ids have 1 to 200 bytes of well-formed text; create draws one that begins with the site", () => {
  const { cards } = setUp(() => ({ kind: "value", value: encodeValue(1) }));
  for (const id of ["a", "é".repeat(100), "a/b c\n", "x".repeat(200)]) {
    assert.equal(sessionIdProblem(id), null);
  }
  for (const id of ["", "x".repeat(201), "é".repeat(101), "\ud800", 7, null, undefined]) {
    assert.notEqual(sessionIdProblem(id), null);
    assert.throws(() => cards.get(id as string), { code: "session_id_invalid" });
  }
  assert.equal(cards.create().id, "edge-1.0123");
});
