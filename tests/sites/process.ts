/**
 * One process of a site: the production code of stateful sessions from the gateway to the disks, put together as
 * runtime/site/stateful_service.ts does it, over the ports of a simulation.
 */
import type { Homes, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { OriginAddress } from "../../functions/origin_address.ts";
import type { LiveVersion } from "../../runtime/deploy/mod.ts";
import { appSpace } from "../../runtime/gateway/session_store.ts";
import type { LinkReply, LinkRequest } from "../../functions/vocabulary/site_links.ts";
import { EgressRules } from "../../runtime/isolate/egress_rules.ts";
import { DEFAULT_ISOLATE_LIMITS } from "../../runtime/isolate/limits.ts";
import { HttpOrigins, ORIGIN_KIND, type OriginAsker } from "../../runtime/origins/http_origins.ts";
import { KeptOutcomes } from "../../runtime/origins/kept_outcomes.ts";
import {
  encodeWanted,
  ORIGIN_WAY_KIND,
  OriginEnds,
  type OriginWanted,
} from "../../runtime/origins/origin_ends.ts";
import { Attacher } from "../../runtime/stateful/attacher.ts";
import { type FrameWay, StreamWay } from "../../functions/sessions/attach/frame_way.ts";
import type { SessionMessage } from "../../functions/sessions/serve/ports.ts";
import { ParkedTable } from "../../runtime/stateful/parked_table.ts";
import { PEER_KIND, PeerWays } from "../../functions/sessions/serve/peer_ways.ts";
import { isForRouter, StatefulRouter } from "../../functions/sessions/serve/router.ts";
import { Whereabouts } from "../../functions/sessions/serve/whereabouts.ts";
import { hostPorts, type HostServices } from "../../runtime/stateful/host_services.ts";
import { SessionHost } from "../../functions/sessions/serve/session_host.ts";
import { Standbys } from "../../functions/sessions/serve/standbys.ts";
import { versionOfLog } from "../../functions/sessions/serve/versions.ts";
import { replayCode } from "../../runtime/stateful/live_code.ts";
import type { AttachedSession, Replica } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { CLOCK_SHARES, ClockShare } from "../../store/model/clock_share.ts";
import type { Draws } from "../sim/random.ts";
import { APP } from "./deployed.ts";
import { Isolates, LOST } from "./isolates.ts";
import { SimLinks } from "./links.ts";
import { type OriginProgram, tripMs } from "./outside.ts";
import { OUTSIDE } from "./program.ts";
import type { Surroundings } from "./surroundings.ts";

/** What a process is given by its site. */
export interface ProcessParts {
  readonly site: SiteId;
  /** Of this process, and no other. */
  readonly name: string;
  readonly around: Surroundings;
  readonly clock: PeerClock;
  readonly wallMs: () => number;
  readonly draws: Draws;
  readonly homes: Homes;
  readonly replica: Replica;
  readonly isAlive: () => boolean;
  readonly send: (to: SiteId, message: Uint8Array) => void;
  readonly passes: (point: string) => void;
}

const WALL_MS = 20_000;
/** The cluster's, to begin with. */
const SECRETS = [Uint8Array.from({ length: 32 }, (_, i) => i + 1)] as const;
const LIMITS = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 };
const prepared = (live: LiveVersion) => ({
  ...{ space: appSpace(APP), lane: () => null, writes: undefined, strayLog: () => {}, highest: 0 },
  app: { ...live, limits: DEFAULT_ISOLATE_LIMITS, vars: {}, fetchHosts: [] },
});

/** Of a session's program behind it. */
const originOf = (asker: OriginAsker): Promise<OriginAddress> => {
  const { class: className, id } = asker as OriginWanted;
  const at = { host: "origin.test", port: 80, isSecure: false };
  return Promise.resolve({ kind: "ws", url: `ws://origin.test/${className}/${id}`, ...at });
};

/** See the file's header. */
export class SiteProcess {
  readonly host: SessionHost;
  readonly standbys: Standbys;
  readonly router: StatefulRouter;
  readonly attacher: Attacher;
  readonly isolates: Isolates;
  readonly followers: Isolates;
  readonly links: SimLinks;
  readonly ends: OriginEnds;
  /** Connections to programs behind sessions. */
  readonly programs: OriginProgram[] = [];
  readonly #parts: ProcessParts;
  readonly #ways: PeerWays;
  readonly #http: HttpOrigins;
  readonly #root: SiteId;
  readonly #mailing: Draws;

  static async open(parts: ProcessParts): Promise<SiteProcess> {
    const parked = new ParkedTable(parts.replica.system, () => {});
    await parked.follow();
    return new SiteProcess(parts, parked, await parts.replica.attach(null));
  }

