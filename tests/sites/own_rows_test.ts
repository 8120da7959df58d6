/** A write with a check that is made again since the one before is gone with its disk, and the same where that is wrong. */
import { strict as assert } from "node:assert";
import { packKey } from "../../store/model/key.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import { check } from "./checker.ts";
import { APP } from "./deployed.ts";
import { Ledger } from "./ledger.ts";
import { OwnRows } from "./own_rows.ts";
import { textValue } from "./program.ts";

const VALUE = "1:2:0:swap a";
const FIRST = 10, SECOND = 20;

/** One version of it. */
const swap = (clock: number): Row => ({
  ...{ key: packKey(["a", APP, "swap", "x0"]), value: textValue(VALUE), clock, replica: 1 },
  ...{ position: clock, known: 0, expiresAtMs: 0 },
});

/** How often something is said of it, and let pass. @param told the version that the log has. */
function judged(happens: (rows: OwnRows) => void, told = SECOND): [wrong: number, excused: number] {
  const rows = new OwnRows("root"), ledger = new Ledger("x0", []);
  happens(rows);
  ledger.swapped.push({ value: VALUE, version: versionstamp(swap(told)), was: "nothing" });
  let excused = 0;
  const seen = {
    key: "x0",
    lives: [ledger],
    parties: [],
    answered: new Map(),
    done: [],
    mailed: [],
    ...rows.of("x0"),
  };
  return [check(seen, () => excused++).length, excused];
}

Deno.test("a write with a check is made again where the one before was only on a disk that is lost (WC6)", () => {
  const isLost = (rows: OwnRows) => {
    rows.holds("s1", [swap(FIRST)], true);
    rows.lost("s1");
    rows.holds("root", [swap(SECOND)], true);
  };
  assert.deepEqual(judged(isLost), [0, 1]);
  assert.deepEqual(judged(isLost, FIRST), [1, 0], "its handler was told of the first");
  const again = (rows: OwnRows) => {
    isLost(rows);
    rows.lost("root");
    rows.holds("s1", [swap(30)], true);
  };
  assert.deepEqual(judged(again, 30), [0, 1]);
});

Deno.test("a write with a check is not made again while any disk has had the one before (WC6)", () => {
  const wrong: ((rows: OwnRows) => void)[] = [
    (rows) => rows.holds("s1", [swap(FIRST)], true),
    // What an owner holds for its site is there, too.
    (rows) => {
      rows.holds("s1", [swap(FIRST)], true);
      rows.holds("s2", [swap(FIRST)], false);
      rows.lost("s1");
    },
    // It was lost, and came back with an older copy of its disk.
    (rows) => {
      rows.holds("s1", [swap(FIRST)], true);
      rows.lost("s1");
      rows.holds("s1", [swap(FIRST)], true);
    },
  ];
  for (const happens of wrong) {
    const made = (rows: OwnRows) => {
      happens(rows);
      rows.holds("root", [swap(SECOND)], true);
    };
    assert.deepEqual(judged(made), [1, 0]);
    // The loss of that disk, later, makes it no better.
    const lost = (rows: OwnRows) => {
      made(rows);
      rows.lost("s1");
      rows.lost("s2");
    };
    assert.deepEqual(judged(lost), [1, 0]);
  }
  // It was on its way when its disk was lost.
  const came = (rows: OwnRows) => {
    rows.holds("s1", [swap(FIRST)], true);
    rows.lost("s1");
    rows.holds("root", [swap(SECOND)], true);
    rows.holds("s2", [swap(FIRST)], true);
  };
  assert.deepEqual(judged(came), [1, 0]);
});
