/**
 * Our own store in the paper's deployment: six replicas as a site opens them (store/replica.ts, the same code as in
 * production) over links and disks in virtual time.
 *
 * Life: `OurTree.open` → sessions → done. A peer link, which a carry uses, is up as soon as it is needed: the
 * baselines' sites are connected too.
 */
import { Draws } from "../../sim/random.ts";
import { START_MS, type World } from "../../sim/world.ts";
import type { AttachedSession, Replica, TokenState } from "../../../store/api/api.ts";
import type { Clock, SiteId } from "../../../store/model/ports.ts";
import { openReplica } from "../../../store/replica.ts";
import type { Row } from "../../../store/model/row.ts";
import { deriveKeyRing, sealToken } from "../../../store/session/token.ts";
import { VirtualDisk } from "./disk.ts";
import type { VirtualLinks } from "./links.ts";
import type { Datum, Query } from "./queries.ts";
import { PARENTS, SITES, TIERS } from "./topology.ts";
import type { Around } from "./tree_site.ts";

/** Wide enough that nothing is evicted, as in the paper. */
const CAPACITY_BYTES = 2 ** 40;
/** After this long everything has been said that follows from the last write: marks of idle links, over three links. */
const SETTLE_MS = 1_500;

/** A site's clock, right to the millisecond. */
const rightClock = (world: World): Clock => ({
  nowMs: () => Math.floor(START_MS + world.nowMs),
  steadyMs: () => Math.floor(START_MS + world.nowMs),
  after: (ms, callback) => world.after(ms, callback),
  turn: () => world.sleep(0),
});

/** A client: the token that it shows with its next request. */
export interface Client {
  token: TokenState | null;
}

/** What an arrival cost. */
export interface Arrived {
  readonly how: AttachedSession["how"];
  readonly ms: number;
}

/** Six replicas. */
export class OurTree {
  readonly #around: Around;
  readonly #replicas = new Map<SiteId, Replica>();
  readonly #peers = new Set<string>();

  private constructor(around: Around) {
    this.#around = around;
  }

  /** Opens all sites, loads the root, and connects them; resolves when all are ready. */
  static async open(around: Around, data: Iterable<Datum> = []): Promise<OurTree> {
    const tree = new OurTree(around);
    for (const site of SITES) {
      tree.#replicas.set(site, await tree.#openSite(site, around.world, around.links));
    }
    await tree.#load(data);
    for (const [site, parent] of PARENTS) if (parent !== null) tree.#connect(parent, "child", site, "parent");
    await Promise.all(SITES.map((site) => tree.at(site).ready));
    return tree;
  }

  async #openSite(site: SiteId, world: World, links: VirtualLinks): Promise<Replica> {
    return await openReplica({
      site,
      parent: PARENTS.get(site) ?? null,
      tier: TIERS[site] ?? "",
      url: `https://${site}.example`,
      linkAddress: `${site}.example:7000`,
      capacityBytes: CAPACITY_BYTES,
    }, {
      clock: rightClock(world),
      random: new Draws(`paper ${site}`),
      storage: new VirtualDisk(world),
      network: {
        send: (to, message) => {
          this.#dial(site, to);
          return links.send(site, to, message.length, () => this.at(to).receive(site, message));
        },
      },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    });
  }

  async #load(data: Iterable<Datum>): Promise<void> {
    let batch: { kind: "set"; key: Datum["key"]; value: Datum["value"] }[] = [], bytes = 0;
    const { system } = this.at("cloud");
    for (const { key, value } of data) {
      batch.push({ kind: "set", key, value });
      bytes += value.length;
      if (batch.length < LOAD_ROWS && bytes < LOAD_BYTES) continue;
      await system.write(batch);
      await system.durable();
      [batch, bytes] = [[], 0];
    }
    await system.write(batch);
    await system.durable();
  }

  #connect(upper: SiteId, upperSees: "child" | "peer", lower: SiteId, lowerSees: "parent" | "peer"): void {
    this.at(upper).connected(lower, upperSees);
    this.at(lower).connected(upper, lowerSees);
  }

  #dial(from: SiteId, to: SiteId): void {
    const pair = [from, to].sort().join(" ");
    if (PARENTS.get(from) === to || PARENTS.get(to) === from || this.#peers.has(pair)) return;
    this.#peers.add(pair);
    this.#connect(from, "peer", to, "peer");
  }

  at(site: SiteId): Replica {
    const replica = this.#replicas.get(site);
    if (replica === undefined) throw new Error(`there is no site ${site}`);
    return replica;
  }

  /**
   * One request of a client at a site, as the gateway runs it: attach, the body, everything read or written is on
   * disk, the token leaves.
   */
  async request<T>(
    site: SiteId,
    client: Client,
    body: (session: AttachedSession) => Promise<T>,
  ): Promise<Arrived & { value: T }> {
    const begunMs = this.#around.world.nowMs;
    const session = await this.at(site).attach(client.token);
    const ms = this.#around.world.nowMs - begunMs;
    const value = await body(session);
    await session.durable();
    client.token = session.token(false);
    return { how: session.how, ms, value };
  }

  /** Waits until nothing is on its way and every site knows it. */
  async settled(): Promise<void> {
    const { world } = this.#around;
    while (SITES.some((site) => this.at(site).status().pending > 0)) await world.sleep(10);
    await world.sleep(SETTLE_MS);
  }

  async close(): Promise<void> {
    for (const site of SITES.toReversed()) await this.at(site).close();
  }
}

const LOAD_ROWS = 500;
const LOAD_BYTES = 1 << 20;

/** A query through a session of ours. */
export async function readOurs(session: AttachedSession, query: Query): Promise<readonly Row[]> {
  if (query.kind === "rows") return (await session.get(query.keys)).filter((row) => row !== undefined);
  const { range, limit, reverse } = query;
  return await session.list(range, { ...limit === 0 ? {} : { limit }, reverse });
}

/** Rows through a session of ours. */
export async function writeOurs(session: AttachedSession, data: readonly Datum[]): Promise<void> {
  await session.write(data.map(({ key, value }) => ({ kind: "set" as const, key, value })));
}

/** The length of the token that a client carries. */
export function tokenBytes({ token }: Client): number {
  if (token === null) return 0;
  const ring = deriveKeyRing([new Uint8Array(32).fill(1)]);
  return sealToken(token, ring, { nowMs: Date.UTC(2026, 0, 1), random: { bytes: (n) => new Uint8Array(n) } })
    .length;
}
