/** Calls between sites, and what stands in a log beside an isolate's own bytes. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  bodyOf,
  CHAIN_MAX,
  decodeForwarded,
  decodeHeard,
  decodeReply,
  encodeForwarded,
  encodeForwardedReply,
  type ForwardedCall,
  type ForwardedReply,
  type HeardAnswers,
  readBody,
} from "../../../../functions/sessions/serve/forwarded.ts";
import { HOPS_MAX } from "../../../../functions/sessions/serve/limits.ts";
import { Hearing } from "../../../../functions/sessions/serve/hearing.ts";
import { CALL_BYTES_MAX } from "../../../../functions/calls/call.ts";
import type { TokenState } from "../../../../store/api/api.ts";
import { pathNaming } from "../../../../store/api/token_path.ts";
import { CodecError } from "../../../../store/model/codec.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { noNullPrototype: true });
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const number = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const token: fc.Arbitrary<TokenState> = record({
  session: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  ...{ sequence: number, replica: number, clock: number, open: fc.boolean() },
  path: fc.array(record({ position: number, isPending: fc.boolean() }), { maxLength: 12 }),
}).map(({ path, ...others }) => ({ ...others, ...pathNaming(path) }));
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 100 }),
  fc.integer({ min: 60_000, max: 70_000 }).map((length) => new Uint8Array(length).fill(7)),
);
const call: fc.Arbitrary<ForwardedCall> = record({
  name: record({ app: text, class: text, id: text }),
  ...{ request: text, to: text, hops: fc.integer({ min: 0, max: HOPS_MAX }) },
  chain: fc.array(text, { maxLength: CHAIN_MAX }),
  token: fc.option(token, { nil: null }),
  call: bytes,
});
const reply: fc.Arbitrary<ForwardedReply> = fc.oneof(
  record({
    kind: fc.constant("answer" as const),
    answer: bytes,
    token: fc.option(token, { nil: null }),
  }),
  record({ kind: fc.constant("elsewhere" as const), site: text }),
  record({ kind: fc.constant("problem" as const), code: text, message: text }),
);

Deno.test("a call and its reply cross a link as they are, long ones as bodies (F1)", async () => {
  await fc.assert(fc.asyncProperty(call, async (one) => {
    const { head, body } = encodeForwarded(one);
    assert.ok(head.length < 100_000);
    assert.deepEqual(decodeForwarded(head, await readBody(bodyOf(body))), one);
  }));
  await fc.assert(fc.asyncProperty(reply, async (one) => {
    const { head, body } = encodeForwardedReply(one);
    assert.deepEqual(decodeReply(head, await readBody(bodyOf(body))), one);
  }));
});

Deno.test("word of answers that have arrived is told in batches, to the site that gave each", async () => {
  const told: { site: string; heard: HeardAnswers[] }[] = [];
  const hearing = new Hearing((site, head) => {
    told.push({ site, heard: decodeHeard(head) });
    return Promise.reject(new Error("lost on the way"));
  }, SYSTEM_CLOCK);
  const name = { app: "a", class: "b", id: "c" };
  for (let i = 0; i < 250; i++) hearing.add(i % 2 === 0 ? "edge-1" : "edge-2", { name, request: `r${i}` });
  while (told.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(told.map(({ site, heard }) => [site, heard.length]), [["edge-1", 125], ["edge-2", 125]]);
  for (let i = 0; i < 200; i++) hearing.add("edge-1", { name, request: `s${i}` });
  assert.equal(told.at(-1)?.heard.length, 200, "many are told at once");
  assert.deepEqual(told.at(-1)?.heard.at(-1), { name, request: "s199" });
  hearing.close();
});

Deno.test("heads that are none throw CodecError (F1, F2)", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (noise) => {
    for (const read of [decodeForwarded, decodeReply]) {
      try {
        read(noise, null);
      } catch (error) {
        assert.ok(error instanceof CodecError, String(error));
      }
    }
  }));
  const long = { name: { app: "a", class: "b", id: "c" }, request: "r", to: "s", hops: 1, token: null };
  const chain = Array.from({ length: CHAIN_MAX + 1 }, () => "x");
  const far = encodeForwarded({ ...long, hops: HOPS_MAX + 1, chain: [], call: new Uint8Array() });
  assert.throws(() => decodeForwarded(far.head, null), CodecError);
  const { head } = encodeForwarded({ ...long, chain, call: new Uint8Array() });
  assert.throws(() => decodeForwarded(head, null), CodecError);
});

Deno.test("a body above the limit is refused while it comes", async () => {
  let pulled = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulled++;
      controller.enqueue(new Uint8Array(256 * 1024));
    },
  });
  await assert.rejects(readBody(endless), CodecError);
  assert.ok(pulled * 256 * 1024 < 2 * CALL_BYTES_MAX);
});
