/**
 * The paper's figure 6: 10,000 rows at edge-1, and a session that has run more and more commands there, each on one
 * row, goes on at edge-3, which holds nothing.
 */
import { type Key, packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { longValue } from "./disk.ts";
import { type Client, OurTree, readOurs, writeOurs } from "./our_tree.ts";
import type { Datum } from "./queries.ts";
import { reconcile } from "./reconcile.ts";
import { type Cost, cost } from "./table_3.ts";
import { openTreeSites } from "./tree_sites.ts";
import { TreeSite } from "./tree_site.ts";
import { inVirtualTime } from "./virtual_run.ts";

/** What is drawn. */
export interface CommandsOptions {
  readonly rows: number;
  readonly rowBytes: number;
  /** Numbers of commands, ascending. */
  readonly commands: readonly number[];
}

/** Handoffs by the number of commands that came before. */
export interface ByCommands extends CommandsOptions {
  readonly full: Cost;
  readonly session: readonly Cost[];
  /** Ours with feeds current. */
  readonly ours: readonly Cost[];
  /** Ours when the last command was a write and the next request comes as soon as it is answered. */
  readonly oursAtOnce: readonly Cost[];
}

const TABLE = packKey(["a", "paper", "t", "commands"]);
const keyOf = (n: number): Key => TABLE + packKey([n]) as Key;
/** Commands of one request. */
const PAGE = 64;

function* rowsOf({ rows, rowBytes }: CommandsOptions): Iterable<Datum> {
  for (let n = 0; n < rows; n++) yield { key: keyOf(n), value: longValue(rowBytes) };
}

/** One row size. */
export async function byCommands(options: CommandsOptions): Promise<ByCommands> {
  return { ...options, ...await inTree(options), ...await inOurs(options) };
}

async function inTree(options: CommandsOptions): Promise<Pick<ByCommands, "full" | "session">> {
  return await inVirtualTime(async (around) => {
    const at = openTreeSites(around, rowsOf(options));
    const source = at("edge-1");
    await source.read("", { kind: "list", range: prefixRange(TABLE), limit: 0, reverse: false });
    const move = (session: string, strategy: "full" | "session") =>
      cost(around, () => {
        const destination = new TreeSite("edge-3", around, at("core-2"));
        return reconcile(strategy, { session, source, destination });
      });
    const session: Cost[] = [];
    let done = 0;
    for (const commands of options.commands) {
      for (; done < commands; done++) await source.read("s", { kind: "rows", keys: [keyOf(done)] });
      session.push(await move("s", "session"));
    }
    return { full: await move("", "full"), session };
  });
}

async function inOurs(options: CommandsOptions): Promise<Pick<ByCommands, "ours" | "oursAtOnce">> {
  return await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around, rowsOf(options));
    const client: Client = { token: null };
    const ours: Cost[] = [], oursAtOnce: Cost[] = [];
    const arrive = (token: Client["token"]) =>
      cost(around, () => tree.request("edge-3", { token }, () => Promise.resolve()));
    let done = 0;
    for (const commands of options.commands) {
      while (done < commands) {
        const keys = Array.from({ length: Math.min(PAGE, commands - done) }, (_, i) => keyOf(done + i));
        await tree.request("edge-1", client, (session) => readOurs(session, { kind: "rows", keys }));
        done += keys.length;
      }
      await tree.settled();
      ours.push(await arrive(client.token));
      await tree.settled();
      const last: Client = { token: client.token };
      const row = { key: keyOf(done - 1), value: longValue(options.rowBytes) };
      await tree.request("edge-1", last, (session) => writeOurs(session, [row]));
      oursAtOnce.push(await arrive(last.token));
      await tree.settled();
    }
    await tree.close();
    return { ours, oursAtOnce };
  });
}
