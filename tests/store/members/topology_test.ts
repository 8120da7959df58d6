/** What the rows of sites and their incarnations say together (store/members/topology.ts). */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import type { Key } from "../../../store/model/key.ts";
import { recoveredKey, wardsKey } from "../../../store/members/configuration.ts";
import { heldBy } from "../../../store/members/held_by.ts";
import {
  encodeJson,
  type Ended,
  endedKey,
  keptKey,
  pastKey,
  removedKey,
  replicaKey,
  Topology,
} from "../../../store/members/topology.ts";

/** A topology that has taken in rows, in this order. */
function told(...rows: readonly (readonly [Key, unknown])[]): Topology {
  const topology = new Topology();
  for (const [i, [key, value]] of rows.entries()) {
    const row = { key, value: encodeJson(value), clock: i + 1, replica: 1, position: i + 1, known: 0 };
    topology.apply({ ...row, expiresAtMs: 0 });
  }
  return topology;
}

const given = (number: number, path: readonly string[], parent: number, from = 0) =>
  [replicaKey(number), { site: path.at(-1) ?? "", path, parent, from }] as const;
const ended = (number: number, end: Ended) => [endedKey(number), end] as const;

Deno.test("topology says what is left of an incarnation when the numbers above it lead round and round", () => {
  // a was on its way below b and came back, as 2; then b went below a, and elsewhere.
  const rows = [
    given(1, ["root"], 0),
    given(2, ["root", "a"], 1),
    given(3, ["root", "b"], 1),
    given(4, ["root", "b", "a"], 3, 2),
    given(5, ["root", "a", "b"], 2, 3),
    given(6, ["root", "a", "e"], 2),
    given(7, ["root", "b", "e"], 3),
    ended(2, { stable: 20, next: 4 }),
    ended(4, { stable: 0, unused: true }),
    ended(3, { stable: 30, next: 5 }),
    ended(5, { stable: 40 }),
  ] as const;
  const topology = told(...rows);
  strictEqual(topology.ended(6), 20, "what a had pushed to the root");
  strictEqual(topology.ended(7), 30, "what b had, before it went below a and its disk was lost");
});

Deno.test("topology looks no further where an incarnation is said to stand below itself, or below a later one", () => {
  const topology = told(
    given(1, ["root"], 0),
    given(2, ["root", "a"], 2),
    given(3, ["root", "a", "b"], 4),
    given(4, ["root", "a", "c"], 3),
    ended(4, { stable: 40, gap: 1 }),
  );
  strictEqual(topology.movingSince(2, 0), Infinity);
  strictEqual(topology.movingSince(3, 0), Infinity);
  strictEqual(topology.mayHaveLost(2, [null, 1], 50), false);
  strictEqual(topology.mayHaveLost(3, [null, null, 1], 50), false);
});

Deno.test("topology says what is left of a site that all those above it took along over a hundred moves", () => {
  const LEVELS = 8, MOVES = 100;
  const names = Array.from({ length: LEVELS }, (_, level) => `site-${level}`);
  const rows: (readonly [Key, unknown])[] = [given(1, ["root"], 0)];
  const numberOf = (level: number, move: number) => level < 0 ? 1 : 2 + move * LEVELS + level;
  for (let move = 0; move < MOVES; move++) {
    for (let level = 0; level < LEVELS; level++) {
      const path = ["root", ...names.slice(0, level + 1)],
        before = move === 0 ? 0 : numberOf(level, move - 1);
      const number = numberOf(level, move);
      rows.push(given(number, path, numberOf(level - 1, move), before));
      if (before !== 0) rows.push(ended(before, { stable: before, next: number }));
    }
  }
  // Looked at one by one, all ways up would be a hundred to the seventh.
  const first = numberOf(LEVELS - 1, 0);
  strictEqual(told(...rows).ended(first), first);
  strictEqual(told(...rows).ended(numberOf(LEVELS - 1, MOVES - 1)), undefined);
});

