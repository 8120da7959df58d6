import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { check } from "./checker.ts";
import { History, type Operation } from "./history.ts";

type Part = Partial<Operation>;

/** A history from sessions of abbreviated operations. */
function history(...sessions: Part[][]): History {
  const made = new History();
  for (const session of sessions) {
    const operations = made.begin();
    for (const part of session) {
      operations.push({
        site: "edge-1",
        interaction: "test",
        startMs: 0,
        endMs: 0,
        outcome: "acknowledged",
        seen: [],
        lists: [],
        written: [],
        added: [],
        counted: [],
        ...part,
      });
    }
  }
  return made;
}

const reads = (row: string, version: string | null, hash = version): Part => ({
  seen: [{ row, version, hash }],
});
const writes = (row: string, version: string): Part => ({ written: [{ row, version, hash: version }] });
const deletes = (row: string, version: string | null): Part => ({ written: [{ row, version, hash: null }] });
const unanswered = (part: Part): Part => ({ ...part, outcome: "unknown" });
const guarantees = (made: History) => check(made).violations.map((violation) => violation.guarantee);

const cases: [string, History, string[]][] = [
  ["an own write read back", history([writes("x", "1"), reads("x", "1")]), []],
  [
    "a newer version than the own write",
    history([writes("x", "1"), reads("x", "2")], [writes("x", "2")]),
    [],
  ],
  ["an own write lost to an older version", history([reads("x", "1"), writes("x", "2"), reads("x", "1")]), [
    "read-your-writes",
  ]],
  ["an own first write lost to absence", history([writes("x", "1"), reads("x", null)]), ["read-your-writes"]],
  ["an own delete undone", history([reads("x", "1"), deletes("x", "2"), reads("x", "1")]), [
    "read-your-writes",
  ]],
  ["an own delete kept", history([writes("x", "1"), deletes("x", "2"), reads("x", null)]), []],
  ["a read that goes back", history([reads("x", "2"), reads("x", "1")]), ["monotonic-reads"]],
  ["a read that goes back to absence", history([reads("x", "2"), reads("x", null)]), ["monotonic-reads"]],
  [
    "absence after somebody's later delete",
    history([reads("x", "1"), reads("x", null)], [deletes("x", "2")]),
    [],
  ],
  [
    "absence after somebody's earlier delete",
    history([reads("x", "3"), reads("x", null)], [deletes("x", "2")]),
    ["monotonic-reads"],
  ],
  [
    "absence after a delete without an answer",
    history([reads("x", "3"), reads("x", null)], [unanswered(deletes("x", null))]),
    [],
  ],
  [
    "another's second write without the first",
    history([writes("x", "1"), writes("y", "2")], [reads("y", "2"), reads("x", null)]),
    ["monotonic-writes"],
  ],
  [
    "another's two writes in one answer, the first one missing",
    history([writes("x", "1"), writes("y", "2")], [{
      seen: [...reads("y", "2").seen ?? [], { row: "x", version: null, hash: null }],
    }]),
    [],
  ],
  [
    "an answer without the question",
    history([writes("x", "1")], [reads("x", "1"), writes("y", "2")], [reads("y", "2"), reads("x", null)]),
    ["writes-follow-reads"],
  ],
  [
    "an answer to an answer without the question",
    history(
      [writes("x", "1")],
      [reads("x", "1"), writes("y", "2")],
      [reads("y", "2"), writes("z", "3")],
      [reads("z", "3"), reads("x", null)],
    ),
    ["causality"],
  ],
  [
    "two sessions that know nothing of each other",
    history([writes("x", "1"), writes("y", "2")], [reads("x", null), reads("y", null)]),
    [],
  ],
  ["one version with two contents", history([reads("x", "1", "a")], [reads("x", "1", "b")]), [
    "one-content-per-version",
  ]],
  ["a write that was refused", history([{ ...writes("x", "1"), outcome: "refused" }, reads("x", null)]), []],
  [
    "a write without an answer",
    history([unanswered({ written: [{ row: "x", version: null, hash: "1" }] }), reads("x", null)]),
    [],
  ],
];

for (const [name, made, expected] of cases) {
  Deno.test(`checker ${expected.length === 0 ? "accepts" : "rejects"} ${name}`, () => {
    deepStrictEqual(guarantees(made), expected);
  });
}

Deno.test("checker rejects a list that leaves out an own write within its bounds", () => {
  const list = (from: string, to: string | null): Part => ({ lists: [{ group: "g", from, to }] });
  for (
    const [part, expected] of [
      [list("", null), ["read-your-writes"]],
      [list("b", null), ["read-your-writes"]],
      [list("b", "c"), ["read-your-writes"]],
      [list("c", null), []],
      [list("", "b"), []],
      [{ ...list("", null), ...reads("x", "1") }, []],
    ] as const
  ) {
    const made = history([writes("x", "1"), part]);
    made.place("x", [{ group: "g", place: "b" }]);
    deepStrictEqual(guarantees(made), expected);
  }
});

Deno.test("checker holds counters against the session's own readings and additions", () => {
  const counted = (value: number): Part => ({ counted: [{ counter: "n", value }] });
  const added = (by: number): Part => ({ added: [{ counter: "n", by }] });
  deepStrictEqual(guarantees(history([counted(3), added(1), counted(4)])), []);
  deepStrictEqual(guarantees(history([counted(3), counted(2)])), ["monotonic-reads"]);
  deepStrictEqual(guarantees(history([counted(3), added(1), counted(3)])), ["read-your-writes"]);
  deepStrictEqual(guarantees(history([added(1), counted(0)])), ["read-your-writes"]);
  deepStrictEqual(guarantees(history([unanswered(added(1)), counted(0)])), []);
});

Deno.test("checker counts what it held against something", () => {
  const verdict = check(history([writes("x", "1"), reads("x", "1"), reads("y", null)]));
  strictEqual(verdict.checked, 1);
  strictEqual(verdict.operations, 3);
});
