/** Fetches under way (store/tree/fetches.ts) against a list that is searched. */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { Fetches, type Fetching } from "../../../store/tree/fetches.ts";
import type { Key } from "../../../store/model/key.ts";
import { overlap, pointRange, type Range } from "../../../store/model/range.ts";

const key = fc.constantFrom(..."abcdef").map((letter) => letter as Key);
const range = fc.oneof(
  key.map(pointRange),
  fc.tuple(key, key).map(([a, b]): Range => ({ start: a < b ? a : b, end: (a < b ? b : a) + "\x7f" as Key })),
);
const wanted = fc.record({ range, limit: fc.constantFrom(0, 0, 1, 5), reverse: fc.boolean() });

Deno.test("fetches: one under way serves whoever it holds enough for, and none else", () => {
  const step = fc.record({ wanted, ends: fc.option(fc.nat(5)), asked: range });
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const fetches = new Fetches();
    const model: Fetching[] = [];
    steps.forEach(({ wanted, ends, asked }, id) => {
      const { range, limit, reverse } = wanted;
      const serves = model.filter((f) => {
        const inside = f.range.start <= range.start && f.range.end >= range.end;
        const same = f.range.start === range.start && f.range.end === range.end && f.reverse === reverse;
        return (inside && f.limit === 0) || (same && limit > 0 && f.limit >= limit);
      });
      const found = fetches.serving(wanted);
      if (found === undefined) assert.equal(serves.length, 0);
      else assert.ok(serves.includes(found));
      if (found === undefined) model.push(fetches.begin({ kind: "fetch", id, trace: "", ...wanted }));
      const [gone] = ends === null ? [] : model.splice(ends, 1);
      if (gone !== undefined) fetches.end(gone);
      assert.deepEqual(new Set(fetches.all()), new Set(model));
      assert.equal(fetches.touch(asked), model.some((f) => overlap(f.range, asked)));
    });
  }));
});

Deno.test("fetches: one is given up when nobody wants it any more, and only that very one (F2)", () => {
  const fetches = new Fetches();
  const begin = (id: number) =>
    fetches.begin({ kind: "fetch", id, trace: "", range: pointRange("a" as Key), limit: 0, reverse: false });
  const first = begin(1), waiter = {} as typeof first.waiting extends Set<infer T> ? T : never;
  first.isWanted = true;
  fetches.endUnwanted(first);
  assert.equal(fetches.size, 1, "somebody wants it");
  first.isWanted = false;
  first.waiting.add(waiter);
  fetches.endUnwanted(first);
  assert.equal(fetches.size, 1, "somebody waits for it");
  first.waiting.delete(waiter);
  fetches.endUnwanted(first);
  assert.equal(fetches.size, 0);
  const second = begin(2);
  fetches.endUnwanted(first);
  assert.equal(fetches.get(2), second);
  assert.equal(fetches.touch(pointRange("a" as Key)), true, "another one of the same key is found as before");
});
