/**
 * The paper's figure 5 and table IV: reads and writes of single rows of 1 KB at edge-1, in SessionStore's tree, in
 * ours, and in the rings with eager replication or strong consistency. Each row is another one, one after the other.
 */
import { encodeValue } from "../../../functions/values/value.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { between } from "./links.ts";
import { OurTree, readOurs, writeOurs } from "./our_tree.ts";
import type { Datum, Query } from "./queries.ts";
import { DEPLOYMENTS, Ring } from "./ring.ts";
import { openTreeSites } from "./tree_sites.ts";
import type { Around } from "./tree_site.ts";
import { inVirtualTime } from "./virtual_run.ts";

/** One kind of operation on rows of 1 KB. */
export interface OneRow {
  readonly system: string;
  readonly operation: "read" | "write";
  /** Where the row was before a read; empty: everywhere, or wherever the system keeps it. */
  readonly from: string;
  /** In the order of the operations. */
  readonly ms: readonly number[];
  /** Each byte once, from its sender to its receiver, a row. */
  readonly bytes: number;
  /** Each byte once a link that it passes, a row. */
  readonly linkBytes: number;
}

const ROW_BYTES = 1_024;
const EDGE = "edge-1";
/** All that follows from an operation is over by then. */
const SETTLE_MS = 1_500;
/** Operations are so far apart that none meets what is left of the one before; longer, and idle marks weigh more. */
const APART_MS = 25;
const PLACES = ["edge-1", "core-1", "cloud"] as const;

/** A row of the figure. */
export function rowOf(set: string, n: number): Datum {
  return { key: packKey(["a", "paper", "t", set, n]), value: encodeValue("x".repeat(ROW_BYTES)) };
}

const rowsOf = (set: string, count: number): Datum[] =>
  Array.from({ length: count }, (_, n) => rowOf(set, n));
const one = (key: Key): Query => ({ kind: "rows", keys: [key] });

/** All of them, `count` rows each. */
export async function oneRow(count: number): Promise<OneRow[]> {
  return [...await inTree(count), ...await inOurs(count), ...await inRings(count)];
}

/** Runs one operation on each row; what idle links carry is taken off where there is any. */
async function series(
  around: Around,
  what: Pick<OneRow, "system" | "operation" | "from">,
  rows: readonly Datum[],
  operate: (row: Datum, n: number) => Promise<unknown>,
): Promise<OneRow> {
  const { world, links } = around;
  const ms: number[] = [];
  const from = links.tally, fromMs = world.nowMs;
  for (const [n, row] of rows.entries()) {
    const begunMs = world.nowMs;
    await operate(row, n);
    ms.push(world.nowMs - begunMs);
    await world.sleep(APART_MS);
  }
  await world.sleep(SETTLE_MS);
  const done = links.tally;
  await world.sleep(world.nowMs - fromMs);
  const all = between(from, done), idle = between(done, links.tally);
  return {
    ...what,
    ms,
    // Marks come on their own beat: a little more or less in equal spans.
    bytes: Math.max(0, all.bytes - idle.bytes) / rows.length,
    linkBytes: Math.max(0, all.linkBytes - idle.linkBytes) / rows.length,
  };
}

async function inTree(count: number): Promise<OneRow[]> {
  return await inVirtualTime(async (around) => {
    const at = openTreeSites(around, PLACES.flatMap((place) => rowsOf(place, count)));
    const done: OneRow[] = [];
    for (const place of PLACES) {
      const rows = rowsOf(place, count);
      if (place !== "cloud") { for (const { key } of rows) await at(place).read("", one(key)); }
      const what = { system: "SessionStore", operation: "read", from: place } as const;
      done.push(await series(around, what, rows, (row) => at(EDGE).read("s", one(row.key))));
    }
    const what = { system: "SessionStore", operation: "write", from: "" } as const;
    done.push(await series(around, what, rowsOf("written", count), (row) => at(EDGE).write("s", [row])));
    return done;
  });
}

async function inOurs(count: number): Promise<OneRow[]> {
  return await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around, PLACES.flatMap((place) => rowsOf(place, count)));
    const done: OneRow[] = [];
    const client = { token: null };
    for (const place of PLACES) {
      const rows = rowsOf(place, count);
      if (place !== "cloud") {
        for (const { key } of rows) {
          await tree.request(place, { token: null }, (session) => readOurs(session, one(key)));
        }
      }
      await tree.settled();
      const what = { system: "ours", operation: "read", from: place } as const;
      done.push(
        await series(
          around,
          what,
          rows,
          (row) => tree.request(EDGE, client, (session) => readOurs(session, one(row.key))),
        ),
      );
    }
    const what = { system: "ours", operation: "write", from: "" } as const;
    done.push(
      await series(
        around,
        what,
        rowsOf("written", count),
        (row) => tree.request(EDGE, client, (session) => writeOurs(session, [row])),
      ),
    );
    await tree.close();
    return done;
  });
}

async function inRings(count: number): Promise<OneRow[]> {
  const done: OneRow[] = [];
  for (const deployment of DEPLOYMENTS) {
    done.push(
      ...await inVirtualTime(async (around) => {
        const ring = new Ring(deployment, around), rows = rowsOf("ring", count);
        const what = { system: deployment, from: "" } as const;
        return [
          await series(around, { ...what, operation: "write" }, rows, (row) => ring.write(EDGE, row)),
          await series(around, { ...what, operation: "read" }, rows, (row) => ring.read(EDGE, row.key)),
        ];
      }),
    );
  }
  return done;
}
