/** What is known of rows that a disk has damaged, and who may be answered (store/core/damage.ts). */
import assert from "node:assert/strict";
import { StoreUnavailable } from "../../../store/api/api.ts";
import { Damage, type DamagedSite } from "../../../store/core/damage.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { contribute } from "../../../store/model/merge.ts";
import { pointRange, prefixRange, type Range } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import { encodeValue } from "../../../functions/values/value.ts";

const KEY = packKey(["row", 1]), OTHER = packKey(["row", 2]), SYSTEM = packKey(["s", "site", "e"]);
const ROWS = prefixRange(packKey(["row"]));
const CLOCK = 100;

const rowOf = (clock: number, value: Uint8Array | null = Uint8Array.of(1), key = KEY): Row => ({
  ...{ key, clock, value, replica: 1, known: 1, position: 50, expiresAtMs: 0 },
});

/** A sum, as a row holds it. */
const sum = (clock: number): Uint8Array =>
  contribute(undefined, "sum", encodeValue(1), { clock, replica: 1 });

interface Around {
  readonly isRoot?: boolean;
  /** The places of rows that are pending. */
  readonly pending?: ReadonlyMap<Key, number>;
  readonly acked?: number;
  /** On their way to the disk. */
  readonly changed?: ReadonlyMap<Key, Row>;
  readonly remembered?: Row;
}

/** A site, what it writes down and whom it tells. */
function site(
  { isRoot = false, pending = new Map(), acked = 0, changed = new Map(), remembered }: Around = {},
) {
  const records = new Map<string, Uint8Array>();
  const uncovered: Range[] = [], told: (readonly Key[])[] = [], gone: number[] = [];
  let asks = 0;
  const core: DamagedSite = {
    config: { site: "e" },
    ports: { note: () => {} },
    isRoot,
    clock: { last: CLOCK },
    pending: {
      get: (key) => {
        const position = pending.get(key);
        return position === undefined ? undefined : { key, position, known: 1, bytes: 1, clock: 1 };
      },
    },
    rows: {
      head: 40,
      record: (name, value) => void (value === null ? records.delete(name) : records.set(name, value)),
      remembered: () => remembered,
      changed: (key) => changed.get(key),
      healed: () => {},
    },
    acked,
    count: () => {},
    uncover: (range) => void uncovered.push(range),
    gone: ({ clock }) => void gone.push(clock),
  };
  const damage = new Damage(core);
  damage.serve({ uncovered: (keys) => void told.push(keys), lost: () => void asks++ });
  return { core, damage, records, uncovered, told, gone, asks: () => asks };
}

/** A row of it was dropped. */
function dropped(around: Around, key = KEY) {
  const all = site(around), [name, value] = all.damage.word(key);
  all.records.set(name, value);
  all.damage.healed([], [key]);
  return all;
}

const isRefused = (damage: Damage, key = KEY): boolean => {
  try {
    damage.assertKeys([key]);
    return false;
  } catch (error) {
    assert.ok(error instanceof StoreUnavailable && error.code === "row_damaged");
    return true;
  }
};

const LOST: Around = { pending: new Map([[KEY, 30]]), acked: 20 };

Deno.test("what becomes of a damaged row depends on who is known to have it (G1, G2)", () => {
  const rows: readonly (readonly [
    string,
    Around,
    { refused: boolean; uncovered: boolean; pending: boolean; asked: number },
  ])[] = [
    ["the root has it", {}, { refused: false, uncovered: true, pending: false, asked: 0 }],
    ["the parent has it", { pending: new Map([[KEY, 20]]), acked: 20 }, {
      ...{ refused: false, uncovered: true, pending: false, asked: 0 },
    }],
    ["nobody above has it", LOST, { refused: true, uncovered: false, pending: true, asked: 1 }],
    ["it was the root's", { isRoot: true }, { refused: true, uncovered: false, pending: false, asked: 0 }],
  ];
  for (const [says, around, expected] of rows) {
    const { damage, uncovered, asks } = dropped(around);
    const found = {
      refused: isRefused(damage),
      uncovered: uncovered.length > 0,
      pending: damage.isPending,
      asked: asks(),
    };
    assert.deepEqual(found, expected, says);
    assert.equal(isRefused(damage, OTHER), false);
    assert.deepEqual(damage.within(ROWS), expected.refused ? [KEY] : []);
    assert.equal(damage.holdsBack([OTHER]), false);
    assert.equal(damage.holdsBack([KEY, OTHER]), expected.refused);
  }
});

Deno.test("while the journal's end is not read nobody is known to have anything", () => {
  const { damage, uncovered } = site(), [, value] = damage.word(KEY);
  damage.isUnread = true;
  assert.notDeepEqual(damage.word(KEY)[1], value);
  damage.healed([], [KEY]);
  assert.equal(isRefused(damage), true);
  assert.deepEqual(uncovered, []);
});

