import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { chachaBlock, RandomStream, STREAM } from "./random.ts";

const key = Uint8Array.from({ length: 32 }, (_, i) => i);

Deno.test("a block is that of RFC 8439, section 2.3.2", () => {
  const block = chachaBlock(key, 1, [0x09000000, 0x4a000000, 0]);
  assert.equal(
    block.toHex(),
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e" +
      "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
  );
});

Deno.test("a stream is the key stream that OpenSSL makes", () => {
  const stream = new RandomStream(key, STREAM.crypto, 7);
  const drawn = new Uint8Array(1000);
  for (let at = 0, step = 1; at < drawn.length; at += step++) stream.fill(drawn.subarray(at, at + step));
  // Four bytes of counter, then the nonce.
  const iv = new Uint8Array(16);
  const view = new DataView(iv.buffer);
  view.setUint32(4, STREAM.crypto * 2 ** 24, true);
  view.setUint32(8, 7, true);
  const cipher = createCipheriv("chacha20", key, iv);
  const expected = cipher.update(new Uint8Array(1000));
  cipher.final();
  assert.deepEqual(drawn, new Uint8Array(expected));
});

Deno.test("a stream goes on where another stopped", () => {
  const one = new RandomStream(key, STREAM.math);
  const all = Array.from({ length: 50 }, () => one.float());
  for (const cut of [0, 1, 7, 8, 9, 33]) {
    const before = new RandomStream(key, STREAM.math);
    for (let i = 0; i < cut; i++) before.float();
    const after = new RandomStream(key, STREAM.math, 0, before.position);
    assert.deepEqual(Array.from({ length: 50 - cut }, () => after.float()), all.slice(cut));
  }
  assert.ok(all.every((value) => value >= 0 && value < 1));
});

Deno.test("two purposes and two epochs have streams of their own (R2)", () => {
  const drawn = [
    new RandomStream(key, STREAM.math),
    new RandomStream(key, STREAM.crypto),
    new RandomStream(key, STREAM.crypto, 1),
    new RandomStream(key, STREAM.crypto, 2 ** 32),
  ].map((stream) => stream.float());
  assert.equal(new Set(drawn).size, drawn.length);
});
