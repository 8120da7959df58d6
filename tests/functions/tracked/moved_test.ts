/** What it costs to move items of a list that was loaded. */
import assert from "node:assert/strict";
import { ListPart } from "../../../functions/tracked/list.ts";
import { EncodedPage } from "../../../functions/tracked/pages.ts";
import { READ, WRITE } from "../../../functions/tracked/part.ts";

const ITEMS = 10_000, MOVES = 100;

Deno.test("a list that was loaded is gone through once for what moves in it, however often", () => {
  const made = new ListPart<number>(), loaded = new ListPart<number>(), other = new ListPart<number>();
  for (let i = 0; i < ITEMS; i++) made.push(i);
  const whole = made[WRITE](true);
  for (const each of [loaded, other]) each[READ](whole);
  let looks = 0;
  const hasInstance = Object.getOwnPropertyDescriptor(EncodedPage, Symbol.hasInstance);
  Object.defineProperty(EncodedPage, Symbol.hasInstance, {
    configurable: true,
    value: (of: unknown) => {
      looks++;
      return Function.prototype[Symbol.hasInstance].call(EncodedPage, of);
    },
  });
  try {
    for (let i = 0; i < MOVES; i++) assert.equal(loaded.shift(), i);
  } finally {
    if (hasInstance === undefined) Reflect.deleteProperty(EncodedPage, Symbol.hasInstance);
  }
  assert.ok(looks >= ITEMS && looks < 2 * ITEMS, `${looks} cells were looked at`);
  loaded.reverse();
  loaded.unshift(-1);
  other[READ](loaded[WRITE](false));
  for (const each of [loaded, other]) {
    assert.deepEqual([each.at(0), each.at(1), each.at(-1)], [-1, ITEMS - 1, MOVES]);
    assert.equal(each.length, ITEMS - MOVES + 1);
  }
});