  private constructor(parts: ProcessParts, parked: ParkedTable, own: AttachedSession) {
    const { around, site, homes, clock, draws, replica } = this.#parts = parts;
    const { detector } = replica.owners;
    this.#root = around.root;
    this.#mailing = draws.fork("mail");
    this.isolates = this.#pool("isolates");
    this.followers = this.#pool("followers");
    this.links = new SimLinks({
      ...{ after: clock.after, send: parts.send },
      serve: (request) => this.#serve(request),
      bodies: (kind, isRequest, chunk) => {
        if (kind !== ORIGIN_WAY_KIND) return [chunk];
        if (around.originBreaks()) return null;
        return isRequest ? around.wrongs.toOrigin?.(chunk) ?? [chunk] : [chunk];
      },
    }, around.numbers);
    this.#http = this.#httpOrigins();
    this.ends = this.#originEnds();
    const services = this.#services(parked, own);
    this.host = new SessionHost(hostPorts(around.wrongs.services?.(services, site) ?? services));
    this.standbys = this.#standbys();
    const sites = () => replica.members.sites;
    const way = {
      ...{ site, homes, host: this.host, links: this.links, clock, sites },
      ...(around.plan.hasSeats === true
        ? { whereabouts: new Whereabouts({ site, homes, links: this.links, sites, clock }) }
        : {}),
    };
    this.router = new StatefulRouter({
      ...{ ...way, wallMs: WALL_MS, draw: () => draws.bytes(8).toHex() },
      count: (what) => around.probe(`router: ${what}`),
    });
    const failed = (name: StatefulName, error: unknown) => this.#failed(name, error);
    this.#ways = new PeerWays({
      ...{ ...way, failed },
      fellows: {
        standing: (one) => detector.presence(one),
        watch: (one) => detector.watch(one),
        onChange: (changed) => detector.onPresence(changed),
      },
    });
    this.attacher = new Attacher({
      ...{
        ways: this.#ways,
        socketsMax: 1_000,
        clock,
        failed,
        instance: () => 1 + draws.integer(0, 2 ** 40),
      },
      count: (what) => around.probe(`socket ${what}`),
    });
  }

  get site(): SiteId {
    return this.#parts.site;
  }

  get replica(): Replica {
    return this.#parts.replica;
  }

  /** Nothing that should not be is. */
  #failed(name: StatefulName, error: unknown): void {
    const { around, site } = this.#parts;
    around.complain(`${site}: ${name.id}: ${error instanceof Error ? error.stack : error}`);
  }

  #pool(kind: string): Isolates {
    const { around, site, clock, wallMs, draws, passes } = this.#parts;
    const { tap, wrongs } = around;
    // Those of one site never have one share, nor has one that was lost and the next.
    let share = 2 * draws.integer(0, CLOCK_SHARES / 2) + (kind === "followers" ? 1 : 0);
    return new Isolates({
      ...{ after: clock.after, wallMs, passes, draws: draws.fork(kind), tap, wrongs, by: this.#parts.name },
      newClock: () => {
        share = (share + 2) % CLOCK_SHARES;
        return new ClockShare(share, () => Math.floor(wallMs()));
      },
      complain: (text) => {
        // A standby is not there yet where other code has gone on; from its checkpoint it can be (standbys.ts).
        if (kind === "followers" && text.includes("code_differs")) {
          return around.probe("follower left behind");
        }
        around.complain(`${site}: ${text}`);
      },
    });
  }

  #serve(request: LinkRequest): Promise<LinkReply> {
    if (request.kind === PEER_KIND) return this.#ways.serve(request);
    if (isForRouter(request.kind)) return this.router.serve(request);
    if (request.kind === ORIGIN_KIND) return this.#http.serve(request);
    if (request.kind === ORIGIN_WAY_KIND) return Promise.resolve(this.ends.serve(request));
    return Promise.reject(new Error(`nobody serves ${request.kind}`));
  }

  // ── Queues ──

  async #mail(message: SessionMessage): Promise<void> {
    const { around, site } = this.#parts;
    await this.#trip(this.#mailing);
    around.mailbox.store(site, message, this.#mailing);
    await this.#trip(this.#mailing);
  }

  // ── Origins ──

  /** A way outside takes a while; a process that has died meanwhile does nothing more. */
  async #trip(draws = this.#parts.draws): Promise<void> {
    const { clock, isAlive } = this.#parts;
    await new Promise<void>((resolve) => void clock.after(tripMs(draws), resolve));
    if (!isAlive()) await new Promise(() => {});
  }

  #httpOrigins(): HttpOrigins {
    const { site, clock, around } = this.#parts;
    return new HttpOrigins({
      ...{ site, root: () => this.#root, originOf, byAgent: () => null },
      kept: new KeptOutcomes(() => clock.nowMs()),
      send: (to, head, body, signal) => this.links.request(to, ORIGIN_KIND, head, { body: body(), signal }),
      make: async (_, call, key) => {
        await this.#trip();
        const outcome = around.server.make(call, key);
        await this.#trip();
        return outcome;
      },
    });
  }

  #originEnds(): OriginEnds {
    const { clock, around, draws } = this.#parts;
    return new OriginEnds({
      ...{ clock, originOf, toAgent: () => false, holdsLogs: false, log: () => {} },
      connect: async ({ url }, listener) => {
        await this.#trip();
        const program = around.program(url.slice("ws://origin.test/".length), listener);
        this.programs.push(program);
        return program;
      },
      draw: () => 1 + draws.integer(0, 2 ** 40),
    });
  }

  async #dial(name: StatefulName, version: string): Promise<FrameWay> {
    const { site, clock } = this.#parts;
    const wanted = { ...name, version };
    if (this.#root === site) return this.ends.open(wanted);
    const way = new StreamWay(clock);
    const { body } = await this.links.request(this.#root, ORIGIN_WAY_KIND, encodeWanted(wanted), {
      body: way.outgoing,
    });
    if (body === null) throw new Error("the root gave no way to the origin");
    return way.read(body);
  }

  // ── Sessions ──

  #services(parked: ParkedTable, own: AttachedSession): HostServices {
    const { around, site, homes, clock, wallMs, draws, isAlive, replica } = this.#parts;
    const { deployed, plan: { idleMs, isAhead } } = around;
    return {
      ...{ homes, pool: this.isolates, replica, limits: LIMITS, idleMs, channelsMax: 1_000 },
      storeClock: () => own.tick(),
      ...{ clock, nowMs: wallMs, parked, site, newPeer: () => draws.bytes(8).toHex() },
      ...{ secrets: SECRETS, failed: (name, error) => this.#failed(name, error) },
      prepare: (name) => {
        if (isAhead && this.standbys.ahead(name)) around.probe("followed ahead");
      },
      standby: async (name, version, last) => {
        const standby = await this.standbys.take(name, version, last);
        if (standby !== null) around.probe("standby promoted");
        return standby;
      },
      apps: {
        get: (name) => ({ name, record: {} as never, current: deployed.at(site) }),
        version: (_, version) => Promise.resolve(deployed.version(version)),
        onChange: (listener) => deployed.onChange(site, () => isAlive() && listener()),
      },
      prepared,
      originOf: (name, { version }) => ({
        origin: OUTSIDE,
        fetch: ({ bytes }, key, signal) =>
          this.#http.fetch({ app: APP, class: name.class, version, key, bytes }, signal),
      }),
      originWay: (name, { version }) => () => this.#dial(name, version),
      egressOf: () => new EgressRules({ fetchHosts: [] }),
      call: (from, { target, chain, call }, request, token, signal) =>
        this.router.ask({ name: { ...from, ...target }, request, chain, token, call }, true, signal),
      waitsOf: (call) => this.router.waitsOf(call),
      sends: { storeOfSession: (_, message) => this.#mail(message) },
      log: ({ level, text }) => {
        if (level === "error" && around.logs !== undefined) around.logs(`${site}: ${text}`);
      },
      countRejected: (what) => around.probe(`rejected ${what}`),
      mapped: (_, text) => Promise.resolve(text),
      redact: (_, text) => text,
    };
  }

  #standbys(): Standbys {
    const { around, site, homes, clock, replica: { owners: { detector } } } = this.#parts;
    const { plan: { hasStandbys } } = around;
    return new Standbys({
      ...{ site, logs: homes.followable, clock },
      ...{ wantsAny: () => hasStandbys, wants: () => hasStandbys },
      codeOf: (_, copy) => {
        const version = versionOfLog(copy);
        return Promise.resolve({ version, code: replayCode(version) });
      },
      follow: (_name, _version, session, sink) => this.followers.follow(null, session, sink),
      fellows: {
        isLost: (one) => ["suspected", "dead"].includes(detector.presence(one)),
        watch: (one) => detector.watch(one),
        onChange: (changed) => detector.onPresence(changed),
      },
      takeOver: (name) => this.host.wake(name),
      log: (_, level, text) => {
        if (level === "error" && !text.endsWith(LOST)) around.complain(`${site}: ${text}`);
      },
    });
  }
}
