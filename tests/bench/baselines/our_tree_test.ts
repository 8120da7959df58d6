import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { builtInTransitions } from "../../examples/board/transitions.ts";
import { Board, PAPER_BOARD } from "./board_rows.ts";
import { browse, crowds } from "./crowd.ts";
import { ages, carries, feedLags } from "./goals.ts";
import { rowOf } from "./one_row.ts";
import { ourTable } from "./our_table_3.ts";
import { type Client, OurTree, readOurs, writeOurs } from "./our_tree.ts";
import { openTreeSites } from "./tree_sites.ts";
import { inVirtualTime } from "./virtual_run.ts";

const SMALL = { ...PAPER_BOARD, stories: 3, users: 30, commentsPerStory: 20 };
const options = () => ({
  board: new Board(SMALL),
  transitions: builtInTransitions(),
  clients: 3,
  queries: 15,
});

Deno.test("a session finds at the next edge what it wrote, at once and later", async () => {
  const hows = await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around);
    const client: Client = { token: null }, hows: string[] = [];
    const { key } = rowOf("moved", 1);
    const move = async (site: string, text: string) => {
      const { how, value } = await tree.request(
        site,
        client,
        (s) => readOurs(s, { kind: "rows", keys: [key] }),
      );
      strictEqual(new TextDecoder().decode(value[0]?.value ?? undefined), text, `at ${site}`);
      hows.push(how);
    };
    const write = (site: string, text: string) =>
      tree.request(site, client, (s) => writeOurs(s, [{ key, value: new TextEncoder().encode(text) }]));
    await write("edge-1", "one");
    await move("edge-3", "one");
    await write("edge-3", "two");
    await tree.settled();
    const from = around.links.tally;
    const arrival = await tree.request("edge-1", client, () => Promise.resolve());
    deepStrictEqual(around.links.tally, from, "a handoff that needs nothing said something");
    hows.push(arrival.how);
    await tree.close();
    return hows;
  });
  ok(hows[0] === "carry" || hows[0] === "wait", hows[0]);
  strictEqual(hows[1], "nothing");
});

Deno.test("clients ask the same of the baselines' tree and of ours, and get as many rows", async () => {
  const theirs = await inVirtualTime(async (around) => {
    const at = openTreeSites(around, options().board.data());
    const all = crowds(options(), ["edge-1"]);
    await browse(
      around.world,
      all,
      15,
      (site, visitor, page) =>
        page({
          read: (query) => at(site).read(`${visitor.count}`, query),
          write: (data) => at(site).write("", data),
        }),
    );
    return all.flatMap(({ visitors }) =>
      visitors.map(({ queries, rows }) => ({ queries: queries.length, rows }))
    );
  });
  const ours = await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around, options().board.data());
    const all = crowds(options(), ["edge-1"]), clients = new Map<unknown, Client>();
    await browse(around.world, all, 15, async (site, visitor, page) => {
      const client = clients.get(visitor) ?? { token: null };
      clients.set(visitor, client);
      await tree.request(
        site,
        client,
        (session) =>
          page({ read: (query) => readOurs(session, query), write: (data) => writeOurs(session, data) }),
      );
    });
    await tree.close();
    return all.flatMap(({ visitors }) =>
      visitors.map(({ queries, rows }) => ({ queries: queries.length, rows }))
    );
  });
  deepStrictEqual(ours, theirs);
  ok(theirs.every(({ rows }) => rows > 0));
});

Deno.test("a move of ours with current feeds says nothing; the rows come when they are read", async () => {
  const { moves } = await ourTable(options());
  for (const [column, done] of moves) {
    for (const { how, handoff, again } of done) {
      if (!column.atOnce) {
        deepStrictEqual([how, handoff], ["nothing", { ms: 0, bytes: 0, linkBytes: 0 }], column.name);
      } else ok(handoff.bytes > 0 && handoff.ms <= 46, column.name);
      if (!column.others) ok(again !== null && again.bytes > 5_000, column.name);
    }
  }
});

Deno.test("goals hold at small sizes: flat by age, carries at one round trip, feeds at the links' delay", async () => {
  const [young, old] = await ages([1, 300]);
  deepStrictEqual(old?.handoff, young?.handoff);
  ok((old?.tokenBytes ?? 999) <= 256);
  for (const { beyondMs, ratio } of await carries([2])) {
    ok(beyondMs >= 0 && beyondMs < 2 && ratio > 1 && ratio < 1.2);
  }
  for (const ms of await feedLags(3)) ok(ms > 22 && ms < 27, `${ms}`);
});
