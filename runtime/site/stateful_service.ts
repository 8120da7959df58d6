/**
 * The stateful sessions of a site: homes over disks of their own, isolates, and the way between sites.
 *
 * Life: `openStateful` when the replica is ready → serves → `close`: sessions at rest write a checkpoint, appended
 * entries are held by their owners, isolates end, disks close.
 */
import { BOOT_MIN, Homes, type StatefulName } from "../../functions/sessions/home/mod.ts";
import type { Replica } from "../../store/api/api.ts";
import { ClockShares } from "../../store/model/clock_share.ts";
import type { ClockValue } from "../../store/model/row.ts";
import type { Clock } from "../../store/model/ports.ts";
import type { StatefulAdmin } from "../admin/stateful_admin.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import type { Prepared, RunLine } from "../gateway/app_runner.ts";
import { type IsolateCgroups, type SiteQueues, StatefulPool } from "../isolate/mod.ts";
import type { LinkHub } from "../link/mod.ts";
import { KeptOutcomes } from "../origins/kept_outcomes.ts";
import { Mending } from "../../functions/sessions/serve/mending.ts";
import { StatefulMetrics, type StatefulSources } from "../stateful/metrics.ts";
import { Attacher } from "../stateful/attacher.ts";
import { EndedLogs } from "../../functions/sessions/serve/ended_logs.ts";
import { PeerWays } from "../../functions/sessions/serve/peer_ways.ts";
import { SYSTEM_CLOCK } from "../stateful/clock.ts";
import { Whereabouts } from "../../functions/sessions/serve/whereabouts.ts";
import { StatefulRouter } from "../../functions/sessions/serve/router.ts";
import { ParkedTable } from "../stateful/parked_table.ts";
import { openOf } from "../../functions/sessions/serve/pieces.ts";
import { CheckedPool } from "../stateful/shadow.ts";
import { hostPorts, type HostServices } from "../stateful/host_services.ts";
import { SessionHost } from "../../functions/sessions/serve/session_host.ts";
import type { Readiness } from "../stateful/readiness.ts";
import type { Standbys } from "../../functions/sessions/serve/standbys.ts";
import { newTraceId } from "../telemetry/mod.ts";
import type { SiteConfig } from "./config.ts";
import { readinessOf, standbysOf } from "./standby_service.ts";
import { StatefulDisks } from "./stateful_disks.ts";
import type { DiskDamage } from "./disk_damage.ts";
import type { Faults } from "./faults.ts";
import type { SiteLog } from "./log.ts";
import { openOrigins, type OriginService } from "./origin_service.ts";
import type { SystemClock, SystemRandom } from "./system_ports.ts";

/** Services of the site that stateful sessions use. */
export interface StatefulParts {
  readonly config: SiteConfig;
  readonly log: SiteLog;
  readonly clock: SystemClock;
  readonly random: SystemRandom;
  /** Secrets of the cluster, newest first. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  readonly metrics: StatefulMetrics;
  readonly replica: Replica;
  readonly hub: LinkHub;
  readonly apps: AppTable;
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly appLog: (line: RunLine) => void;
  readonly redact: (app: string, text: string) => string;
  readonly mapped: (version: string, text: string) => Promise<string>;
  readonly fatal: (error: Error) => void;
  readonly faults: Faults;
  readonly damage: DiskDamage;
  /** Cgroups that bound the processes, where the operator has lent one. */
  readonly cgroups: IsolateCgroups | undefined;
  readonly queues: SiteQueues;
  readonly sends: HostServices["sends"];
}

/** A site's stateful sessions, served. */
export interface StatefulService {
  readonly router: StatefulRouter;
  readonly ways: PeerWays;
  readonly attacher: Attacher;
  readonly admin: StatefulAdmin;
  readonly origins: OriginService;
  status(): StatefulSources;
  /** Loads a bundle with stateful sessions in the kind of process that runs them. @throws StatefulLoadError */
  tryLoad(bundle: Uint8Array): Promise<void>;
  /** Oldest version of a row that one of this site's sessions may still write (store/api/api.ts, ReplicaPorts). */
  readonly owed: ClockValue;
  /** Handles that a site has had more of this site's store than is on its disk, which is an older copy of itself. */
  storeWentBack(site: string): void;
  /** Passes an app's changed secrets on to its isolates. */
  refreshSecrets(app: string): void;
  /** Stops serving; the second call waits for the first. */
  close(): Promise<void>;
  /** Stops serving, as `close` does; resolves with the number of logs that are on this disk alone. */
  leave(): Promise<number>;
}

/** Milliseconds for appended entries to be held, at a stop. */
const CLOSE_MS = 2_000;
const ID_BYTES = 16;
/**
 * Bytes of the id of a session's peer, by which its key names it: of a million, two have the same with one chance in
 * 10^10. The id is in the log with each message.
 */
