import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { expectedRows, judgeRow, judgeSum } from "./audit.ts";
import { History } from "./history.ts";

const value = { a: 1 };
const hash = createHash("sha1").update(JSON.stringify(value)).digest("base64");

const rows: [string, Parameters<typeof judgeRow>[1], Parameters<typeof judgeRow>[2], RegExp | null][] = [
  ["is there", { version: "2", hash, perhapsDeleted: false }, { versionstamp: "2", value }, null],
  ["was superseded", { version: "2", hash, perhapsDeleted: false }, { versionstamp: "3", value: {} }, null],
  ["is absent", { version: "2", hash, perhapsDeleted: false }, null, /absent/],
  ["is absent but may have been deleted", { version: "2", hash, perhapsDeleted: true }, null, null],
  [
    "is an older version",
    { version: "2", hash, perhapsDeleted: true },
    { versionstamp: "1", value },
    /a version 2/,
  ],
  [
    "has another content",
    { version: "2", hash, perhapsDeleted: false },
    { versionstamp: "2", value: {} },
    /content/,
  ],
  ["was deleted", { version: "2", hash: null, perhapsDeleted: false }, null, null],
  ["was deleted, then written again", { version: "2", hash: null, perhapsDeleted: false }, {
    versionstamp: "3",
    value,
  }, null],
  ["was deleted and is back", { version: "2", hash: null, perhapsDeleted: false }, {
    versionstamp: "1",
    value,
  }, /deletion/],
];

for (const [name, expected, found, finding] of rows) {
  Deno.test(`audit ${finding === null ? "accepts" : "reports"} a row that ${name}`, () => {
    const said = judgeRow("t/k", expected, found);
    if (finding === null) strictEqual(said, null);
    else match(said ?? "", finding);
  });
}

Deno.test("audit bounds a counter by what got no answer", () => {
  const sum = { acknowledged: 3, perhapsMore: 2, perhapsLess: -1 };
  deepStrictEqual([11, 12, 13, 14, 15, 16].map((found) => judgeSum("c", sum, 10, found) === null), [
    false,
    true,
    true,
    true,
    true,
    false,
  ]);
});

Deno.test("audit expects the newest acknowledged version of every row", () => {
  const history = new History();
  const operation = {
    site: "",
    interaction: "",
    startMs: 0,
    endMs: 0,
    seen: [],
    lists: [],
    added: [],
    counted: [],
  };
  const first = history.begin(), second = history.begin();
  const write = (version: string | null, hash: string | null) => [{ row: "t/k", version, hash }];
  first.push({ ...operation, outcome: "acknowledged", written: write("2", "b") });
  second.push({ ...operation, outcome: "acknowledged", written: write("1", "a") });
  second.push({ ...operation, outcome: "refused", written: write("3", "c") });
  second.push({ ...operation, outcome: "unknown", written: write(null, null) });
  deepStrictEqual([...expectedRows(history)], [["t/k", { version: "2", hash: "b", perhapsDeleted: true }]]);
});
