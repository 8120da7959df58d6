/** What a checkpoint writes of a structure, and when it writes all of a state anew. */
import assert from "node:assert/strict";
import { types } from "node:util";
import { codeOf } from "../../../functions/vocabulary/errors.ts";
import { decodeContent, encodeContent } from "../../../functions/tracked/content.ts";
import { recognizeProxies } from "../../../functions/tracked/owned.ts";
import { bytes, map, SessionState, StateSegments, value } from "../../../functions/tracked/mod.ts";

class Box {
  named = map<string, number>();
  raw = bytes();
  one = value<unknown>(0);
  large = value<unknown>("");
  plain: unknown = null;
}

function opened(): { box: Box; state: SessionState } {
  const box = new Box();
  return { box, state: new SessionState(box) };
}

Deno.test("a segment of a map grows with the keys that differ, however often they were changed (M2)", () => {
  const { box, state } = opened();
  for (let i = 0; i < 1_000; i++) box.named.set(`key ${i}`, i);
  const whole = state.checkpoint().length;
  const once = (change: () => void) => {
    change();
    return state.checkpoint().length;
  };
  const few = once(() => box.named.set("key 1", -1));
  const many = once(() => {
    for (let i = 0; i < 10_000; i++) box.named.set("key 1", -i);
    for (let i = 0; i < 1_000; i++) {
      box.named.set("brief", i);
      box.named.delete("brief");
    }
  });
  assert.ok(many <= few + 10 && many < whole / 20, `${few}, ${many} of ${whole}`);
});

Deno.test("bytes beyond the length are zero when it grows again, here and where it is loaded (Y2)", () => {
  for (const kept of [1, 255, 256, 257, 300]) {
    const { box, state } = opened();
    box.raw.resize(600);
    for (let at = 0; at < 600; at++) box.raw.put(at, 7);
    const segments = [state.checkpoint()];
    box.raw.resize(kept);
    segments.push(state.checkpoint());
    box.raw.resize(600);
    segments.push(state.checkpoint());
    const again = opened();
    again.state.load(...segments);
    for (const { raw } of [box, again.box]) {
      const read = Array.from({ length: 600 }, (_, at) => raw.at(at));
      assert.deepEqual(read, read.map((_, at) => at < kept ? 7 : 0), `of ${kept}`);
    }
  }
});

Deno.test("the walk at the end of a handler runs no code of an app: no getter, no trap (FW1)", () => {
  recognizeProxies(types.isProxy);
  let ran = 0;
  const getter = {
    get x() {
      ran++;
      return 1;
    },
  };
  const trap = () => (ran++, undefined);
  const proxy = new Proxy({}, { get: trap, ownKeys: () => (ran++, []), getOwnPropertyDescriptor: trap });
  for (
    const odd of [getter, proxy, [getter], { deep: { proxy } }, new Map([[1, getter]]), new Set([proxy])]
  ) {
    const { box, state } = opened();
    state.checkpoint();
    box.plain = odd;
    assert.throws(() => state.check());
    assert.equal(ran, 0);
  }
});

Deno.test("segments are added, and merged where more of them is void than is not (SS1)", () => {
  const { box, state } = opened();
  box.large.set("x".repeat(300_000));
  const segments = new StateSegments([state.checkpoint()]);
  const seen: (readonly Uint8Array[])[] = [];
  for (let i = 0; i < 5; i++) {
    box.one.set(i);
    const before = segments.all;
    segments.add(state.checkpoint());
    assert.deepEqual(segments.all.slice(0, -1), before);
    seen.push(before);
    assert.equal(segments.isWasteful, false, "what is small costs little");
  }
  assert.equal(seen[0]?.length, 1, "what was given out stays as it was");
  let rounds = 0;
  while (!segments.isWasteful) {
    box.large.set("y".repeat(300_000 + rounds));
    segments.add(state.checkpoint());
    assert.ok(++rounds < 10, "it is never merged");
  }
  const merged = segments.merged();
  assert.deepEqual([merged.length, merged.isWasteful], [1, false]);
  assert.ok(merged.bytes < segments.bytes / 2);
  const again = opened();
  again.state.load(...merged.all);
  assert.deepEqual([again.box.one.get(), String(again.box.large.get()).length], [4, 300_000 + rounds - 1]);
});

Deno.test("what was decoded shares no memory with its bytes, and bytes that claim to be long are refused at once (content.ts C2)", () => {
  const encoded = encodeContent([Uint8Array.of(1, 2), new Map([["k", Uint8Array.of(3).buffer]])]);
  const decoded = decodeContent(encoded), again = decodeContent(encoded);
  encoded.fill(0xff);
  assert.deepEqual(decoded, again);
  const long = [0xff, 0xff, 0xff, 0xff, 0x0f];
  for (const kind of [5, 6, 7, 8, 9, 10, 13, 14, 15]) {
    const { heapUsed } = Deno.memoryUsage();
    assert.throws(
      () => decodeContent(Uint8Array.from([2, kind, ...long, ...long])),
      (error) => codeOf(error) === "value_corrupt",
      `${kind}`,
    );
    const grownBytes = Deno.memoryUsage().heapUsed - heapUsed;
    assert.ok(grownBytes < 50_000_000, `${kind}: ${grownBytes} bytes`);
  }
});
