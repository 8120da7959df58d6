/**
 * The goals for our handoffs and feeds, in virtual time: what links and syncs make of them when processors cost
 * nothing. The same figures with processors are those of `handoff` and `store`.
 */
import { packKey } from "../../../store/model/key.ts";
import { pointRange } from "../../../store/model/range.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { Random } from "../../examples/board/random.ts";
import { type Client, OurTree, readOurs, tokenBytes, writeOurs } from "./our_tree.ts";
import type { Datum } from "./queries.ts";
import { rowOf } from "./one_row.ts";
import { type Cost, cost } from "./table_3.ts";
import { roundTripMs } from "./topology.ts";
import type { Around } from "./tree_site.ts";
import { inVirtualTime } from "./virtual_run.ts";

const EDGES = ["edge-1", "edge-2", "edge-3"] as const;
const arriving = () => Promise.resolve();

/** A handoff, by the operations that its session did before. */
export interface Age {
  readonly operations: number;
  readonly handoff: Cost;
  readonly tokenBytes: number;
}

/** A row of 100 bytes: the operations count here, not their bytes. */
const smallRow = (n: number): Datum => ({ key: packKey(["a", "age", n]), value: new Uint8Array(100) });
/** Operations of one request. */
const PAGE = 100;

/** One session that grows older: it writes and reads, moves to edge-3 at each of these ages, and goes on at edge-1. */
export async function ages(operations: readonly number[]): Promise<Age[]> {
  return await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around);
    const client: Client = { token: null }, found: Age[] = [];
    let done = 0;
    for (const age of operations) {
      while (done < age) {
        const rows = Array.from({ length: Math.min(PAGE, age - done) }, (_, i) => smallRow(done + i));
        await tree.request("edge-1", client, async (session) => {
          for (const [i, row] of rows.entries()) {
            if (i % 2 === 0) await writeOurs(session, [row]);
            else await readOurs(session, { kind: "rows", keys: [row.key] });
          }
        });
        done += rows.length;
      }
      await tree.settled();
      const moved: Client = { token: client.token };
      const handoff = await cost(around, () => tree.request("edge-3", moved, arriving));
      found.push({ operations: age, handoff, tokenBytes: tokenBytes(client) });
      await tree.settled();
    }
    await tree.close();
    return found;
  });
}

/** A carry of rows that the common ancestor does not have. */
export interface Carried {
  readonly to: SiteId;
  readonly rows: number;
  /** To attach, beyond the round trip between source and destination. */
  readonly beyondMs: number;
  /** Bytes of the rows carried as they are encoded ÷ bytes of their values. */
  readonly ratio: number;
}

/** Carries from edge-1, with the common ancestor held so that rows stay pending. */
export async function carries(counts: readonly number[]): Promise<Carried[]> {
  return await inVirtualTime(async (around) => {
    const tree = await OurTree.open(around);
    const found: Carried[] = [];
    for (const [to, ancestor] of [["edge-2", "core-1"], ["edge-3", "cloud"]] as const) {
      for (const count of counts) found.push(await carry(around, tree, to, ancestor, count));
    }
    await tree.close();
    return found;
  });
}

async function carry(
  { world, links }: Around,
  tree: OurTree,
  to: SiteId,
  ancestor: SiteId,
  count: number,
): Promise<Carried> {
  const client: Client = { token: null };
  await tree.request("edge-1", client, arriving);
  links.hold(ancestor);
  const rows = Array.from({ length: count }, (_, n) => rowOf(`pending ${to} ${count}`, n));
  await tree.request("edge-1", client, (session) => writeOurs(session, rows));
  // What is pending above the source's parent has reached that.
  await world.sleep(50);
  const from = tree.at(to).status().counters["carried_bytes"] ?? 0;
  const arrival = await tree.request(to, client, arriving);
  const bytes = (tree.at(to).status().counters["carried_bytes"] ?? 0) - from;
  links.release(ancestor);
  await tree.settled();
  if (arrival.how !== "carry") throw new Error(`${count} rows to ${to}: ${arrival.how}, not carry`);
  const values = rows.reduce((sum, row) => sum + row.value.length, 0);
  return {
    to,
    rows: count,
    beyondMs: arrival.ms - roundTripMs("edge-1", to),
    ratio: bytes / values,
  };
}

