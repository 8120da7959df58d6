import { strict as assert } from "node:assert";
import { decodeRequestHead, encodeRequestHead, nextHop } from "./forward.ts";
import { hopTowards } from "../../functions/vocabulary/site_links.ts";

const TREE = new Map([
  ["cloud", { parent: null }],
  ["core-1", { parent: "cloud" }],
  ["core-2", { parent: "cloud" }],
  ["edge-1", { parent: "core-1" }],
]);

Deno.test("hopTowards goes down where the target is below, else up", () => {
  const rows = [
    ["cloud", "edge-1", "core-1"],
    ["cloud", "core-2", "core-2"],
    ["core-1", "edge-1", "edge-1"],
    ["core-2", "edge-1", "cloud"],
    ["edge-1", "core-2", "core-1"],
    ["edge-1", "cloud", "core-1"],
    ["cloud", "nobody", null],
    ["edge-1", "nobody", "core-1"],
  ] as const;
  for (const [here, to, next] of rows) assert.equal(hopTowards(TREE, here, to), next, `${here} → ${to}`);
});

Deno.test("hopTowards ends in a table with a cycle", () => {
  assert.equal(hopTowards(new Map([["a", { parent: "b" }], ["b", { parent: "a" }]]), "c", "a"), null);
});

Deno.test("a head that has gone too far is refused (FD2)", () => {
  let head = decodeRequestHead(
    encodeRequestHead({ method: "GET", url: "http://h/a/", headers: [], hops: 2 }),
  );
  head = nextHop(nextHop(head));
  assert.equal(head.hops, 0);
  assert.throws(() => nextHop(head), /without arriving/);
});

Deno.test("a head that is none is refused", () => {
  for (const text of ["", "{}", "[]", '{"method":1}', '{"method":"GET","url":"u","headers":[["a"]]}']) {
    assert.throws(() => decodeRequestHead(new TextEncoder().encode(text)), text);
  }
});
