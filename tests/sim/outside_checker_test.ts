/** The outside checker's opinion of the store, and of the store broken on purpose. */
import assert from "node:assert/strict";
import { openReplica } from "../../store/replica.ts";
import { outsideChecker } from "./adya.ts";
import type { History } from "./history.ts";
import { asLists, listAppend } from "./list_append.ts";
import { simulate } from "./simulation.ts";
import { VARIANTS } from "./variants.ts";

const SEEDS = 60;
const VARIANT_SEEDS = 60;
/**
 * Variants that lists can show, with the seed their hunt begins at: each is caught within `VARIANT_SEEDS` of it. The
 * rest need deletions or lost disks, which lists have no word for.
 */
const CAUGHT = [
  { name: "acknowledge before sync", from: 0 },
  { name: "a miss answered with nothing", from: 0 },
  { name: "carry only covered rows", from: 0 },
  { name: "carry without waiting for need", from: 60 },
  { name: "a carry taken in part", from: 60 },
  { name: '"nothing" by position alone', from: 0 },
  { name: "a parent that evicts what a child covers", from: 0 },
  { name: "stable ignoring children", from: 0 },
  { name: "a reconnect that skips what it missed", from: 80 },
  { name: "a welcome that acknowledges too much", from: 0 },
];

const checker = await outsideChecker();
const why = "why" in checker ? ` (not run: ${checker.why})` : "";
const opinion = async (history: string) => "check" in checker ? await checker.check(history) : "valid";

Deno.test({
  name: `an outside checker finds histories valid when the store is whole${why}`,
  ignore: why !== "",
  fn: async () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const { history } = await simulate({ seed, open: openReplica, change: asLists });
      assert.equal(await opinion(listAppend(history)), "valid", `seed ${seed}`);
    }
  },
});

for (const { name, from } of CAUGHT) {
  Deno.test({
    name: `an outside checker finds a violation with: ${name}${why}`,
    ignore: why !== "",
    fn: async () => {
      const variant = VARIANTS.find((each) => each.name === name);
      assert(variant !== undefined);
      const { change = (plan) => plan } = variant;
      for (let seed = from; seed < from + VARIANT_SEEDS; seed++) {
        const { history } = await simulate({
          seed,
          open: variant.make(),
          change: (plan) => asLists(change(plan)),
        });
        if (await opinion(listAppend(history)) === "violated") return;
      }
      assert.fail(`${VARIANT_SEEDS} histories from seed ${from} on were found valid`);
    },
  });
}

const history = (events: History["events"]): History => ({
  keys: 2,
  root: "root",
  parents: new Map(),
  events,
});
const at = { atMs: 0, site: "root", session: 0 };

Deno.test("a history becomes lists: a read shows the versions up to its own, in a chain's process", () => {
  const lines = listAppend(history([
    { kind: "request", ...at, request: 0, presents: [] },
    { kind: "wrote", atMs: 0, request: 0, writes: [{ write: 1, key: 0, what: "set" }], stamp: "a" },
    { kind: "issue", atMs: 0, request: 0, issue: 0, open: false },
    { kind: "wrote", atMs: 0, request: 0, writes: [{ write: 2, key: 0, what: "set" }], stamp: "b" },
    { kind: "request", ...at, request: 1, presents: [0] },
    {
      kind: "read",
      atMs: 0,
      request: 1,
      rows: [{ key: 0, write: 2, stamp: "b" }, { key: 1, write: null, stamp: "" }],
    },
    { kind: "issue", atMs: 0, request: 1, issue: 1, open: false },
  ]));
  const done = lines.trim().split("\n").map((line) => JSON.parse(line)).filter(({ type }) => type === "ok");
  assert.deepEqual(done.map(({ process, value }) => [process, value]), [
    [0, [["append", 0, 1]]],
    [0, [["r", 0, [1, 2]], ["r", 1, []]]],
    [1, [["append", 0, 2]]], // nobody was told of it, but it was seen
  ]);
});