const PEER_ID_BYTES = 9;
/** Name of this use of the owners' way between sites (store/owners). */
const USE = "homes";

/** Opens a site's stateful sessions; see the file's header. */
export async function openStateful(parts: StatefulParts): Promise<StatefulService> {
  const { config, log, clock, random, replica, hub, apps, metrics } = parts;
  const note = (event: string, detail: Record<string, unknown>) => log.line("warn", event, detail);
  const disks = await StatefulDisks.open(parts);
  const believed: Clock = {
    nowMs: () => replica.nowMs(),
    steadyMs: () => clock.steadyMs(),
    after: (ms, callback) => clock.after(ms, callback),
    turn: () => clock.turn(),
  };
  const early: [string, Uint8Array][] = [];
  const opened: { homes?: Homes; host?: SessionHost; standbys?: Standbys; readiness?: Readiness } = {};
  const send = replica.owners.channel(USE, (from, packet) => {
    if (opened.homes === undefined) early.push([from, packet]);
    else opened.homes.received(from, packet);
  });
  const homesPorts = (): Parameters<typeof Homes.open>[0] => ({
    ...{ site: config.id, clock: believed, random, send, note },
    ...{ storage: disks.homes, arbiterStorage: disks.arbiter },
    boot: BOOT_MIN + random.bytes(6).reduce((number, byte) => number * 256 + byte, 0),
    nowMs: () => performance.now(),
    arbiter: () => rootOf(replica) ?? config.id,
    fellows: fellowsOf(replica, hub),
    ...{ perAppMax: config.limits.statefulPerApp, endedMs: config.limits.statefulEndedMs },
    due: (name) => opened.host?.wake(name),
    openOf,
    hosts: {
      ask: async (...asked) => await opened.host?.hosts.ask(...asked) ?? new Map<string, null>(),
    },
    onOver: (name, epoch, error) => opened.host?.homeOver(name, epoch, error),
    onLog: (log, news) => {
      opened.standbys?.onLog(log, news);
      opened.readiness?.onLog(log, news);
    },
    fatal: parts.fatal,
  });
  const homes = opened.homes = await disks.loaded(() => Homes.open(homesPorts()));
  for (const [from, packet] of early) homes.received(from, packet);
  const appLog = (line: { app: string; version: string; level: string; text: string }) =>
    parts.appLog({ ...line, text: parts.redact(line.app, line.text), traceId: newTraceId() });
  const clockShares = new ClockShares(random.bytes(1)[0] ?? 0);
  const newPool = (hasSpare: boolean) =>
    new StatefulPool({
      ...{ hasSpare, site: config.id, clockShares },
      cacheFolder: config.cache,
      cgroups: parts.cgroups,
      queues: parts.queues,
      log: ({ app, version }, level, text) => appLog({ app, version, level, text }),
      note,
    });
  const pool = newPool(config.limits.isolatesWarm > 0), standbyPool = newPool(false);
  const parked = new ParkedTable(replica.system, note);
  await parked.follow();
  const checked = new CheckedPool({ pool, note });
  const endedLogs = await disks.loaded(() =>
    EndedLogs.open({
      ...{ storage: disks.ended, nowMs: () => replica.nowMs(), note },
      keptMsMax: config.limits.statefulLogMs,
      isApp: (app) => apps.get(app) !== undefined,
    })
  );
  const failed = (name: StatefulName, error: unknown) =>
    parts.faults.contained("session", error, { ...name });
  const own = await replica.attach(null);
  const draw = () => random.bytes(ID_BYTES).toHex();
  const sites = () => replica.members.sites;
  const instance = () => 1 + random.bytes(6).reduce((number, byte) => number * 256 + byte, 0);
  const kept = await disks.loaded(async () => {
    const { outcomes } = disks;
    return outcomes === null
      ? new KeptOutcomes(() => replica.nowMs())
      : await KeptOutcomes.open({ storage: outcomes, clock: believed, fatal: parts.fatal });
  });
  const origins = openOrigins({
    kept,
    ...{ config, site: config.id, links: hub, sites, apps, instance, log: appLog, ticket: draw },
    root: () => rootOf(replica),
    open: (name) => ways.open(name, null),
  });
  const host = opened.host = new SessionHost(hostPorts({
    ...{ homes, replica, apps, pool: config.checkDeterminism ? checked : pool },
    clock: SYSTEM_CLOCK,
    storeClock: () => own.tick(),
    standby: async (name, version, last) => await opened.standbys?.take(name, version, last) ?? null,
    prepare: (name, app) => {
      // For the check, each message of a session is replayed by itself: not one of a followed session.
      const isFollowed = opened.standbys?.follows(name) ||
        (!config.checkDeterminism && opened.standbys?.ahead(name));
      if (!isFollowed) pool.prepare(app);
    },
    ...{ prepared: parts.prepared, limits: config.limits, log: appLog },
    egressOf: ({ manifest: { fetchHosts } }) => origins.rulesOf(fetchHosts),
    originOf: (name, version) => origins.http(name, version),
    originWay: (name, version) => origins.way(name, version),
    ...{ idleMs: config.limits.statefulIdleMs, lastAnswersMs: config.limits.statefulAnswersMs, endedLogs },
    ...{ parked, site: config.id, mapped: parts.mapped, redact: parts.redact },
    channelsMax: config.limits.statefulPeers,
    ...{
      newPeer: () => random.bytes(PEER_ID_BYTES).toBase64({ alphabet: "base64url" }),
      secrets: parts.secrets,
    },
    countRejected: (what) => metrics.countRejected(what),
    failed,
    nowMs: () => replica.nowMs(),
    call: (from, { target, chain, call }, request, token, signal) =>
      router.ask(
        {
          name: { app: from.app, class: target.class, id: target.id },
          request,
          chain,
          token,
          call,
        },
        true,
        signal,
      ),
    waitsOf: (call) => router.waitsOf(call),
    sends: parts.sends,
  }));
  const others = {
    ...{ site: config.id, homes, replica, apps, prepared: parts.prepared, appLog },
    ...{ pool: standbyPool, homePool: pool },
    takeOver: (name: StatefulName) => host.wake(name),
  };
  const standbys = opened.standbys = standbysOf(others);
  const readiness = opened.readiness = readinessOf(others);
  const whereabouts = new Whereabouts({ site: config.id, homes, links: hub, sites, clock: SYSTEM_CLOCK });
  const router: StatefulRouter = new StatefulRouter({
    ...{ site: config.id, homes, host, links: hub, draw, wallMs: config.limits.wallMs },
    ...{ sites, whereabouts, clock: SYSTEM_CLOCK },
    count: (what) => metrics.count(what),
  });
  const ways: PeerWays = new PeerWays({
    ...{ site: config.id, homes, host, links: hub, sites, whereabouts, clock: SYSTEM_CLOCK },
    fellows: fellowsOf(replica, hub),
    failed,
  });
  const attacher = new Attacher({
    ...{ ways, instance, failed, socketsMax: config.limits.statefulPeers },
    queues: (app) => parts.queues.of(app),
    count: (what) => metrics.countPeers(what),
  });
  const status = (): StatefulSources => ({
    ...{ homes: homes.status(), pool: pool.status(), sockets: attacher.sockets, standby: standbys.counts },
    ...host.counts,
  });
  metrics.watch(status);
  const end = async (isLeaving: boolean): Promise<number> => {
    origins.close();
    standbys.close();
    readiness.close();
    await host.close();
    const sole = isLeaving ? await homes.sole() : 0;
    parked.close();
    router.close();
    ways.close();
    await homes.close(CLOSE_MS);
    await pool.close();
    await standbyPool.close();
    await endedLogs.settled();
    await kept.close();
    await disks.close();
    return sole;
  };
  let closing: Promise<number> | undefined;
  return {
    ...{ router, origins },
    ...{ ways, attacher },
    status,
    tryLoad: (bundle) => pool.tryLoad(bundle),
    storeWentBack: (site) => homes.storeWentBack(site),
    refreshSecrets: (app) => {
      pool.refreshSecrets(app);
      standbyPool.refreshSecrets(app);
    },
    admin: {
      rows: config.parent === null ? (options) => homes.rows(options) : null,
      look: (name) => host.look(name),
      parked: (name) => parked.get(name),
      mending: new Mending({ homes, host, apps, endedLogs }),
      move: (name, to, drainMs) => host.move(name, to, drainMs),
      remove: (name) => host.remove(name),
    },
    get owed() {
      return host.owed;
    },
    close: async () => {
      await (closing ??= end(false));
    },
    leave: () => closing ??= end(true),
  };
}

function rootOf(replica: Replica): string | undefined {
  for (const { id, parent } of replica.members.sites.values()) if (parent === null) return id;
  return undefined;
}

function fellowsOf({ owners, members }: Replica, hub: LinkHub): Parameters<typeof Homes.open>[0]["fellows"] {
  return {
    get f() {
      return owners.settings.f;
    },
    sites: () => [...members.sites.keys()],
    choose: (kept, without, last) => owners.choose(owners.settings.f, kept, without, last),
    nearest: () => owners.nearest(),
    isKnown: (site) => owners.isKnown(site),
    standing: (site) => owners.detector.presence(site),
    watch: (site) => owners.detector.watch(site),
    onChange: (changed) => owners.detector.onPresence(changed),
    look: (site) => hub.look(site),
  };
}
