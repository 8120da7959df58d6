/** What sites ask each other about sessions that wait, against docs/protocol/waits.md (tests/golden/waits.py). */
import assert from "node:assert/strict";
import { z } from "zod";
import {
  decodeWaits,
  decodeWaitsAsked,
  encodeWaits,
  encodeWaitsAsked,
} from "../../functions/sessions/serve/waits.ts";
import { runPython, storedVectors } from "./python.ts";

const call = z.strictObject({ class: z.string(), id: z.string(), request: z.string() });
const Vectors = z.strictObject({
  asked: z.array(
    call.extend({ app: z.string(), to: z.string(), hops: z.number(), bytes: z.string() }),
  ),
  answered: z.array(z.strictObject({ isQueued: z.boolean(), calls: z.array(call), bytes: z.string() })),
});
const text = await storedVectors("waits.json");
const vectors = Vectors.parse(JSON.parse(text));

Deno.test("golden waits: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("waits.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden waits: questions and answers have the bytes that the document gives", () => {
  for (const { bytes, app, class: of, id, request, to, hops } of vectors.asked) {
    const asked = { name: { app, class: of, id }, request, to, hops };
    assert.equal(encodeWaitsAsked(asked).toHex(), bytes);
    assert.deepEqual(decodeWaitsAsked(Uint8Array.fromHex(bytes)), asked);
  }
  for (const { bytes, isQueued, calls } of vectors.answered) {
    const waits = {
      isQueued,
      calls: calls.map(({ class: of, id, request }) => ({ name: { app: "shop", class: of, id }, request })),
    };
    assert.equal(encodeWaits(waits).toHex(), bytes);
    assert.deepEqual(decodeWaits(Uint8Array.fromHex(bytes), "shop"), waits);
  }
});
