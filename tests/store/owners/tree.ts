/** Replicas that may own for each other, in virtual time. */
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import { SiteReplica } from "../../../store/replica.ts";
import { Core } from "../../../store/core/core.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { type Endpoint, SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { ProcessClock, World } from "../../sim/world.ts";

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const PARENTS: Readonly<Record<SiteId, SiteId | null>> = { root: null, e1: "root", e2: "root", e3: "root" };

/** A root and up to three edges, as replicas in virtual time. */
export class Tree {
  readonly world = new World();
  readonly draws = new Draws("site owners");
  readonly network: SimNetwork;
  readonly replicas = new Map<SiteId, SiteReplica>();
  readonly endpoints = new Map<SiteId, Endpoint>();
  readonly notes: string[] = [];

  /** @param delayMs one way, between two sites. */
  constructor(delayMs: (a: SiteId, b: SiteId) => number = () => 5) {
    this.network = new SimNetwork({
      world: this.world,
      draws: this.draws.fork("network"),
      parentOf: (site) => PARENTS[site] ?? null,
      quality: (a, b) => ({
        delayMs: [delayMs(a, b), delayMs(a, b) + 1],
        lossChance: 0,
        bytesPerMs: Infinity,
      }),
      window: 64,
      noticeMs: [0, 10],
      lateChance: 0,
    });
  }

  async start(site: SiteId, area: string | null, nearMs = 0, f = 1): Promise<SiteReplica> {
    const clock = new ProcessClock(this.world, { skewMs: 0, drift: 0 });
    const random = this.draws.fork(site);
    const holder: { endpoint: Endpoint | null } = { endpoint: null };
    const owners = { ...NO_OWNERS, ...TIMES, f, nearMs, area };
    const replica = new SiteReplica(
      new Core({
        site,
        parent: PARENTS[site] ?? null,
        tier: "edge",
        url: "",
        linkAddress: "",
        capacityBytes: 1 << 30,
        owners,
      }, {
        clock,
        random: { bytes: (length) => Uint8Array.from({ length }, () => random.integer(0, 255)) },
        storage: new MemoryStorage(),
        network: {
          send: (to, message) =>
            holder.endpoint === null
              ? Promise.resolve()
              : this.network.send(holder.endpoint, site, to, message),
        },
        fatal: (error) => {
          throw error;
        },
        note: (event, detail) => void this.notes.push(`${event} ${detail?.from}`),
      }),
    );
    await replica.start();
    const endpoint = holder.endpoint = {
      connected: (other: SiteId, role: "parent" | "child" | "peer") => replica.connected(other, role),
      disconnected: (other: SiteId) => replica.disconnected(other),
      receive: (from: SiteId, message: Uint8Array) => replica.receive(from, message),
    };
    this.network.up(site, endpoint);
    this.replicas.set(site, replica);
    return replica;
  }

  pass(ms: number): Promise<boolean> {
    return this.world.run(this.world.nowMs + ms);
  }
}
