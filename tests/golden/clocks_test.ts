/** What neighbours say of their clocks, against docs/protocol/clocks.md (tests/golden/clocks.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { decodeMessage, encodeMessage } from "../../store/wire/message.ts";
import { runPython, storedVectors } from "./python.ts";

const Vectors = z.strictObject({
  walls: z.array(z.strictObject({ ms: z.number(), bytes: z.string() })),
});
const text = await storedVectors("clocks.json");
const vectors = Vectors.parse(JSON.parse(text));

Deno.test("golden clocks: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("clocks.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden clocks: what a clock says has the bytes that the document gives", () => {
  for (const { ms, bytes } of vectors.walls) {
    const message = { kind: "wall", ms } as const;
    assert.equal(Buffer.from(encodeMessage(message)).toString("hex"), bytes);
    assert.deepEqual(decodeMessage(Uint8Array.from(Buffer.from(bytes, "hex"))), message);
  }
});
