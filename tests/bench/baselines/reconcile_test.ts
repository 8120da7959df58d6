import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { builtInTransitions } from "../../examples/board/transitions.ts";
import { packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { compareVersions, type Row } from "../../../store/model/row.ts";
import { Board, PAPER_BOARD } from "./board_rows.ts";
import { browse, crowds } from "./crowd.ts";
import { PAPER_TABLE_3, paperComments } from "./paper_numbers.ts";
import { rowsBytes } from "./messages.ts";
import { Queries } from "./queries.ts";
import { reconcile, STRATEGIES, type Strategy } from "./reconcile.ts";
import { baselineTable } from "./table_3.ts";
import { openTreeSites } from "./tree_sites.ts";
import { TreeSite } from "./tree_site.ts";
import { inVirtualTime } from "./virtual_run.ts";

const datum = (n: number) => ({ key: packKey(["t", n]), value: new Uint8Array(1_000) });
const data = (count: number) => Array.from({ length: count }, (_, n) => datum(n));
const get = (n: number) => ({ kind: "rows", keys: [datum(n).key] }) as const;
const SMALL = { ...PAPER_BOARD, stories: 4, users: 40, commentsPerStory: 30 };

Deno.test("a site fetches a query once, and a subsumed one not at all", async () => {
  await inVirtualTime(async ({ world, links }) => {
    const at = openTreeSites({ world, links }, data(20));
    const all = { kind: "list", range: prefixRange(packKey(["t"])), limit: 0, reverse: false } as const;
    strictEqual((await at("edge-1").read("s", { ...all, limit: 5 })).length, 5);
    strictEqual(links.tally.messages, 4);
    strictEqual((await at("edge-1").read("s", get(4))).length, 1);
    strictEqual(links.tally.messages, 4, "a row within what was listed was fetched again");
    strictEqual((await at("edge-1").read("s", get(5))).length, 1);
    strictEqual((await at("edge-1").read("s", all)).length, 20);
    deepStrictEqual(
      at("edge-1").commands("s"),
      [all.range],
      "narrower commands were kept beside a wider one",
    );
  });
});

Deno.test("a set of queries covers what one of them subsumes, and no more", () => {
  const queries = new Queries([{ start: packKey(["a"]), end: packKey(["c"]) }]);
  ok(queries.covers({ start: packKey(["a"]), end: packKey(["b"]) }));
  ok(!queries.covers({ start: packKey(["b"]), end: packKey(["d"]) }));
});

/** Whether reconcile.ts R1 holds for a row: it, or a newer one, is there. */
const has = (site: TreeSite | null, row: Row): boolean => {
  const there = site?.get(row.key);
  return there !== undefined && compareVersions(there, row) >= 0;
};

/** Clients at all edges; those of edge-1 move while their writes have not been pushed yet. */
async function lost(strategy: Strategy, forgetful = false): Promise<number> {
  return await inVirtualTime(async (around) => {
    const board = new Board(SMALL);
    const at = openTreeSites(around, board.data());
    const options = { board, transitions: builtInTransitions(), clients: 6, queries: 30 };
    const all = crowds(options, ["edge-1", "edge-2", "edge-3"]);
    await browse(around.world, all, options.queries, (site, visitor, page) => {
      const crowd = all.find((each) => each.site === site);
      const session = `${site} ${crowd?.visitors.indexOf(visitor)}`;
      return page({
        read: (query) => at(site).read(session, query),
        write: (rows) => at(site).write(session, rows),
      });
    });
    const isSibling = strategy.startsWith("sibling"), source = at("edge-1");
    let missing = 0;
    for (let n = 0; n < options.clients; n++) {
      const session = `edge-1 ${n}`, destination = at(isSibling ? "edge-2" : "edge-3").copy();
      // Nothing arrives at edge-1's core: what is written stays behind.
      around.links.hold("core-1");
      await source.write(session, [board.comment(1, "", board.writtenId(n, 900), n)]);
      const unpushed = source.unpushed();
      strictEqual(unpushed.length, 1);
      const done = forgetful ? Promise.resolve() : reconcile(strategy, { session, source, destination });
      await around.world.sleep(1_000);
      missing += unpushed.filter((row) => !has(destination, row)).length;
      around.links.release("core-1");
      await done;
      const touched = source.commands(session).flatMap((range) => source.matching(range));
      ok(touched.length > 0);
      const parent = isSibling ? destination.parent : null;
      missing += touched.filter((row) =>
        destination.get(row.key) === undefined && parent !== null
          ? !has(parent, row)
          : !has(destination, row)
      ).length;
      await around.world.sleep(1_000);
    }
    return missing;
  });
}

for (const strategy of STRATEGIES) {
  Deno.test(`${strategy} brings all that a session has read and written (R1)`, async () => {
    strictEqual(await lost(strategy), 0);
  });
}

Deno.test("a session that moves without reconciliation lacks rows", async () => {
  ok(await lost("session", true) > 0);
});

Deno.test("full moves all rows, session-aware those of the session, Δ-list those that are missing", async () => {
  const bytes = await inVirtualTime(async (around) => {
    const at = openTreeSites(around, data(100));
    for (let n = 0; n < 100; n++) await at("edge-1").read(n < 10 ? "s" : "other", get(n));
    for (let n = 0; n < 5; n++) await at("edge-3").read("somebody", get(n));
    const row = rowsBytes(at("cloud").matching(prefixRange(packKey(["t"]))).slice(0, 1));
    const found: Record<string, number> = {};
    for (const strategy of ["full", "session", "delta"] as const) {
      const from = around.links.tally.bytes;
      const destination = at("edge-3").copy();
      await reconcile(strategy, { session: "s", source: at("edge-1"), destination });
      found[strategy] = Math.floor((around.links.tally.bytes - from) / row);
      strictEqual(destination.all().length, strategy === "full" ? 100 : 10);
    }
    return found;
  });
  // 100 queries take little more than one row.
  deepStrictEqual(bytes, { full: 101, session: 10, delta: 5 });
});

Deno.test("sibling refuses sites without a common parent", async () => {
  await inVirtualTime(async (around) => {
    const at = openTreeSites(around);
    const move = { session: "s", source: at("edge-1"), destination: at("edge-3") };
    await rejects(reconcile("sibling", move), /no common parent/);
  });
});

Deno.test("a comment costs the baselines what it cost the paper, within a fifth", async () => {
  const board = new Board(PAPER_BOARD);
  const { before, moves } = await baselineTable({
    board,
    transitions: builtInTransitions(),
    clients: 8,
    queries: 22,
  });
  const paperBytes = (column: string) =>
    (PAPER_TABLE_3[0]?.[column]?.kb ?? NaN) * 1_000 / paperComments(column);
  const ours = new Map([...moves].map(([column, done]) => [
    column.name,
    done.reduce((sum, move) => sum + move.handoff.bytes, 0) / done.length,
  ]));
  const perComment = [
    [(ours.get("full") ?? NaN) / before.comments, paperBytes("full")],
    [(ours.get("session-aware") ?? NaN) / before.commentsPerClient, paperBytes("session-aware")],
  ];
  for (const [mine, theirs] of perComment) {
    const ratio = (mine ?? NaN) / (theirs ?? NaN);
    ok(ratio > 0.8 && ratio < 1.2, `${mine} bytes a comment, the paper's ${theirs}`);
  }
});
