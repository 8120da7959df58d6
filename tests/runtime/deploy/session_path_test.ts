import assert from "node:assert/strict";
import fc from "fast-check";
import { idOfSegment, sessionSegments } from "../../../runtime/deploy/session_path.ts";

/** The id that a site reads from the path of an address. */
function readBack(id: string): string | undefined {
  const url = new URL(
    `http://cloud/_sojourn/admin${sessionSegments({ app: "shop", class: "cart", id })}/log`,
  );
  const found = /^\/_sojourn\/admin\/sessions\/shop\/cart\/([^/]+)\/log$/.exec(url.pathname)?.[1];
  return found === undefined ? undefined : idOfSegment(decodeURIComponent(found));
}

Deno.test("whatever text an id is, its path leads to it and nowhere else (SPT1)", () => {
  for (
    const id of [".", "..", "...", "~", "~.", "~..", "~~..", "%2e%2e", "a/b", "?x=1#y", "\\", "ä\n", " "]
  ) {
    assert.equal(readBack(id), id);
  }
  const ids = fc.string({ unit: fc.constantFrom("~", ".", "/", "%", "2", "e", "\t", "ü"), minLength: 1 });
  fc.assert(fc.property(ids, (id) => assert.equal(readBack(id), id)));
});
