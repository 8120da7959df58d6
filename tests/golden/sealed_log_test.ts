/** Sealed logs against docs/protocol/hosts.md (tests/golden/sealed_log.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import type { LogCopy } from "../../functions/sessions/log/asks.ts";
import { markAfter, NO_STATE } from "../../functions/sessions/log/state_parts.ts";
import { openHostLog, SealedSeries } from "../../functions/sessions/sealed/mod.ts";
import { runPython, storedVectors } from "./python.ts";

const hex = z.string().transform((text) => Uint8Array.from(Buffer.from(text, "hex")));
const Piece = z.strictObject({
  ...{ epoch: z.number(), first: z.number(), count: z.number(), wakeAtMs: z.number() },
  bytes: hex,
});
const Base = z.strictObject({
  ...{ at: z.number(), epoch: z.number(), wakeAtMs: z.number(), version: z.string() },
  bytes: hex,
  answers: hex,
  parts: z.array(hex),
});
const pieces = z.array(Piece);
const begins = { epoch: z.number(), salt: hex, pieces };
const Step = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("whole"),
    ...begins,
    seed: hex,
    version: z.string(),
    base: Base.nullable(),
  }),
  z.strictObject({ kind: z.literal("further"), ...begins, after: z.number() }),
  z.strictObject({ kind: z.literal("pieces"), pieces }),
]);
const Vectors = z.strictObject({
  logs: z.array(z.strictObject({
    secret: hex,
    name: z.strictObject({ app: z.string(), class: z.string(), id: z.string() }),
    receiver: z.string(),
    steps: z.array(Step),
    records: z.array(hex),
  })),
});
const text = await storedVectors("sealed_log.json");
const { logs } = Vectors.parse(JSON.parse(text));

Deno.test("golden sealed logs: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("sealed_log.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden sealed logs: records have the bytes that the document gives", () => {
  for (const { secret, name, receiver, steps, records } of logs) {
    const of = { name, receiver };
    let series: SealedSeries | null = null;
    const made = steps.map((step) => {
      if (step.kind === "pieces") return series?.next(step.pieces);
      const start = { secret, of, epoch: step.epoch, salt: step.salt };
      series = step.kind === "whole"
        ? SealedSeries.whole(start, logOf(step))
        : SealedSeries.further(start, { ...step, tag: series?.tag ?? new Uint8Array() });
      return series.first;
    });
    assert.deepEqual(made.map((one) => Buffer.from(one ?? [])), records.map((one) => Buffer.from(one)));
    const opened = openHostLog([new Uint8Array(32), secret], of, records);
    assert.ok(opened.ok);
    const [whole] = steps;
    assert.ok(whole?.kind === "whole");
    assert.deepEqual(opened.copy.log, logOf({ ...whole, pieces: steps.flatMap((step) => step.pieces) }));
    assert.equal(
      opened.copy.through,
      last(steps),
    );
  }
});

/** A whole log as this code has it: the parts of its base's state beside it. */
function logOf({ seed, version, base, pieces }: z.infer<typeof Step> & { readonly kind: "whole" }): LogCopy {
  if (base === null) return { seed, version, base, parts: [], pieces };
  const { parts, ...rest } = base;
  return { seed, version, base: { ...rest, state: markAfter(NO_STATE, parts) }, parts, pieces };
}

const last = (steps: readonly z.infer<typeof Step>[]): number => {
  const piece = steps.flatMap((step) => step.pieces).at(-1);
  return piece === undefined ? 0 : piece.first + piece.count - 1;
};
