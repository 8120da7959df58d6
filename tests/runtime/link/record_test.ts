/** Records by table; what changed ones come to is fuzzed (tests/fuzz/link.ts). */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { strict as assert } from "node:assert";
import { RECORD_BYTES_MAX } from "../../../runtime/link/limits.ts";
import { MAC_BYTES, RecordMac } from "../../../runtime/link/proof.ts";
import { Dice } from "../../fuzz/dice.ts";
import { readAll } from "../../fuzz/link.ts";
import { bytes } from "./sites.ts";

Deno.test("records: a length beyond the limit is refused before its bytes are waited for", async () => {
  const key = new Uint8Array(32);
  const dice = new Dice(1);
  for (const length of [0, RECORD_BYTES_MAX + 1, 0xffffffff]) {
    const stream = new Uint8Array(100);
    new DataView(stream.buffer).setUint32(0, length);
    assert.deepEqual(await readAll(key, stream, dice), [[], true]);
  }
});

Deno.test("records: a MAC under a key that differs in one bit is another MAC", () => {
  const key = new Uint8Array(32);
  const other = key.slice();
  other[31] = 1;
  assert.notDeepEqual(new RecordMac(key).of(bytes("x")), new RecordMac(other).of(bytes("x")));
});

Deno.test("records: a MAC is the first half of HMAC-SHA256, for keys of all lengths that fit a block", () => {
  for (const length of [0, 1, 32, 63, 64]) {
    const key = Uint8Array.from({ length }, (_, i) => 7 * i + length);
    for (const size of [0, 12, 100, 20_000]) {
      const text = Uint8Array.from({ length: size }, (_, i) => i);
      const expected = createHmac("sha256", key).update(text).digest().subarray(0, MAC_BYTES);
      assert.deepEqual(Buffer.from(new RecordMac(key).of(text)), expected);
    }
  }
});
