/** Names of a packet, written and read (store/model/names.ts). */
import assert from "node:assert/strict";
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { Names, ReadNames } from "../../../store/model/names.ts";

/** What a packet lists, and the places that its entries use. */
function read(listed: readonly string[], places: readonly number[]): string[] {
  const w = new Writer();
  w.list(listed, (name) => w.text(name));
  const names = new ReadNames(new Reader(w.done()));
  const found = places.map((place) => names.at(place));
  names.end();
  return found;
}

Deno.test("names are written once each, in the order of their first use, and are read so (NL1)", () => {
  const used = ["b", "a", "b", "c", "a"];
  const names = new Names(), w = new Writer();
  for (const name of used) names.add(name);
  names.write(w);
  const r = new Reader(w.done()), listed = r.list(() => r.text());
  assert.deepEqual(listed, ["b", "a", "c"]);
  const places = used.map((name) => names.place(name));
  assert.deepEqual(places, [0, 1, 0, 2, 1]);
  assert.deepEqual(read(listed, places), used);
});

Deno.test("a list of names in any other form is refused (NL1)", () => {
  const rows: readonly (readonly [listed: readonly string[], places: readonly number[], says: RegExp])[] = [
    [["a", "b", "a"], [0, 1, 2], /lists a name twice/],
    [["a\nb"], [0], /has a line break/],
    [["a", "b"], [0], /lists a name that it does not use/],
    [["a"], [], /lists a name that it does not use/],
    [["a", "b"], [1, 0], /not in the packet's list/],
    [["a", "b", "c"], [0, 2, 1], /not in the packet's list/],
    [["a"], [0, 1], /not in the packet's list/],
  ];
  for (const [listed, places, says] of rows) {
    assert.throws(
      () => read(listed, places),
      (error) => error instanceof CodecError && says.test(error.message),
      `${listed} ${places}`,
    );
  }
});
