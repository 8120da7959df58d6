/**
 * Our own store on table III's scenario: the same crowds with the same queries, then each client of edge-1 goes on
 * elsewhere. Two moments: once what it wrote is known everywhere, and at once after the answer to a last write.
 *
 * Nothing is fetched before a client asks for it, but for what warms the edge in the background (store/session/warming.ts);
 * both are in `again`, and so are feeds and marks for the rows that the edge covers from then on.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import { browse, type CrowdOptions, crowds } from "./crowd.ts";
import { between, type Tally } from "./links.ts";
import { type Arrived, type Client, OurTree, readOurs, tokenBytes, writeOurs } from "./our_tree.ts";
import type { Datum } from "./queries.ts";
import { AGAIN_CLIENTS, type Cost, type Moved } from "./table_3.ts";
import type { Around } from "./tree_site.ts";
import { inVirtualTime } from "./virtual_run.ts";
import type { Visitor } from "./visitor.ts";

/** One client's move, and how it went. */
export interface OurMove extends Moved {
  readonly how: Arrived["how"];
}

/** A move of ours: where to, and when. */
export interface OurColumn {
  readonly name: string;
  readonly to: "edge-2" | "edge-3";
  readonly others: boolean;
  /** The client's last page was a write, and the next request comes as soon as it is answered. */
  readonly atOnce: boolean;
}

export const OUR_COLUMNS: readonly OurColumn[] = [
  { name: "to edge-3, 100 others there", to: "edge-3", others: true, atOnce: false },
  { name: "to edge-2, 100 others there", to: "edge-2", others: true, atOnce: false },
  { name: "to edge-3, at once after a write", to: "edge-3", others: true, atOnce: true },
  { name: "to edge-2, at once after a write", to: "edge-2", others: true, atOnce: true },
  { name: "to edge-3, nobody there", to: "edge-3", others: false, atOnce: false },
  { name: "to edge-2, nobody there", to: "edge-2", others: false, atOnce: false },
];

export interface OurTable {
  /** On all links while all clients were at work, feeds and marks included. */
  readonly workBytes: number;
  readonly tokenBytes: number;
  readonly moves: ReadonlyMap<OurColumn, readonly OurMove[]>;
}

/** What follows from an arrival in the background has been said by then. */
const AFTER_MS = 1_000;
/** Number of the comment that is written right before a move: no client has written so many. */
const LAST = 999;
const EDGES = ["edge-1", "edge-2", "edge-3"] as const;

/** Table III of ours. */
export async function ourTable(options: CrowdOptions): Promise<OurTable> {
  return await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around, options.board.data());
    const all = crowds(options, EDGES);
    const clients = new Map<Visitor, Client>();
    for (const { visitors } of all) for (const visitor of visitors) clients.set(visitor, { token: null });
    const before = around.links.tally;
    await browse(around.world, all, options.queries, (site, visitor, page) => {
      const client = clients.get(visitor) ?? { token: null };
      return tree.request(
        site,
        client,
        (session) =>
          page({ read: (query) => readOurs(session, query), write: (data) => writeOurs(session, data) }),
      );
    });
    await tree.settled();
    const workBytes = between(before, around.links.tally).linkBytes;
    const movers = all[0]?.visitors ?? [];
    const moves = new Map<OurColumn, OurMove[]>();
    for (const column of OUR_COLUMNS) {
      const done: OurMove[] = [];
      for (const [n, visitor] of movers.slice(0, column.others ? movers.length : AGAIN_CLIENTS).entries()) {
        const { board } = options, story = board.size.stories - 1;
        const last = board.comment(story, "", board.writtenId(n + 1, LAST), board.userOf(n + 1));
        // A token may be shown again and again: each move begins where edge-1 left the client.
        const client: Client = { token: clients.get(visitor)?.token ?? null };
        done.push(await moveOf(around, tree, column, visitor, client, last));
      }
      moves.set(column, done);
    }
    const sizes = [...clients.values()].map(tokenBytes);
    await tree.close();
    return { workBytes, tokenBytes: Math.max(...sizes), moves };
  });
}

async function moveOf(
  around: Around,
  tree: OurTree,
  { to, others, atOnce }: OurColumn,
  visitor: Visitor,
  client: Client,
  last: Datum,
): Promise<OurMove> {
  if (!others) await forget(tree, to);
  if (atOnce) await tree.request("edge-1", client, (session) => writeOurs(session, [last]));
  const { world, links } = around, fromMs = world.nowMs, from = links.tally;
  let arrivedAt = from;
  const { how, ms } = await tree.request(to, client, () => {
    arrivedAt = links.tally;
    return Promise.resolve();
  });
  // Where the session went on at once, nothing was said between; else marks of all links are in it too.
  const { bytes, linkBytes } = between(from, arrivedAt);
  const handoff: Cost = { ms, bytes, linkBytes };
  if (others || atOnce) {
    await tree.settled();
    return { how, handoff, again: null };
  }
  const againFromMs = world.nowMs;
  await tree.request(to, client, async (session) => {
    for (const query of visitor.queries) await readOurs(session, query);
  });
  const againMs = world.nowMs - againFromMs;
  await world.sleep(AFTER_MS);
  const all = between(arrivedAt, links.tally);
  const idle = await idleTally(around, world.nowMs - fromMs);
  const again = { ms: againMs, bytes: all.bytes - idle.bytes, linkBytes: all.linkBytes - idle.linkBytes };
  return { how, handoff, again };
}

/** Marks go on whether anyone moves or not. */
async function idleTally({ world, links }: Around, ms: number): Promise<Tally> {
  const from = links.tally;
  await world.sleep(ms);
  return between(from, links.tally);
}

/** The destination, and its core where that is not edge-1's too, cover nothing of the board any more. */
async function forget(tree: OurTree, to: SiteId): Promise<void> {
  await tree.at(to).evict();
  await tree.settled();
  if (to === "edge-3") await tree.at("core-2").evict();
  await tree.settled();
}
