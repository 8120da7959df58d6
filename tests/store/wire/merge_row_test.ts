/** Rows that no site could join with another: they are refused where they come in (store/model/merge.ts, G3). */
import { strict as assert } from "node:assert";
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { packKey } from "../../../store/model/key.ts";
import { contribute, joinRows } from "../../../store/model/merge.ts";
import { VALUE_TAG } from "../../../store/model/value.ts";
import { readWireRows, type WireRow, writeWireRows } from "../../../store/wire/wire_row.ts";

const number = (value: number): Uint8Array => {
  const out = new Uint8Array(9);
  out[0] = VALUE_TAG.number;
  new DataView(out.buffer).setFloat64(1, value, true);
  return out;
};
const rowOf = (value: Uint8Array): WireRow => ({
  ...{ key: packKey(["x"]), value, clock: 9, replica: 1, known: 0, expiresAtMs: 0 },
});
const sent = (value: Uint8Array): WireRow[] => {
  return readWireRows(new Reader(writeWireRows(new Writer(64), [rowOf(value)]).done()));
};

const one = contribute(undefined, "sum", number(1), { clock: 1, replica: 1 });
const onBase = contribute({ ...rowOf(number(5)), clock: 2, replica: 3 }, "max", number(7), {
  clock: 3,
  replica: 2,
});
const two =
  joinRows(rowOf(one), rowOf(contribute(undefined, "sum", number(2), { clock: 4, replica: 2 }))).value;

Deno.test("merge values come over a link as they were, and plain values of any kind", () => {
  assert.ok(two !== null);
  for (const value of [one, onBase, two, number(1), Uint8Array.of(), Uint8Array.of(0xff, 1, 2)]) {
    assert.deepEqual(sent(value), [rowOf(value)]);
  }
});

Deno.test("a merge value that none can be is refused, each byte of one changed or cut off", () => {
  const refused = (value: Uint8Array) => assert.throws(() => sent(value), CodecError);
  refused(Uint8Array.of(VALUE_TAG.merge));
  refused(Uint8Array.of(VALUE_TAG.merge, 9));
  refused(Uint8Array.of(VALUE_TAG.merge, 0, 1, 1, 1, 2, VALUE_TAG.merge, 0, 0)); // its base is a merge value
  assert.ok(two !== null);
  for (let end = 1; end < two.length; end++) refused(two.subarray(0, end));
  let joined = 0;
  for (let at = 1; at < two.length; at++) {
    for (const byte of [0, 1, 2, 7, 0x7f, 0x80, 0xff]) {
      const value = two.slice();
      value[at] = byte;
      let came: WireRow[];
      try {
        came = sent(value);
      } catch (error) {
        assert.ok(error instanceof CodecError, String(error));
        continue;
      }
      for (const row of came) joinRows(row, rowOf(onBase)); // what is not refused can be joined
      joined++;
    }
  }
  assert.ok(joined > 0);
});
