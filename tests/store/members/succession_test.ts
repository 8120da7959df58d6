/** Which incarnation goes on with the rows of which (store/members/succession.ts). */
import assert from "node:assert/strict";
import { Succession } from "../../../store/members/succession.ts";

/** Ends: by number, the clock that it ended with and who is next. */
function told(
  ends: Readonly<Record<number, { stable: number; next?: number; settled?: boolean }>>,
): Succession {
  const succession = new Succession((number) => ends[number]?.stable);
  for (const [number, { next, settled }] of Object.entries(ends)) {
    succession.ended(Number(number), next, settled === true);
  }
  return succession;
}

const word = (by: number, clock: number) => ({ floor: 0, known: 0, whole: true, clock, by });

Deno.test("a succession names who goes on, or that nobody does, when numbers follow each other", () => {
  const rows: readonly (readonly [string, Parameters<typeof told>[0], number, number | null, boolean])[] = [
    ["one that lives is its own heir", {}, 3, 3, false],
    ["one that ended without a next has none", { 3: { stable: 5 } }, 3, null, false],
    ["one that moved has its successor", { 3: { stable: 5, next: 7 } }, 3, 7, true],
    ["over several moves", { 3: { stable: 5, next: 7 }, 7: { stable: 6, next: 9 } }, 3, 9, true],
    ["whose last disk was lost", { 3: { stable: 5, next: 7 }, 7: { stable: 6 } }, 3, null, false],
    ["one that is settled is not waited for", { 3: { stable: 8, next: 7, settled: true } }, 3, 7, false],
  ];
  for (const [says, ends, number, heir, isUnsettled] of rows) {
    assert.equal(told(ends).heir(number), heir, says);
    assert.equal(told(ends).isUnsettled(number), isUnsettled, says);
  }
});

Deno.test("a succession bounds the stable clock by what is on its way, and by nothing else (U1)", () => {
  const ends = { 3: { stable: 50, next: 7 }, 4: { stable: 20, next: 8, settled: true }, 5: { stable: 10 } };
  assert.equal(told(ends).bound(90), 50);
  assert.equal(told(ends).bound(40), 40);
  assert.equal(told({ 4: ends[4] }).bound(90), 90);
  // Its successor is gone for good: nobody brings anything more.
  assert.equal(told({ ...ends, 7: { stable: 60 } }).bound(90), 90);
});

Deno.test("a succession follows the site's own word when two parents gave it a number (U3)", () => {
  const succession = told({ 3: { stable: 5, next: 6 } });
  succession.given(6, 3);
  succession.given(7, 3);
  assert.equal(succession.isUnused(6), false, "nobody has said anything yet");
  succession.kept(3, word(7, 40));
  assert.deepEqual([succession.isUnused(6), succession.isUnused(7)], [true, false]);
  assert.equal(succession.heir(3), 7);
  assert.deepEqual([succession.unsettledBefore(7), succession.unsettledBefore(6)], [[3], []]);
});

Deno.test("a succession goes on with the number that a site kept when it says that it never took another", () => {
  // A parent that the site had left gave it 6, and ended 3 for that; the site is still 3.
  const succession = told({ 3: { stable: 5, next: 6 }, 6: { stable: 0 } });
  assert.deepEqual([succession.heir(3), succession.last(3)], [null, 6], "as after the loss of its disk");
  succession.unused(6);
  assert.deepEqual([succession.heir(3), succession.last(3)], [3, 3]);
  assert.deepEqual([succession.isUnused(6), succession.isUnsettled(3)], [true, true]);
  assert.deepEqual(
    [succession.isOver(6), succession.isOver(3)],
    [true, false],
    "nobody brings more of it (U2)",
  );
  succession.kept(3, word(7, 40));
  assert.deepEqual([succession.heir(3), succession.last(3)], [7, 7]);
});

Deno.test("a succession's last is who spoke last, whether or not it lives", () => {
  const succession = told({ 3: { stable: 5, next: 6 }, 6: { stable: 9 } });
  assert.deepEqual([succession.last(3), succession.last(6), succession.last(8)], [6, 6, 8]);
  // At the site itself its own word stands before the end that its parent wrote has come.
  succession.kept(8, word(9, 40));
  assert.equal(succession.last(8), 9);
});

Deno.test("a succession in which a number is followed by an earlier one does not lead round and round", () => {
  const succession = told({
    3: { stable: 5, next: 7 },
    7: { stable: 6, next: 3 },
    8: { stable: 6, next: 8 },
  });
  assert.deepEqual([succession.heir(3), succession.last(3), succession.heir(8)], [null, 7, null]);
  succession.kept(7, word(3, 40));
  assert.deepEqual([succession.last(3), succession.unsettledBefore(7)], [7, [3]]);
});
