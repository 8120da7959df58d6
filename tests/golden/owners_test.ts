/** Messages of owners groups against docs/protocol/owners.md (tests/golden/owners.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { decodeMessage, encodeMessage } from "../../store/message.ts";
import { runPython, storedVectors } from "./python.ts";

const Vectors = z.strictObject({
  beats: z.array(z.strictObject({ stamp: z.number(), isAnswer: z.boolean(), bytes: z.string() })),
});
const text = await storedVectors("owners.json");
const vectors = Vectors.parse(JSON.parse(text));

Deno.test("golden owners: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("owners.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden owners: beats have the bytes that the document gives", () => {
  for (const { bytes, ...beat } of vectors.beats) {
    const message = { kind: "beat", ...beat } as const;
    assert.equal(Buffer.from(encodeMessage(message)).toString("hex"), bytes);
    assert.deepEqual(decodeMessage(Buffer.from(bytes, "hex")), message);
  }
});
