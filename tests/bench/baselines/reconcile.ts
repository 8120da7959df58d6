/**
 * SessionStore's reconciliation (section V.B), for comparison only: what a switch of a session from one replica to
 * another does before the session's next query runs.
 *
 *   full      the source sends every row and every query that it holds
 *   session   it runs the session's commands again, and sends their rows and the commands
 *   delta     the destination first says which rows it has, in which version; the source leaves those out
 *   sibling   the source sends the commands and what it has not pushed; rows at the destination that match a command
 *             are brought up to date from the parent, which sends what differs there
 *   sibling-whole   the same, but the parent sends all that these commands name
 *
 * R1  Afterwards each row that the session has read or written is at the destination in the version it saw, or a
 *     newer one; with `sibling` at the destination or at the parent.
 * R2  For `sibling` the parent knows what differs without being told what is there: less than an implementation
 *     can send. `sibling-whole` is the most that it has to. The paper does not say what its own sends.
 */
import type { Key } from "../../../store/model/key.ts";
import { compareVersions, type Row } from "../../../store/model/row.ts";
import { queriesBytes, SWITCH_BYTES, versionsBytes } from "./messages.ts";
import type { TreeSite } from "./tree_site.ts";

export const STRATEGIES = ["full", "session", "delta", "sibling", "sibling-whole"] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** Who moves from where to where. */
export interface Switch {
  readonly session: string;
  readonly source: TreeSite;
  readonly destination: TreeSite;
}

const isNewer = (row: Row, old: Row | undefined): boolean =>
  old === undefined || compareVersions(row, old) > 0;

/** Rows that the session's commands name at the source, each once. */
function touched({ source, session }: Switch): Row[] {
  const rows = new Map<Key, Row>();
  for (const range of source.commands(session)) {
    for (const row of source.matching(range)) rows.set(row.key, row);
  }
  return [...rows.values()];
}

/** Hands a session over; resolves when the destination may run its next query. */
export async function reconcile(strategy: Strategy, move: Switch): Promise<void> {
  const { source, destination, session } = move;
  const { links } = destination.around;
  const commands = source.commands(session);
  const list = strategy === "delta" ? destination.all() : null;
  const asked = SWITCH_BYTES + (list === null ? 0 : versionsBytes(list));
  await links.deliver(destination.id, source.id, asked);
  if (strategy === "sibling" || strategy === "sibling-whole") return await toSibling(strategy, move);
  const queries = strategy === "full" ? source.queries.list() : commands;
  const held = new Map(list?.map((row) => [row.key, row]));
  const rows = strategy === "full" ? source.all() : touched(move);
  const told = links.deliver(source.id, destination.id, queriesBytes(queries));
  await destination.takeFrom(source.id, rows.filter((row) => isNewer(row, held.get(row.key))));
  await told;
  destination.adopt(session, commands);
  for (const range of queries) destination.queries.add(range);
}

async function toSibling(strategy: Strategy, { source, destination, session }: Switch): Promise<void> {
  const { links } = destination.around, { parent } = destination;
  if (parent === null || source.parent !== parent) {
    throw new Error(`${source.id} and ${destination.id} have no common parent`);
  }
  const commands = source.commands(session);
  const told = links.deliver(source.id, destination.id, queriesBytes(commands));
  await destination.takeFrom(source.id, source.unpushed());
  await told;
  destination.adopt(session, commands);
  const common = commands.filter((range) => destination.matching(range).length > 0);
  if (common.length === 0) return;
  await links.deliver(destination.id, parent.id, queriesBytes(common));
  const stale = new Map<Key, Row>();
  for (const range of common) {
    for (const row of parent.matching(range)) {
      if (strategy === "sibling-whole" || isNewer(row, destination.get(row.key))) stale.set(row.key, row);
    }
  }
  await destination.takeFrom(parent.id, [...stale.values()]);
  // What the destination has of these ranges is now all that the parent has.
  for (const range of common) if (parent.queries.covers(range)) destination.queries.add(range);
}
