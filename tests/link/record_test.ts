/** Records by table; what changed ones come to is fuzzed (tests/fuzz/link.ts). */
import { strict as assert } from "node:assert";
import { RECORD_BYTES_MAX } from "../../runtime/link/limits.ts";
import { recordMac } from "../../runtime/link/proof.ts";
import { Dice } from "../fuzz/dice.ts";
import { readAll } from "../fuzz/link.ts";
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
  assert.notDeepEqual(recordMac(key, bytes("x")), recordMac(other, bytes("x")));
});
