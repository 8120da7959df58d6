import { strict as assert } from "node:assert";
import { SystemRandom } from "./system_ports.ts";

Deno.test("randomness has the length asked for, and no byte is given twice", () => {
  const random = new SystemRandom();
  const seen = new Set<string>();
  for (let i = 0; i < 2_000; i++) {
    const bytes = random.bytes(16);
    assert.equal(bytes.length, 16);
    seen.add(bytes.toHex());
  }
  assert.equal(seen.size, 2_000);
  for (const length of [0, 1, 4095, 4096, 4097, 20_000]) assert.equal(random.bytes(length).length, length);
  assert.notDeepEqual(random.bytes(64), new Uint8Array(64));
});
