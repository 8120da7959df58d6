import { strict as assert } from "node:assert";
import { ExchangeTable } from "./exchange_table.ts";

Deno.test("an exchange table agrees with a Map when exchanges come, last and go (X1)", () => {
  const table = new ExchangeTable<{ id: number }>(), truth = new Map<number, { id: number }>();
  for (let id = 1; id < 20_000; id++) {
    table.add({ id });
    truth.set(id, { id });
    // Every hundredth lasts, and the others go after a few more have come.
    for (const gone of [id - 7, id - 5_000]) {
      if (gone % 100 === 0 && gone > id - 5_000) continue;
      table.delete(gone);
      truth.delete(gone);
    }
    assert.equal(table.size, truth.size);
    assert.equal(table.get(id)?.id, id);
    assert.equal(table.get(id - 7)?.id, truth.get(id - 7)?.id);
  }
  assert.deepEqual([...table.values()].map(({ id }) => id).sort(), [...truth.keys()].sort());
  for (let id = 0; id < 21_000; id++) assert.equal(table.get(id)?.id, truth.get(id)?.id);
  table.clear();
  assert.deepEqual([table.size, [...table.values()], table.get(19_900)], [0, [], undefined]);
});
