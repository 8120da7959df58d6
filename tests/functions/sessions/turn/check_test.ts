/** The rolling check: whatever a replay does otherwise is found at that turn, and before anything of it leaves. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import { codeOfCheckpoint } from "../../../../functions/sessions/turn/checkpoint.ts";
import { readEntries, writeTurn } from "../../../../functions/sessions/turn/log_entry.ts";
import { type EntryCheck, RollingCheck } from "../../../../functions/sessions/turn/rolling_check.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { Writer } from "../../../../store/model/codec.ts";
import { stage } from "./robot.ts";
import { inMacrotask } from "./run.ts";
import { Solo } from "./solo.ts";

const request = (method: string, ...args: unknown[]) => ({
  kind: "request" as const,
  request: method,
  chain: [],
  bytes: encodeCall({ kind: "rpc", method, args: encodeValue(args) }),
});

/** What no log has. */
let outside = 0;

class Leaky extends Session {
  tell(): number {
    return outside;
  }
  remind(): void {
    this.setTimer("x", outside);
  }
  later(): void {
    stage.loop?.current?.setLocal(outside, () => {});
  }
}

Deno.test("a replay that does otherwise is found in each of 3,000 sessions, whatever it gives out (RK2, program.ts PG2)", () =>
  inMacrotask(() => {
    for (const method of ["tell", "remind", "later"]) {
      for (let i = 0; i < 1_000; i++) {
        outside = i;
        const { entries } = new Solo(Leaky).open().deliver(request(method));
        outside = i + 1;
        const again = new Solo(Leaky).open({ entries });
        assert.equal(again.parked?.code, "diverged", `${method} ${i}`);
        assert.deepEqual(again.commits, [], "nothing left");
      }
    }
  }));

/** What a check is given. */
const given = fc.oneof(
  fc.maxSafeInteger(),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.uint8Array({ maxLength: 40 }),
);

const markOf = (all: readonly (number | string | Uint8Array)[]): EntryCheck => {
  const check = new RollingCheck();
  check.widen();
  for (const each of all) {
    if (typeof each === "number") check.number(each);
    else if (typeof each === "string") check.text(each);
    else check.bytes(each);
  }
  return check.mark();
};

Deno.test("a check is another where anything of what it was given is another, or in another order (RK1)", () => {
  const differ = (a: Parameters<typeof markOf>[0], b: Parameters<typeof markOf>[0]) => {
    const isSame = JSON.stringify(a.map(shown)) === JSON.stringify(b.map(shown));
    assert.equal(JSON.stringify(markOf(a)) === JSON.stringify(markOf(b)), isSame);
  };
  fc.assert(fc.property(fc.array(given, { maxLength: 6 }), fc.array(given, { maxLength: 6 }), differ));
  fc.assert(fc.property(fc.array(given, { maxLength: 6 }), fc.nat(), fc.nat(), (all, a, b) => {
    differ(all, all.toSpliced(a % (all.length + 1), 1));
    if (all.length < 2) return;
    const [from, to] = [a % all.length, b % all.length];
    differ(all, all.with(from, all[to] ?? 0).with(to, all[from] ?? 0));
  }));
  // Each bit of short and long texts and bytes.
  for (const length of [1, 7, 8, 9, 31]) {
    const bytes = new Uint8Array(length);
    for (let bit = 0; bit < 8 * length; bit++) {
      const other = bytes.slice();
      other[bit >> 3] = 1 << (bit & 7);
      differ([bytes, 1], [other, 1]);
      const text = (of: Uint8Array) => String.fromCharCode(...of, 0x100);
      differ([text(bytes)], [text(other)]);
    }
  }
});

const shown = (each: number | string | Uint8Array): unknown =>
  typeof each === "object" ? { hex: each.toHex() } : each;

Deno.test("half a million messages that differ in a bit have as many checks, in either word", () => {
  const [low, high] = [new Set<number>(), new Set<number>()];
  for (let i = 0; i < 500_000; i++) {
    const check = new RollingCheck();
    check.widen();
    check.bytes(Uint8Array.of(i, i >> 8, i >> 16, 0, 0, 0, 0, 0, 9));
    low.add(check.low);
    high.add(check.high);
  }
  // Of words drawn at random some 29 would meet.
  assert.ok(low.size > 499_900 && high.size > 499_900, `${low.size} and ${high.size}`);
});

Deno.test("entries with the check of before stand before all others, and nowhere else (RK3, LE3)", () =>
  inMacrotask(() => {
    outside = 5;
    const solo = new Solo(Leaky).open().deliver(request("tell"));
    const old = new Writer();
    old.raw(solo.entries);
    writeTurn(old, { kind: "local", local: 9 }, { clocks: [], storeClock: null, check: 7 }, 0);
    assert.equal(new Solo(Leaky).open({ entries: old.done() }).parked?.code, "log_corrupt");
  }));

class Drawing extends Session {
  draw(): string {
    const bytes = new Uint8Array(8);
    stage.loop?.current?.crypto.fill(bytes);
    return bytes.toHex();
  }
}

Deno.test("other code that goes on in the same epoch draws nothing of crypto again that was drawn in it", () =>
  inMacrotask(() => {
    const first = new Solo(Drawing).open().deliver(request("draw"));
    first.loop.checkpointNow(1);
    first.run();
    const [checkpoint] = first.checkpoints;
    assert.equal(codeOfCheckpoint(checkpoint?.bytes ?? new Uint8Array(0)), "code");
    const next = new Solo(Drawing).open({ checkpoint: checkpoint ?? null, code: "code 2" });
    next.deliver({ ...request("draw"), request: "again" });
    const drawn = [first, next].map(({ commits }) =>
      commits.flatMap(({ outputs }) => outputs)[0]?.bytes.toHex()
    );
    assert.notEqual(drawn[0], drawn[1]);
    const again = new Solo(Drawing).open({
      ...{ checkpoint: next.checkpoints.at(-1) ?? null, code: "code 2", entries: entriesAfter(next) },
    });
    assert.equal(again.parked, null);
  }));

/** Behind its newest checkpoint. */
function entriesAfter(solo: Solo): Uint8Array {
  const at = solo.checkpoints.at(-1)?.at ?? 0;
  const writer = new Writer();
  for (const { first, entries } of solo.commits) if (first > at) writer.raw(entries);
  assert.ok(readEntries(writer.view()).length > 0);
  return writer.done();
}
