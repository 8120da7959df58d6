/** Packets of homes against docs/protocol/homes.md (tests/golden/homes.py). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { decodeLogPacket, encodeLogPacket, type LogPacket } from "../../functions/sessions/log/packet.ts";
import { runPython, storedVectors } from "./python.ts";

const Vectors = z.strictObject({
  packets: z.array(z.strictObject({ packet: z.looseObject({}), bytes: z.string() })),
});
const text = await storedVectors("homes.json");
const vectors = Vectors.parse(JSON.parse(text));

/** Fields that are bytes, and stand in the vectors as hexadecimal text. */
const BYTES = new Set(["bytes", "answers", "seed", "parts"]);
const filled = (value: unknown, key = ""): unknown => {
  if (key === "parts" && Array.isArray(value)) return value.map((one) => filled(one, key));
  if (BYTES.has(key) && typeof value === "string") return Uint8Array.from(Buffer.from(value, "hex"));
  if (Array.isArray(value)) return value.map((one) => filled(one));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, name)]));
};

Deno.test("golden homes: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("homes.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(text));
});

Deno.test("golden homes: packets have the bytes that the document gives", () => {
  for (const { bytes, packet } of vectors.packets) {
    const wanted = filled(packet) as LogPacket;
    assert.equal(Buffer.from(encodeLogPacket(wanted)).toString("hex"), bytes);
    assert.deepEqual(decodeLogPacket(Uint8Array.from(Buffer.from(bytes, "hex"))), wanted);
  }
});