Deno.test("a row that was dropped may have been seen, at the latest as of when the word was written (E8)", () => {
  const { gone } = dropped({});
  assert.deepEqual(gone, [CLOCK]);
});

Deno.test("a newer row stands for what was lost, no older one, and none that it would be merged with (G3)", () => {
  const rows: readonly (readonly [string, Row, boolean])[] = [
    ["an older one", rowOf(CLOCK - 1), true],
    ["one as old as it may have been", rowOf(CLOCK), true],
    ["a newer one", rowOf(CLOCK + 1), false],
    ["a deletion", rowOf(CLOCK + 1, null), false],
    ["a sum", rowOf(CLOCK + 1, sum(CLOCK + 1)), true],
    ["one of another key", rowOf(CLOCK + 1, null, OTHER), true],
  ];
  for (const [says, row, refused] of rows) {
    const { damage, records } = dropped(LOST);
    damage.applied(row);
    assert.equal(isRefused(damage), refused, says);
    assert.equal(damage.isOver(KEY), !refused, says);
    assert.equal(damage.holdsBack([KEY]), true, "others are told as of before");
    damage.committed(new Map([[row.key, row]]));
    assert.equal(damage.holdsBack([KEY]), refused, says);
    assert.equal(records.size, refused ? 1 : 0, says);
  }
});

Deno.test("what was written since the row was read is newer than it, and the word says so (G3)", () => {
  const { damage } = dropped({ ...LOST, changed: new Map([[KEY, rowOf(60)]]) });
  assert.equal(isRefused(damage), false, "it stands for what was lost");
  const restarted = dropped({ ...LOST, changed: new Map([[KEY, rowOf(60)]]) });
  const again = site(LOST);
  for (const [name, value] of restarted.records) again.damage.restore(name, value);
  again.damage.applied(rowOf(59));
  assert.equal(isRefused(again.damage), true);
  again.damage.applied(rowOf(60));
  assert.equal(isRefused(again.damage), false);
});

Deno.test("what is lost is known after a restart, unless a newer row is on the disk", async () => {
  for (
    const [row, refused] of [[undefined, true], [rowOf(CLOCK), true], [rowOf(CLOCK + 1), false]] as const
  ) {
    const { records } = dropped(LOST), { damage, records: kept } = site(LOST);
    assert.equal(damage.restore("cover/x", new Uint8Array()), false);
    for (const [name, value] of records) {
      kept.set(name, value);
      assert.equal(damage.restore(name, value), true);
    }
    await damage.loaded(() => Promise.resolve(row));
    assert.equal(isRefused(damage), refused);
    assert.equal(kept.size, refused ? 1 : 0);
  }
});

Deno.test("what was lost comes back from an owner, or from a parent that turns out to have it", () => {
  const owner = dropped(LOST);
  owner.damage.recovered(KEY);
  assert.equal(isRefused(owner.damage), false);
  const parent = dropped(LOST);
  parent.damage.acked(29);
  assert.equal(isRefused(parent.damage), true, "it stood behind that");
  parent.damage.acked(30);
  assert.equal(isRefused(parent.damage), false);
  assert.deepEqual([parent.damage.isAtParent(KEY), parent.damage.isWaiting, parent.told.at(-1)], [
    true,
    true,
    [KEY],
  ]);
  assert.deepEqual(parent.uncovered, [pointRange(KEY)]);
  parent.damage.covered(ROWS);
  assert.deepEqual([parent.damage.isAtParent(KEY), parent.damage.isWaiting, parent.records.size], [
    false,
    false,
    0,
  ]);
});

Deno.test("below another parent nobody is known to have what was lost, wherever it stood", () => {
  const { damage } = dropped({ pending: new Map([[KEY, 20]]), acked: 20 });
  damage.anew();
  assert.equal(isRefused(damage), true);
  damage.acked(1_000_000);
  assert.equal(isRefused(damage), true, "positions are those of another journal");
  damage.covered(ROWS);
  assert.equal(isRefused(damage), true, "what is covered has no say in what nobody has");
});

Deno.test("a root does not go on without a row that says who is who, others do (G4)", () => {
  assert.throws(() => site({ isRoot: true }).damage.word(SYSTEM), { code: "disk_failed" });
  assert.doesNotThrow(() => site({ isRoot: true }).damage.word(KEY));
  const { damage, uncovered } = dropped({ ...LOST, pending: new Map([[SYSTEM, 30]]) }, SYSTEM);
  assert.equal(isRefused(damage, SYSTEM), true);
  assert.deepEqual(uncovered, [pointRange(SYSTEM)], "it is asked for as a whole");
});

Deno.test("a row that memory has is that, and nothing is lost", () => {
  const row = rowOf(3), { damage, records, told } = site({ ...LOST, remembered: row });
  assert.equal(damage.remembered(KEY), row);
  damage.healed([KEY], []);
  assert.deepEqual([isRefused(damage), records.size, told], [false, 0, [[]]]);
});
