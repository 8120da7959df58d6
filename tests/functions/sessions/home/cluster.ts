/** A few sites with homes in virtual time, without faults but those that a test makes. */
import type { Home, Homes, OpenedSession, StatefulName } from "../../../../functions/sessions/home/mod.ts";
import type { HostsPort } from "../../../../functions/sessions/log/hosts_asked.ts";
import type { HomesPorts } from "../../../../functions/sessions/log/ports.ts";
import { isForArbiter } from "../../../../functions/sessions/log/asks.ts";
import { decodeLogPacket, encodeLogPacket } from "../../../../functions/sessions/log/packet.ts";
import { SimNetwork } from "../../../sim/network.ts";
import { Draws } from "../../../sim/random.ts";
import { START_MS, World } from "../../../sim/world.ts";
import { encode } from "../../../stateful/sim/program.ts";
import { StatefulSite, type Wrongs } from "../../../stateful/sim/stateful_site.ts";

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const NO_HOST = { checkpointEvery: Infinity, restChance: 0, moveChance: 0, timerMs: 0 };

export const name = (id: string): StatefulName => ({ app: "shop", class: "cart", id });

interface ClusterOptions {
  readonly keptMax?: (site: string) => number;
  readonly hosts?: HostsPort;
  readonly arbiterStorage?: Wrongs["arbiterStorage"];
  /** What is asked for at the arbiter's site is at home elsewhere (seats.ts). */
  readonly seats?: boolean;
  readonly bounds?: Pick<
    HomesPorts,
    "answersBytesMax" | "lostMs" | "perAppMax" | "batchBytes" | "endedMs" | "openOf"
  >;
}

export class Cluster {
  readonly world = new World();
  readonly network: SimNetwork;
  readonly sites: readonly StatefulSite[];
  /** Names that a site was told to be due. */
  readonly due: string[] = [];
  /** What sites have said. */
  readonly notes: string[] = [];
  packets = 0;
  arbiterAsks = 0;
  /** Checkpoints for owners are lost on the way. */
  losesCheckpoints = false;

  private constructor(n: number, f: number, options: ClusterOptions) {
    const draws = new Draws("homes cluster");
    const { world } = this;
    this.network = new SimNetwork({
      world,
      draws: draws.fork("network"),
      parentOf: () => null,
      quality: () => ({ delayMs: [5, 6], lossChance: 0, bytesPerMs: Infinity }),
      noticeMs: [0, 10],
      lateChance: 0,
      window: 64,
    });
    const ids = Array.from({ length: n }, (_, i) => `s${i}`);
    const wrongs: Wrongs = {
      sends: (_site, _to, packet) => {
        this.packets++;
        this.arbiterAsks += decodeLogPacket(packet).asks.filter(({ body }) => isForArbiter(body)).length;
        return this.losesCheckpoints ? withoutCheckpoints(packet) : packet;
      },
      ...(options.arbiterStorage === undefined ? {} : { arbiterStorage: options.arbiterStorage }),
    };
    this.sites = ids.map((id, i) =>
      new StatefulSite({
        ...{ id, sites: ids, isRoot: i === 0, f, times: TIMES, world, network: this.network, wrongs },
        draws: draws.fork(id),
        commitMs: [1, 1],
        drift: 0,
        host: NO_HOST,
        echoChance: 0,
        heard: () => {},
        complain: (text) => {
          throw new Error(text);
        },
        due: (site, due) => void this.due.push(`${site} ${due.id}`),
        note: (site, event) => void this.notes.push(`${site} ${event}`),
        ...(options.bounds === undefined ? {} : { bounds: options.bounds }),
        ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
        seats: options.seats === true,
        ...(options.keptMax === undefined ? {} : { keptMax: options.keptMax(id) }),
      })
    );
    const peers = new Map(this.sites.map((site) => [site.id, site]));
    for (const site of this.sites) site.peers = peers;
  }

  static async start(
    n: number,
    f: number,
    options: ClusterOptions = {},
  ): Promise<Cluster> {
    const cluster = new Cluster(n, f, options);
    for (const site of cluster.sites) void site.start();
    await cluster.pass(300);
    return cluster;
  }

  /** What all clocks show. */
  get wallMs(): number {
    return START_MS + this.world.nowMs;
  }

  pass(ms: number): Promise<boolean> {
    return this.world.run(this.world.nowMs + ms);
  }

  site(at: number): StatefulSite {
    const site = this.sites[at];
    if (site === undefined) throw new RangeError(`there is no site ${at}`);
    return site;
  }

  homes(at: number): Homes {
    const { homes } = this.site(at);
    if (homes === null) throw new Error(`s${at} is down`);
    return homes;
  }

  /** What a promise comes to; an error by its code. */
  async of<T>(promise: Promise<T>, ms = 10_000): Promise<T> {
    let outcome: { readonly value: T } | { readonly error: unknown } | null = null;
    promise.then((value) => outcome = { value }, (error) => outcome = { error });
    await this.world.run(this.world.nowMs + ms, () => outcome !== null);
    const done = outcome as { readonly value: T } | { readonly error: unknown } | null;
    if (done === null) throw new Error(`nothing came of it in ${ms} ms`);
    if ("error" in done) throw done.error;
    return done.value;
  }

  async open(at: number, id: string): Promise<OpenedSession> {
    return await this.of(this.homes(at).open(name(id), "v1"));
  }

  /** Opens it, without anything to replay. */
  async home(at: number, id: string): Promise<Home> {
    return (await this.open(at, id)).start([]);
  }

  /** Ids of all logs on a disk. */
  logs(at: number): string[] {
    return [...this.homes(at).followable.all()].map((log) => log.name.id).sort();
  }
}

function withoutCheckpoints(packet: Uint8Array): Uint8Array {
  const { asks, ...rest } = decodeLogPacket(packet);
  return encodeLogPacket({ ...rest, asks: asks.filter(({ body }) => body.kind !== "checkpoint") });
}

/** One commit with one entry, which answers a request. */
export const commitOf = (request: string, wakeAtMs: number | null = null) => ({
  count: 1,
  entries: encode(request),
  answers: [{ request, bytes: encode(`answer to ${request}`) }],
  wakeAtMs,
});
