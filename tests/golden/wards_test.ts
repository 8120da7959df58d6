/** Messages about wards against docs/protocol/replication.md (tests/golden/wards.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { byteString, type Key } from "../../store/model/key.ts";
import { decodeMessage, encodeMessage } from "../../store/wire/message.ts";
import type { WardTalk } from "../../store/wire/ward_message.ts";
import { runPython, storedVectors } from "./python.ts";

const Vectors = z.array(z.strictObject({ message: z.looseObject({ kind: z.string() }), bytes: z.string() }));
const Rows = z.array(z.looseObject({ key: z.string(), value: z.string().nullable() }));
const text = await storedVectors("wards.json");
const vectors = Vectors.parse(JSON.parse(text));

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));

/** A message as the vectors have it: keys and values are hexadecimal there. */
function messageOf({ rows, ...rest }: Record<string, unknown>): WardTalk {
  if (rows === undefined) return rest as unknown as WardTalk;
  const read = Rows.parse(rows).map((row) => ({
    ...row,
    key: byteString(bytes(row.key)) as Key,
    value: row.value === null ? null : bytes(row.value),
  }));
  return { ...rest, rows: read } as unknown as WardTalk;
}

Deno.test("golden wards: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("wards.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden wards: messages have the bytes that the document gives", () => {
  for (const vector of vectors) {
    const message = messageOf(vector.message);
    assert.equal(Buffer.from(encodeMessage(message)).toString("hex"), vector.bytes, vector.message.kind);
    assert.deepEqual(decodeMessage(bytes(vector.bytes)), message);
  }
});
