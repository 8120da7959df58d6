/**
 * The paper's table III: 100 clients browse and comment at edge-1, others at the other edges; then each of the 100
 * goes on elsewhere, once for each strategy, from the same state every time.
 *
 * What is compared: bytes and time until the client's next query may run; and, since some strategies leave rows
 * behind that the client will ask for, what it takes to run all its reads again there, one after the other.
 */
import type { Key } from "../../../store/model/key.ts";
import { browse, type CrowdOptions, crowds } from "./crowd.ts";
import { between } from "./links.ts";
import { queriesBytes, rowsBytes } from "./messages.ts";
import type { Query } from "./queries.ts";
import { reconcile, type Strategy } from "./reconcile.ts";
import { type Around, TreeSite } from "./tree_site.ts";
import { openTreeSites } from "./tree_sites.ts";
import { inVirtualTime } from "./virtual_run.ts";
import type { Visitor } from "./visitor.ts";

/** A column of the table: what happens, and where to. */
export interface Column {
  readonly name: string;
  readonly strategy: Strategy;
  readonly to: "edge-2" | "edge-3";
  /** Whether other clients were there before. */
  readonly others: boolean;
}

export const COLUMNS: readonly Column[] = [
  { name: "full", strategy: "full", to: "edge-3", others: false },
  { name: "session-aware", strategy: "session", to: "edge-3", others: false },
  { name: "Δ-list", strategy: "delta", to: "edge-3", others: true },
  { name: "sibling, nobody there", strategy: "sibling", to: "edge-2", others: false },
  { name: "sibling, 100 others there", strategy: "sibling", to: "edge-2", others: true },
  { name: "sibling, 100 others there, whole results", strategy: "sibling-whole", to: "edge-2", others: true },
];

/** What a handoff cost. */
export interface Cost {
  readonly ms: number;
  /** Once a message, from its sender to its receiver, as in the paper. */
  readonly bytes: number;
  /** Once a link that they pass. */
  readonly linkBytes: number;
}

/** A client's move, and its reads afterwards. */
export interface Moved {
  readonly handoff: Cost;
  /** null: not asked of this client. */
  readonly again: Cost | null;
}

/** So many of the clients run their reads again: enough for a mean, and gigabytes less to move. */
export const AGAIN_CLIENTS = 20;

/** What the clients did before anybody moved. */
export interface Before {
  readonly queries: number;
  /** Rows that reads gave, by query. */
  readonly rowsPerQuery: number;
  /** At edge-1: rows and comments, and what they take in messages. */
  readonly rows: number;
  readonly comments: number;
  readonly bytes: number;
  /** Of one client: its comments, and its queries in messages. */
  readonly commentsPerClient: number;
  readonly queryBytesPerClient: number;
  /** On all links, while all clients were at work. */
  readonly workBytes: number;
}

export interface BaselineTable {
  readonly before: Before;
  /** One a client, by column. */
  readonly moves: ReadonlyMap<Column, readonly Moved[]>;
}

/** Nothing is pushed any more after this long. */
const PUSHED_MS = 1_000;
const EDGES = ["edge-1", "edge-2", "edge-3"] as const;

/** Table III of the baselines. */
export async function baselineTable(options: CrowdOptions): Promise<BaselineTable> {
  return await inVirtualTime(async (around) => {
    const { world, links } = around;
    const at = openTreeSites(around, options.board.data());
    const all = crowds(options, EDGES);
    const idle = links.tally;
    await browse(world, all, options.queries, (site, visitor, page) => {
      const session = `${site} ${all.find((crowd) => crowd.site === site)?.visitors.indexOf(visitor)}`;
      return page({
        read: (query) => at(site).read(session, query),
        write: (data) => at(site).write(session, data),
      });
    });
    await world.sleep(PUSHED_MS);
    const workBytes = between(idle, links.tally).linkBytes;
    const movers = all[0]?.visitors ?? [];
    const before = { ...whatWasDone(options, at("edge-1"), movers), workBytes };
    const moves = new Map<Column, Moved[]>();
    for (const column of COLUMNS) {
      const done: Moved[] = [];
      for (const [n, visitor] of movers.entries()) {
        const { to } = column;
        const destination = column.others ? at(to).copy() : new TreeSite(to, around, at(to).parent);
        const move = { session: `edge-1 ${n}`, source: at("edge-1"), destination };
        const handoff = await cost(around, () => reconcile(column.strategy, move));
        const run = () => readAgain(visitor.queries, (query) => destination.read("", query));
        const again = n < AGAIN_CLIENTS ? await cost(around, run) : null;
        done.push({ handoff, again });
      }
      moves.set(column, done);
    }
    return { before, moves };
  });
}

/** All reads of a client, one after the other. */
export async function readAgain(
  queries: readonly Query[],
  read: (query: Query) => Promise<unknown>,
): Promise<void> {
  for (const query of queries) await read(query);
}

/** What a piece of work takes, of time and between sites. */
export async function cost({ world, links }: Around, work: () => Promise<unknown>): Promise<Cost> {
  const begunMs = world.nowMs, from = links.tally;
  await work();
  const { bytes, linkBytes } = between(from, links.tally);
  return { ms: world.nowMs - begunMs, bytes, linkBytes };
}

function whatWasDone(
  { board }: CrowdOptions,
  edge: TreeSite,
  movers: readonly Visitor[],
): Omit<Before, "workBytes"> {
  const isComment = (key: Key) => key.startsWith(board.commentsPrefix);
  const rows = edge.all();
  const queries = movers.reduce((sum, visitor) => sum + visitor.count, 0);
  const reads = movers.reduce((sum, visitor) => sum + visitor.queries.length, 0);
  let comments = 0, queryBytes = 0;
  for (const n of movers.keys()) {
    const commands = edge.commands(`edge-1 ${n}`);
    queryBytes += queriesBytes(commands);
    comments += new Set(
      commands.flatMap((range) => edge.matching(range)).map((row) => row.key).filter(isComment),
    ).size;
  }
  return {
    queries,
    rowsPerQuery: movers.reduce((sum, visitor) => sum + visitor.rows, 0) / reads,
    rows: rows.length,
    comments: rows.filter((row) => isComment(row.key)).length,
    bytes: rowsBytes(rows),
    commentsPerClient: comments / movers.length,
    queryBytesPerClient: queryBytes / movers.length,
  };
}
