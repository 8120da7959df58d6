/** Frames of stateful sessions: one form each, and what they cost. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  decodeToHome,
  decodeToHost,
  encodeToHome,
  encodeToHost,
} from "../../../../functions/sessions/attach/mod.ts";
import { countFrom, cut, encodeKept, tag } from "../../../../functions/sessions/attach/frame_bytes.ts";
import { anyToHome, anyToHost } from "./frame_arbitrary.ts";

Deno.test("frames decode to what was encoded, and the directions share none", () => {
  fc.assert(fc.property(anyToHome, (frame) => {
    const bytes = encodeToHome(frame);
    assert.deepEqual(decodeToHome(bytes), frame);
    if (frame.kind !== "message") assert.throws(() => decodeToHost(bytes), /no frame/);
  }));
  fc.assert(fc.property(anyToHost, (frame) => {
    const bytes = encodeToHost(frame);
    assert.deepEqual(decodeToHost(bytes), frame);
    if (frame.kind !== "output") assert.throws(() => decodeToHome(bytes), /no frame/);
  }));
});

Deno.test("a message has a header of 2 bytes, an output too, and 2 and its length with an increment", () => {
  for (const sequence of [1, 31, 32, 2 ** 40]) {
    for (const received of [0, 255, 256, 2 ** 40]) {
      const tagged = tag("hello");
      assert.equal(encodeKept({ sequence, received, tagged }).length, 2 + 5);
      // A tag of 12 bytes, and the entry of one turn.
      const increment = new Uint8Array(12 + 4);
      const frame = encodeKept({ sequence, received, tagged, increment });
      assert.equal(frame.length - 5, 2 + 1 + 16);
      const read = decodeToHost(frame);
      assert.deepEqual(read, {
        ...{ kind: "output", sequence: sequence % 32, received: received % 256, increment, payload: "hello" },
      });
    }
  }
});

Deno.test("counts follow from low bits wherever less than 256 came since", () => {
  fc.assert(fc.property(fc.nat(2 ** 31), fc.nat(255), (before, more) => {
    assert.equal(countFrom(before, (before + more) & 0xff), before + more);
  }));
});

Deno.test("a text that is cut is the beginning of itself, whole characters, and short enough", () => {
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), (text, max) => {
    const short = cut(text, max);
    assert.ok(text.startsWith(short) && new TextEncoder().encode(short).length <= max);
  }));
});
