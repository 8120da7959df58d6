import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeReply, encodeReply } from "../../../examples/compressor/wire.ts";
import { compress, expand, type Window, WINDOW_BYTES } from "../../../examples/compressor/window.ts";

const window = (): Window => ({ bytes: new Uint8Array(WINDOW_BYTES), written: 0 });

Deno.test("what the compressor sends is what its client expands, whatever was sent before", () => {
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.integer({ min: 0, max: 80_000 }).map((length) => new Uint8Array(length).map((_, i) => i * i >> 5)),
  );
  fc.assert(fc.property(fc.array(body, { maxLength: 12 }), (bodies) => {
    const here = window(), there = window();
    for (const plain of bodies) {
      assert.deepEqual(expand(there, compress(here, plain), plain.length), plain);
      assert.equal(there.written, here.written);
      assert.deepEqual(there.bytes, here.bytes, "W1");
    }
  }));
});

Deno.test("a page that was sent before costs next to nothing when it is sent again", () => {
  const page = crypto.getRandomValues(new Uint8Array(20_000));
  const here = window();
  assert.ok(compress(here, page).length >= 20_000);
  assert.ok(compress(here, page).length < 500);
});

Deno.test("a client refuses a reply that is longer, or shorter, than it says", () => {
  const packed = compress(window(), new Uint8Array(50_000));
  assert.throws(() => expand(window(), packed, 10_000), /more than 10000 bytes came/);
  assert.throws(() => expand(window(), packed, 60_000), /50000 bytes came for 60000/);
});

Deno.test("a reply reads back when it was written, and nothing else is one", () => {
  const head = {
    n: 7,
    status: 200,
    headers: [["content-type", "text/html"]] as [string, string][],
    bytes: 3,
  };
  const read = decodeReply(encodeReply(head, Uint8Array.of(1, 2, 3)));
  assert.deepEqual([read.head, [...read.packed]], [head, [1, 2, 3]]);
  for (const bytes of [[], [0, 0, 0, 9, 1], [255, 255, 255, 255], [0, 0, 0, 2, 123, 125]]) {
    assert.throws(() => decodeReply(Uint8Array.from(bytes)));
  }
});
