import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { median, quantile, record, table } from "./record.ts";

Deno.test("median takes the middle, or the mean of the middle two", () => {
  strictEqual(median([3, 1, 2]), 2);
  strictEqual(median([4, 1, 2, 3]), 2.5);
  throws(() => median([]), RangeError);
});

Deno.test("quantile takes the nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, i) => i + 1);
  strictEqual(quantile(hundred, 0.5), 50);
  strictEqual(quantile(hundred, 0.99), 99);
  strictEqual(quantile([7], 0.99), 7);
});

Deno.test("record compares pair by pair and judges the target", () => {
  const made = record({
    bench: "b",
    case: "c",
    unit: "req/s",
    samples: [100, 300, 200],
    peer: { name: "other", samples: [50, 100, 400] },
    target: { of: "ratio", op: ">=", value: 2 },
  });
  deepStrictEqual(made, {
    bench: "b",
    case: "c",
    unit: "req/s",
    median: 200,
    min: 100,
    max: 300,
    runs: 3,
    peer: "other",
    ratio: 2,
    target: { of: "ratio", op: ">=", value: 2 },
    met: true,
  });
  throws(() => record({ bench: "b", case: "c", unit: "ms", samples: [1], peer: { name: "x", samples: [] } }));
});

Deno.test("record leaves the target open when the run is not comparable", () => {
  const target = { of: "median", op: "<=", value: 1 } as const;
  strictEqual(
    record({ bench: "b", case: "c", unit: "ms", samples: [5], target, comparable: false }).met,
    null,
  );
  strictEqual(record({ bench: "b", case: "c", unit: "ms", samples: [5], target }).met, false);
  strictEqual(record({ bench: "b", case: "c", unit: "ms", samples: [5] }).met, undefined);
});

Deno.test("table shows one line a record", () => {
  const text = table([record({ bench: "b", case: "c", unit: "ms", samples: [1.23456] })]);
  strictEqual(text.split("\n").length, 2);
  strictEqual(text.includes("1.235"), true);
});
