/** The map of disjoint ranges (store/model/range_map.ts). */
import assert from "node:assert/strict";
import type { Key } from "../../../store/model/key.ts";
import { RangeMap } from "../../../store/model/range_map.ts";

/** Segment of one-letter keys: `c-e` from "c" up to "e". */
function segment(text: string) {
  const [start = "", end = ""] = text.split("-");
  return { start: start as Key, end: end as Key, value: text };
}

function mapOf(...texts: readonly string[]): RangeMap<string> {
  const map = new RangeMap<string>();
  for (const text of texts) map.insert(segment(text));
  return map;
}

Deno.test("a segment that is empty, or shares a key with another, is refused, and changes nothing (M1)", () => {
  for (const refused of ["a-a", "d-c", "d-d", "f-f", "a-d", "b-f", "c-e", "c-d", "d-e", "d-h", "e-h"]) {
    const map = mapOf("c-e", "e-f", "h-k");
    assert.throws(() => map.insert(segment(refused)), /M1: ranges are disjoint/, refused);
    assert.deepEqual([...map].map(({ value }) => value), ["c-e", "e-f", "h-k"]);
  }
});

Deno.test("segments that only touch at an end stand side by side (M1)", () => {
  const map = mapOf("e-f", "c-e", "h-k", "f-h", "a-c");
  assert.deepEqual([...map].map(({ value }) => value), ["a-c", "c-e", "e-f", "f-h", "h-k"]);
  assert.deepEqual(["b", "c", "e", "g", "h", "k"].map((key) => map.at(key as Key)?.value), [
    "a-c",
    "c-e",
    "e-f",
    "f-h",
    "h-k",
    undefined,
  ]);
});
