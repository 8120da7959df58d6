/** What an arbiter that went back puts on record of a name, by what sites have of it (rebuild.ts). */
import { strict as assert } from "node:assert";
import type { KeptWord, LogState, RowState } from "../../../../functions/sessions/log/asks.ts";
import { foundOf, Rebuild, rowOfLogs, type Word } from "../../../../functions/sessions/home/rebuild.ts";

const DISKS: Readonly<Record<string, number>> = { cloud: 1, a: 11, b: 12, c: 13 };
const owners = (...sites: readonly string[]) => sites.map((site) => ({ site, disk: DISKS[site] ?? 0 }));
const row = (site: string, epoch: number, ...of: readonly string[]): RowState => ({
  ...{ site, epoch, config: 2, owners: owners(...of), version: "v", ended: false, movesTo: "" },
});

const log = (promised: number, by: string, of: Partial<KeptWord> = {}): KeptWord => ({
  ...{ promised, by, config: 0, owners: [], version: "v" },
  ...of,
});
const home = (epoch: number, ...of: readonly string[]) => ({
  ...{ epoch, config: 5, owners: owners(...of), isChanging: false },
});
const word = (site: string, of: Partial<Word> = {}): [string, Word] => [
  site,
  { kind: "recalled", disk: DISKS[site] ?? 0, log: null, home: null, granted: 0, ended: 0, ...of },
];
const said = (
  words: readonly [string, Word][],
  missed: readonly string[] = [],
  stale: string | null = null,
) => ({
  ...{ words: new Map(words), missed, stale },
});

Deno.test("a home that lives, and that all its owners have promised, is on record though a site is missed (RB1)", () => {
  const there = word("b", { home: home(9, "b", "c"), log: log(9, "b") });
  const found = foundOf(row("a", 3, "a", "b"), said([there, word("c", { log: log(9, "b") })], ["a"]));
  assert.deepEqual(found, {
    kind: "settled",
    as: { ...row("b", 9, "b", "c"), config: 5 },
    besides: [],
  });
  // One of them has promised nobody else, but is not the disk that it says; or has not said it at all.
  const other = word("c", { log: log(9, "b"), disk: 99 });
  for (const words of [[there, other], [there]]) {
    assert.deepEqual(foundOf(null, said(words, ["a"])), { kind: "missed", sites: ["a"] });
  }
});

Deno.test("a home that is about to change its owners is not enough while a site is missed (RB1)", () => {
  const changing = { ...home(9, "b"), isChanging: true };
  const words = [word("b", { home: changing, log: log(9, "b") })];
  assert.equal(foundOf(null, said(words, ["a"])).kind, "missed");
  assert.equal(foundOf(null, said(words)).kind, "settled");
});

Deno.test("a home is none where somebody has promised, or was granted, a later epoch (RB2)", () => {
  const there = word("b", { home: home(9, "b"), log: log(9, "b") });
  const promised = foundOf(null, said([there, word("c", { log: log(12, "a") })]));
  assert.deepEqual(promised, { kind: "logs", disks: owners("b", "c"), above: 12 });
  const granted = foundOf(null, said([there, word("c", { granted: 14 })]));
  assert.deepEqual(granted, { kind: "logs", disks: owners("b"), above: 14 });
});

Deno.test("two that say to be home: the later one is, and the one before is to be fenced (RB6)", () => {
  const found = foundOf(
    null,
    said([
      word("a", { home: home(3, "a"), log: log(3, "a") }),
      word("b", { home: home(9, "b"), log: log(9, "b") }),
    ]),
  );
  assert.ok(found.kind === "settled");
  assert.deepEqual([found.as.site, found.besides], ["b", owners("a")]);
});

Deno.test("who says to be home from before is fenced below the one on record, on its own disk (RB6)", async () => {
  const words = new Map([
    word("a", { home: home(3, "a"), log: log(3, "a") }),
    word("b", { home: home(9, "b"), log: log(9, "b") }),
  ]);
  const asked: unknown[] = [], settled: unknown[] = [];
  const rebuild = new Rebuild(
    {
      ...{ site: "cloud", sites: () => [...words.keys()], leap: 100, fatal: assert.fail, note: () => {} },
      after: () => () => {},
      ask: (site: string, ask: { readonly kind: string }) => {
        if (ask.kind === "promise") asked.push([site, ask]);
        return { reply: Promise.resolve(words.get(site)), cancel: () => {} };
      },
      arbiter: {
        ...{ doubted: () => Promise.resolve(null), isSiteBehind: false },
        settle: (_: unknown, { site, epoch }: RowState) => Promise.resolve(void settled.push([site, epoch])),
      },
    } as unknown as ConstructorParameters<typeof Rebuild>[0],
  );
  const name = { app: "shop", class: "cart", id: "x" };
  assert.deepEqual(await rebuild.settle(name), []);
  assert.deepEqual(settled, [["b", 9]]);
  assert.deepEqual(asked, [["a", { kind: "promise", name, disk: DISKS["a"], epoch: 8 }]]);
});

Deno.test("what has ended as late as any log was promised has ended (RB4)", () => {
  const words = [word("a", { log: log(3, "a") }), word("b", { ended: 9 })];
  const found = foundOf(row("a", 3, "a"), said(words));
  assert.ok(found.kind === "settled");
  assert.deepEqual([found.as.ended, found.as.epoch, found.as.owners], [true, 9, []]);
  // It was begun again.
  const again = foundOf(null, said([...words, word("c", { log: log(10, "c") })]));
  assert.deepEqual(again, { kind: "logs", disks: owners("c"), above: 10 });
});

Deno.test("a log on the root's disk that went back is one only where nobody else has anything (RB5)", () => {
  const old = word("cloud", { log: log(3, "cloud") });
  const both = foundOf(null, said([old, word("b", { log: log(2, "a") })], [], "cloud"));
  assert.deepEqual(both, { kind: "logs", disks: owners("b"), above: 3 });
  const alone = foundOf(null, said([old, word("b")], [], "cloud"));
  assert.deepEqual(alone, { kind: "logs", disks: owners("cloud"), above: 3 });
  const ended = foundOf(null, said([old, word("b", { ended: 4 })], [], "cloud"));
  assert.ok(ended.kind === "settled" && ended.as.ended);
});

Deno.test("of logs without a home the furthest are owners, and clients that were on record last stay so (RB3)", () => {
  const state = (...segments: readonly (readonly [epoch: number, upTo: number])[]): LogState => ({
    base: { at: 0, epoch: 0, state: { count: 0, check: 0 } },
    segments: segments.map(([epoch, upTo]) => ({ epoch, upTo })),
  });
  const [a, b, c] = owners("a", "b", "c");
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  const states = [
    { ...a, state: state([3, 90]) },
    { ...b, state: state([3, 4], [5, 7]) },
    { ...c, state: state([3, 4], [5, 7]) },
  ];
  const told = { config: 4, owners: [b, { site: "@phone", disk: 0 }] };
  const words = new Map([word("a", { log: log(3, "a") }), word("b", { log: log(5, "b", told) })]);
  const found = rowOfLogs(row("a", 3, "a"), { words }, { epoch: 40, states });
  assert.deepEqual([found.site, found.epoch, found.config], ["b", 40, 5]);
  assert.deepEqual(found.owners, [b, c, { site: "@phone", disk: 0 }]);
});

Deno.test("what nobody has anything of stays on record as it is", () => {
  const found = foundOf(row("a", 3, "a"), said([word("a"), word("b")]));
  assert.deepEqual(found, { kind: "settled", as: row("a", 3, "a") });
});
