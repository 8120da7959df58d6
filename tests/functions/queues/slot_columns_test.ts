/** Lists and times of slots against the plain thing (functions/queues/slot_columns.ts). */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { SlotColumn, SlotLists, SlotTimes } from "../../../functions/queues/slot_columns.ts";

const slots = fc.nat(40);

Deno.test("a column has what was set, and 0 elsewhere, however long it grows", () => {
  const column = new SlotColumn();
  column.set(3, 7);
  column.set(200_000, 2 ** 32 - 1);
  assert.deepEqual([column.get(3), column.get(4), column.get(200_000), column.get(10 ** 7)], [
    7,
    0,
    2 ** 32 - 1,
    0,
  ]);
});

Deno.test("lists of slots are what arrays would be (SL1)", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("put", "first", "remove"), slots, fc.nat(2)));
  fc.assert(fc.property(steps, (all) => {
    const lists = new SlotLists(), numbers = [lists.create(), lists.create(), lists.create()];
    const plain: number[][] = [[], [], []];
    for (const [step, slot, at] of all) {
      const list = numbers[at] ?? 0, inside = plain.find((one) => one.includes(slot));
      if (step === "remove") {
        lists.remove(slot);
        inside?.splice(inside.indexOf(slot), 1);
      } else if (inside !== undefined) assert.throws(() => lists.put(list, slot), /SL1/);
      else {
        lists.put(list, slot, step === "first");
        if (step === "first") plain[at]?.unshift(slot);
        else plain[at]?.push(slot);
      }
    }
    for (const [at, list] of numbers.entries()) {
      const found: number[] = [];
      for (let slot = lists.first(list); slot !== null; slot = lists.after(slot)) found.push(slot);
      assert.deepEqual(found, plain[at]);
      assert.equal(lists.count(list), found.length);
      for (const slot of found) assert.equal(lists.of(slot), list);
    }
  }));
});

Deno.test("slots come out in the order of their times (SH1)", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("set", "set", "delete", "take"), slots, fc.nat(50)));
  fc.assert(fc.property(steps, (all) => {
    const times = new SlotTimes(), plain = new Map<number, number>();
    for (const [step, slot, ms] of all) {
      const least = Math.min(...plain.values());
      assert.deepEqual([times.leastMs, times.count], [least, plain.size]);
      if (step === "set") {
        times.set(slot, ms);
        plain.set(slot, ms);
      } else if (step === "delete") {
        times.delete(slot);
        plain.delete(slot);
      } else {
        const taken = times.takeDue(ms);
        if (least > ms) assert.equal(taken, null);
        else {
          assert.equal(plain.get(taken ?? -1), least);
          plain.delete(taken ?? -1);
        }
      }
      for (let one = 0; one <= 40; one++) assert.equal(times.get(one), plain.get(one));
    }
  }));
});

Deno.test("a hundred thousand slots go in and come out in order", () => {
  const times = new SlotTimes();
  for (let slot = 0; slot < 100_000; slot++) times.set(slot, (slot * 7_919) % 100_003);
  let last = -1;
  for (let left = 100_000; left > 0; left--) {
    const ms = times.leastMs;
    assert.ok(ms >= last);
    last = ms;
    assert.notEqual(times.takeDue(Infinity), null);
  }
});