Deno.test("an incarnation is over when nothing more is to be said of it (past.ts Z3)", () => {
  const e = given(7, ["root", "e"], 1), end = ended(7, { stable: 5 });
  const wards = [wardsKey(7), { number: 1, owners: ["a"], previous: ["b"] }] as const;
  const kept = { floor: 1, known: 1, whole: true };
  const recovered = (owner: string) => [recoveredKey(7, owner), { position: 1, clock: 1 }] as const;
  const rows: readonly (readonly [string, readonly (readonly [Key, unknown])[], boolean])[] = [
    ["it has ended", [e, end], true],
    ["it lives", [e], false],
    ["nobody knows whose it was", [end], false],
    [
      "it went on with a disk of before",
      [given(3, ["root", "e"], 1), given(7, ["root", "e"], 1, 3), end],
      false,
    ],
    ["its disk went on as another", [e, given(8, ["root", "e"], 1, 7), end], false],
    ["it is said that it did", [e, ended(7, { stable: 5, next: 8 })], false],
    ["it says itself that it did", [e, end, [keptKey(7), kept]], false],
    ["it was never taken", [e, ended(7, { stable: 0, unused: true })], false],
    ["what was lost with it is told of it", [e, ended(7, { stable: 5, gap: 3 })], false],
    ["it ended as its site was removed", [e, ended(7, { stable: 5, removed: true })], false],
    ["owners have not said what they had of it", [e, end, wards], false],
    ["one of two has", [e, end, wards, recovered("a")], false],
    ["all have", [e, end, wards, recovered("a"), recovered("b")], true],
    ["one has, and the other is off the tree", [e, end, wards, recovered("a"), [removedKey("b"), {}]], true],
  ];
  for (const [says, all, isOver] of rows) deepStrictEqual(told(...all).over(), isOver ? [7] : [], says);
});

Deno.test("the last word of an incarnation that is over is that of its end or of an owner, with rows of their own or without (H14)", () => {
  const e = given(7, ["root", "e"], 1), end = ended(7, { stable: 5 });
  const word = { position: 1, down: [], config: 1, clock: 1 };
  const recovered = (owner: string) => [recoveredKey(7, owner), word] as const;
  const past = (owners: readonly string[]) => {
    const over = [{ number: 7, stable: 5, recovered: Object.fromEntries(owners.map((id) => [id, word])) }];
    return [pastKey("e"), [{ path: ["root", "e"], parent: 1, over }]] as const;
  };
  // The clock of a row is its place.
  const rows: readonly (readonly [string, readonly (readonly [Key, unknown])[], number | undefined])[] = [
    ["it lives", [e], undefined],
    ["no owner has said anything", [e, end], 2],
    ["two have", [e, end, recovered("a"), recovered("b")], 4],
    ["it is told for the end", [e, past([])], 2],
    ["it is told for the words that had rows", [e, end, recovered("a"), past(["a"])], 3],
    ["it is told for one that had none", [e, end, recovered("a"), past(["a", "b"])], 4],
  ];
  for (const [says, all, clock] of rows) strictEqual(told(...all).toldEnd(7), clock, says);
});

Deno.test("a site holds for another what it may own of it, until the disk of that is in use or an owner has said what it had (HB1, HB2)", () => {
  const e = given(7, ["root", "e"], 1), end = ended(7, { stable: 5 });
  const wards = [wardsKey(7), { number: 2, owners: ["a", "b"], previous: ["c"] }] as const;
  const said = (owner: string, position: number, config: number) =>
    [recoveredKey(7, owner), { position, down: [], config, clock: 1 }] as const;
  const next = given(8, ["root", "e"], 1, 7);
  const owned = { left: [], owned: ["e"] }, left = { left: ["e"], owned: [] }, none = { left: [], owned: [] };
  const rows:
    readonly (readonly [string, readonly (readonly [Key, unknown])[], ReturnType<typeof heldBy>])[] = [
      ["it lives, without owners", [e], none],
      ["it lives", [e, wards], owned],
      ["it lives, and the other has said what it had", [e, wards, said("b", 9, 2)], owned],
      ["it is lost", [e, wards, end], left],
      ["it is lost, and what it had is said here", [e, wards, end, said("a", 0, 0)], none],
      ["the other has said what it had", [e, wards, end, said("b", 9, 2)], none],
      ["the other had nothing", [e, wards, end, said("b", 0, 2)], left],
      ["the other knew only an owner's part of before", [e, wards, end, said("b", 9, 1)], left],
      ["it goes on elsewhere", [e, wards, ended(7, { stable: 5, next: 8 }), next], none],
      ["it goes on with the disk that it had", [e, wards, end, next], none],
      ["it went on, and is lost", [e, wards, end, next, ended(8, { stable: 6 })], left],
    ];
  for (const [says, all, expected] of rows) {
    const topology = told(...all);
    deepStrictEqual(heldBy(topology, "a"), expected, says);
    deepStrictEqual(heldBy(topology, "d"), none, `${says}: who never was an owner`);
  }
  deepStrictEqual(heldBy(told(e, wards), "c"), owned, "who was an owner before");
  deepStrictEqual(heldBy(told(e, wards, end), "c"), left, "who was an owner before");
});