/** How handoffs went while clients moved on and on. */
export interface Share {
  readonly handoffs: number;
  readonly nothing: number;
  readonly ms: readonly number[];
  readonly tokenBytesMax: number;
}

const ROWS = 1_000;
/** Mean of an exponential distribution, as in `handoff`. */
const THINK_MS = 400;

/** Clients that move between the edges every `stayMs`, and write with every tenth request. */
export async function share(
  { clients, stayMs, runMs }: { clients: number; stayMs: number; runMs: number },
): Promise<Share> {
  return await inVirtualTime(async (around) => {
    const { world } = around;
    const rows = Array.from({ length: ROWS }, (_, n) => rowOf("shared", n));
    const tree = await OurTree.open(around, rows);
    for (const edge of EDGES) {
      await tree.request(
        edge,
        { token: null },
        (session) => readOurs(session, { kind: "rows", keys: rows.map((row) => row.key) }),
      );
    }
    const ms: number[] = [];
    let nothing = 0, tokenBytesMax = 0;
    const endMs = world.nowMs + runMs;
    const live = async (seed: number) => {
      const random = new Random(seed), client: Client = { token: null };
      let edge = random.below(EDGES.length),
        moveMs = world.nowMs + random.unit() * stayMs,
        isNew = true,
        arrived = true;
      await world.sleep(random.unit() * THINK_MS);
      while (world.nowMs < endMs) {
        if (world.nowMs >= moveMs) {
          edge = (edge + 1 + random.below(EDGES.length - 1)) % EDGES.length;
          moveMs += stayMs;
          arrived = true;
        }
        const row = random.pick(rows), isWrite = random.unit() < 0.1;
        const arrival = await tree.request(EDGES[edge] ?? "edge-1", client, async (session) => {
          if (isWrite) await writeOurs(session, [row]);
          else await readOurs(session, { kind: "rows", keys: [row.key] });
        });
        if (arrived && !isNew) {
          ms.push(arrival.ms);
          if (arrival.how === "nothing") nothing++;
        }
        tokenBytesMax = Math.max(tokenBytesMax, tokenBytes(client));
        [arrived, isNew] = [false, false];
        await world.sleep(random.exponential(THINK_MS));
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, n) => live(n + 1)));
    await tree.close();
    return { handoffs: ms.length, nothing, ms, tokenBytesMax };
  });
}

/** Feed lag: from a write at edge-1 until it is seen by somebody who watches the row at edge-3. */
export async function feedLags(count: number): Promise<number[]> {
  return await inVirtualTime(async (around) => {
    const { world } = around;
    const tree = await OurTree.open(around);
    const row = rowOf("lag", 0), random = new Random(5);
    const seen: { ms: number } = { ms: -1 };
    const writer: Client = { token: null }, lags: number[] = [];
    await tree.request("edge-3", { token: null }, async (session) => {
      session.watch([pointRange(row.key)], () => {
        seen.ms = world.nowMs;
      });
      await readOurs(session, { kind: "rows", keys: [row.key] });
    });
    await tree.settled();
    for (let n = 0; n < count; n++) {
      // Off the beat of whatever timers there are on the way.
      await world.sleep(random.exponential(100));
      seen.ms = -1;
      const begunMs = world.nowMs;
      await tree.request("edge-1", writer, (session) => writeOurs(session, [row]));
      while (seen.ms < 0) await world.sleep(0.05);
      lags.push(seen.ms - begunMs);
    }
    await tree.close();
    return lags;
  });
}
