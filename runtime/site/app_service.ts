/**
 * Services that a ready site adds to its replica: the table of apps, the isolates, the app gateway, the admin handlers
 * and the serving end of forwarded requests.
 */
import type { SiteReplica } from "../../store/replica.ts";
import { fillIndexes } from "../../functions/index_fill.ts";
import { parseManifest } from "../../functions/manifest.ts";
import { adminApp, type AdminServices, placed } from "../admin/mod.ts";
import { Background } from "./background.ts";
import {
  type AgentScope,
  AppTable,
  Deployments,
  type Evaluation,
  type LiveVersion,
  type QueueScope,
  type Role,
} from "../deploy/mod.ts";
import { AppStacks } from "../deploy/app_stacks.ts";
import { assetFetcher } from "../gateway/asset_answer.ts";
import { AppGateway } from "../gateway/app_gateway.ts";
import { AppWrites } from "../gateway/app_writes.ts";
import { AppRunner, type RunLine, type RunnerServices } from "../gateway/app_runner.ts";
import { AdminForwarder } from "../gateway/admin_forward.ts";
import { serveLinkRequest } from "../gateway/link_requests.ts";
import type { LinkReply, LinkRequest } from "../../functions/vocabulary/site_links.ts";
import { appSpace, RequestStore } from "../gateway/session_store.ts";
import { RequestTelemetry } from "../gateway/request_telemetry.ts";
import { SessionTokens, type TokenCodec } from "../gateway/session_tokens.ts";
import {
  DEFAULT_ISOLATE_LIMITS,
  type IsolateApp,
  IsolateCgroups,
  type IsolateLimits,
  IsolatePool,
  SiteQueues,
  StatefulLoadError,
} from "../isolate/mod.ts";
import { jobRange } from "../cron/mod.ts";
import type { LinkHub } from "../link/mod.ts";
import type { StatefulMetrics } from "../stateful/metrics.ts";
import { PEER_KIND } from "../../functions/sessions/serve/peer_ways.ts";
import { isForRouter } from "../../functions/sessions/serve/router.ts";
import { AppLogBudgets } from "../observe/app_log_budget.ts";
import { ProcessLoad } from "../observe/process_load.ts";
import type { SiteRates } from "../observe/overview.ts";
import { Traffic } from "../observe/traffic.ts";
import { secretRanges, SecretRing, SecretTable } from "../secrets/mod.ts";
import type { SiteBackups } from "../backup/site_backups.ts";
import { ConfigError, type SiteConfig } from "./config.ts";
import type { RequestMetrics } from "../gateway/request_metrics.ts";
import type { IsolateMetrics } from "./isolate_metrics.ts";
import type { MessageMetrics } from "./message_metrics.ts";
import type { QueueMetrics } from "./queue_metrics.ts";
import type { DiskDamage } from "./disk_damage.ts";
import type { Faults } from "./faults.ts";
import type { SiteLog } from "./log.ts";
import { type MessageService, openMessages } from "./message_service.ts";
import { openStateful, type StatefulService } from "./stateful_service.ts";
import type { SiteTable } from "./site_table.ts";
import { openCron } from "./cron_service.ts";
import { openSecretStore, withoutSecrets } from "./app_secrets.ts";
import type { SystemClock, SystemRandom } from "./system_ports.ts";

/** The services that serve a site's apps. */
export interface AppService {
  readonly table: AppTable;
  readonly gateway: AppGateway;
  /** Queues in which what waits of apps at this site is counted. */
  readonly queues: SiteQueues;
  readonly isolates: IsolatePool;
  readonly stateful: Pick<StatefulService, "status" | "owed" | "storeWentBack" | "leave" | "close">;
  readonly messages: Pick<MessageService, "status" | "quiet" | "close" | "sole">;
  /** Handles an agent that connects. @throws Problem */
  agents(request: Request, path: string, scope: AgentScope | null): Response | Promise<Response>;
  /** Handles a program that sends messages or consumes them. @throws Problem */
  door(request: Request, path: string, scope: QueueScope | null): Promise<Response>;
  readonly admin: (request: Request, role: Role | null) => Response | Promise<Response>;
  serveLink(request: LinkRequest): Promise<LinkReply>;
  close(): Promise<void>;
}

/** Parts of its site that serving apps uses. */
export interface SiteParts {
  readonly config: SiteConfig;
  readonly log: SiteLog;
  readonly table: SiteTable;
  readonly clock: SystemClock;
  readonly requests: RequestTelemetry;
  /** Returns the status as `/_sojourn/status` says it. */
  status(): unknown;
  drain: NonNullable<AdminServices["drain"]>;
  move: NonNullable<AdminServices["move"]>;
  readonly backups: SiteBackups | null;
  /** Id of the site's parent, as it is at any time; null at the root. */
  readonly parent: string | null;
  readonly isolates: IsolateMetrics;
  readonly queues: QueueMetrics;
  readonly messages: MessageMetrics;
  readonly stateful: StatefulMetrics;
  readonly random: SystemRandom;
  readonly faults: Faults;
  readonly damage: DiskDamage;
}

/** Ports that serving apps needs beside the site itself. */
export interface AppServicePorts {
  readonly replica: SiteReplica;
  readonly hub: LinkHub;
  readonly codec: TokenCodec;
  /** Secrets of the cluster, newest first. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  /** Called when a disk has failed: the site must stop. */
  readonly fatal: (error: Error) => void;
}

/**
 * Milliseconds in which a site answers to a deploy with a new index; one that does not is away, and the deploy goes on
 * without it.
 */
const FOLLOW_MS = 5_000;

/** Opens the cgroup that the operator has lent; a site that can't use it as it was told to does not start. */
async function lentCgroup({ isolateCgroup }: SiteConfig): Promise<IsolateCgroups | undefined> {
  if (isolateCgroup === undefined) return undefined;
  try {
    return await IsolateCgroups.open(isolateCgroup);
  } catch (error) {
    throw new ConfigError(`isolateCgroup can't be used: ${error instanceof Error ? error.message : error}`);
  }
}

/** Starts serving apps. Call when the replica is ready. */
export async function startApps(
  site: SiteParts,
  ports: AppServicePorts,
): Promise<AppService> {
  const { config, log, clock } = site;
  const { replica, hub } = ports;
  const system = replica.system;
  const table = await AppTable.open(system, (event, detail) => log.line("warn", event, detail));
  const stacks = new AppStacks(system, table.blobs, (event, detail) => log.line("warn", event, detail));
  const secretServices = {
    system,
    ring: new SecretRing(ports.secrets, (length) => site.random.bytes(length)),
    isRoot: config.parent === null,
    note: (event: string, detail: Record<string, unknown>) => log.line("warn", event, detail),
  };
  const secrets = await SecretTable.open(secretServices);
  const secretStore = config.parent !== null
    ? null
    : await openSecretStore({ ...secretServices, nowMs: () => clock.nowMs() }, table);
  const cgroups = await lentCgroup(config);
  const bytesMax = config.limits.appQueuesMb * 1024 * 1024;
  const queues = new SiteQueues(bytesMax, {
    shed: (shed) => site.queues.shed(shed),
    note: (shed) => log.line("warn", "app_queues_full", { ...shed, bytesMax }),
  });
  site.queues.watch(queues);
  const isolates = new IsolatePool({
    queues,
    cacheFolder: config.cache,
    cgroups,
    spares: config.limits.isolatesWarm,
    egress: { allow: config.egress.allow, privateHosts: config.egress.private },
    note: (event, detail) => {
      // Ctrl-C in a terminal goes to all of the site's processes: an isolate that it ends has no fault.
      const isInterrupted = / \(SIG(?:INT|HUP)\)$/.test(String(detail.why));
      log.line(isInterrupted ? "info" : "warn", event, withoutSecrets(secrets, detail));
    },
    observer: site.isolates,
  });
  site.isolates.watch(isolates);
  secrets.onChange((app) => isolates.refreshSecrets(app));
  const traffic = new Traffic();
  const { answerHeaders } = config;
  const assets = { site: config.id, answerHeaders, reader: table.blobs, traffic };
  const appOf = (version: LiveVersion): IsolateApp => {
    const fetcher = assetFetcher(assets, version);
    return { ...isolateApp(version, config, secrets), ...fetcher === undefined ? {} : { assets: fetcher } };
  };
  const tokens = new SessionTokens(ports.codec, () => replica.nowMs());
  const load = new ProcessLoad();
  const writes = new AppWrites(table);
  const lines = new AppLogBudgets<RunLine>((line) => stacks.line(line, (mapped) => log.app(mapped)));
  const running: RunnerServices = {
    writes,
    stateful: {
      call: (request) => stateful.router.call(request),
      attach: (attachment) => stateful.attacher.attach(attachment),
    },
    queues: { send: (...sent) => messages.sends.send(...sent) },
    outbox: { outgoing: (...sent) => messages.outbox.outgoing(...sent) },
    site: config.id,
    replica,
    isolates,
    tokens,
    answerHeaders,
    limits: config.limits,
    isolateApp: appOf,
    laneOf: (app) => queues.of(app).turns,
    traffic,
    appLog: (line) => lines.line(line),
    mapStack: (version, text) => stacks.mapped(version, text),
    metrics: site.requests.metrics,
    redact: (app, text) => secrets.redact(app, text),
    nowMs: () => replica.nowMs(),
    dev: config.dev,
  };
  const runner = new AppRunner(running);
  const opened: { messages?: MessageService } = {};
  const stateful = await openStateful({
    // Sessions are opened before the queues are: what they send is tried again.
    sends: {
      storeOfSession: async (...sent) => {
        if (opened.messages === undefined) throw new Error("the queues of this site are not open yet");
        await opened.messages.sends.storeOfSession(...sent);
      },
    },
    ...{ config, log, clock, random: site.random, metrics: site.stateful, replica, hub, apps: table },
    secrets: ports.secrets,
    prepared: (version) => runner.prepared(version),
    appLog: running.appLog,
    redact: running.redact,
    mapped: (version, text) => stacks.mapped(version, text),
    ...{ fatal: ports.fatal, faults: site.faults, damage: site.damage, cgroups, queues },
  });
  secrets.onChange((app) => stateful.refreshSecrets(app));
  const messages = opened.messages = await openMessages({
    ...{ config, log, clock, random: site.random, replica, apps: table, running },
    prepared: (version) => runner.prepared(version),
    secrets: ports.secrets,
    ...{ appSecrets: secrets, appQueues: queues },
    ...{ meter: site.messages, codec: ports.codec },
    ...{ fatal: ports.fatal, faults: site.faults, damage: site.damage },
  });
  site.messages.watch(() => messages.status());
  const cron = await openCron({
    ...{ config, system, apps: table, clock, runner },
    running: { ...running, telemetry: site.requests },
    note: (event, detail) => log.line("warn", event, detail),
  });
  const gateway = new AppGateway({
    tier: config.tier,
    get parent() {
      return site.parent;
    },
    links: hub,
    apps: table,
    tokens,
    runner,
    telemetry: site.requests,
    headerBytesMax: config.limits.headerBytes,
    bodyBytesMax: config.limits.bodyBytes,
    assets,
  });
  const storeOf = (app: string) =>
    new RequestStore(system, {
      space: appSpace(app),
      limits: config.limits,
      nowMs: () => replica.nowMs(),
      use: { storeMs: 0, step: () => {} },
    });
  const deployments = config.parent !== null ? null : new Deployments({
    system,
    evaluate: (bundle) => evaluate(isolates, stateful, bundle),
    nowMs: () => clock.nowMs(),
    prepare: async (app, after) => await secretStore?.place(app, after.secrets, { widen: true }),
    fill: async (app, indexes) => {
      for (const fill of indexes) await fillIndexes(storeOf(app), fill);
    },
    follow: async (change) => {
      const { missing } = await placed(services, { ...change, mark: crypto.randomUUID() }, FOLLOW_MS);
      return missing;
    },
    owned: (app) => [...secretRanges(app), jobRange(app)],
  });
  const forwarder = new AdminForwarder({
    telemetry: site.requests.operator,
    site: config.id,
    get parent() {
      return site.parent;
    },
    sites: () => site.table.sites,
    links: hub,
  });
  const services: AdminServices = {
    site: config.id,
    system,
    apps: table,
    deployments,
    drain: (untilMs) => site.drain(untilMs),
    move: (parent) => site.move(parent),
    believeClock: () => replica.believeClock()?.aheadMs ?? 0,
    members: config.parent === null ? replica.members : null,
    secrets: { ring: secretServices.ring, store: secretStore, table: secrets },
    cron,
    stateful: stateful.admin,
    queues: messages.admin,
    ...site.backups === null ? {} : { backups: site.backups },
    forwardToRoot: (request, role) => forwarder.send("root", request, role),
    forward: (to, request, role) => forwarder.send(to, request, role),
    forwardTwice: (to, request, role) => forwarder.sendTwice(to, request, role),
    warm: async (app, version) => {
      const live = await table.version(app, version);
      if (live !== undefined) isolates.warm(appOf(live));
    },
    note: (event, detail) => log.line("warn", event, detail),
    nowMs: () => replica.nowMs(),
    observed: {
      ring: log.ring,
      sites: () => site.table.list().map(({ id }) => id),
      tree: () => site.table.list().map(({ id, parent, tier, url }) => ({ id, parent, tier, url })),
      status: () => site.status(),
      rates: () => siteRates(traffic, site.requests.metrics, site.table, load),
    },
    written: (app) => writes.written(app),
  };
  const handlers = adminApp(services);
  const background = new Background(services, table, isolates);
  const admin = (request: Request, role: Role | null) => handlers.fetch(request, { role });
  return {
    table,
    queues,
    gateway,
    isolates,
    stateful,
    messages,
    admin,
    agents: (request, path, scope) => stateful.origins.door.handle(request, path, scope),
    door: (request, path, scope) => messages.door.handle(request, path, scope),
    serveLink: (request) =>
      isForRouter(request.kind)
        ? stateful.router.serve(request)
        : stateful.origins.serves(request.kind)
        ? stateful.origins.serve(request)
        : request.kind === PEER_KIND
        ? stateful.ways.serve(request)
        : serveLinkRequest({
          apps: gateway,
          telemetry: site.requests,
          admin: (head, body, signal) => forwarder.serve(head, body, signal, admin),
        }, request),
    close: async () => {
      lines.close();
      cron?.close();
      background.close();
      table.close();
      secrets.close();
      await messages.quiet();
      await stateful.close(); // what sessions send is stored meanwhile
      await messages.close();
      await isolates.close();
    },
  };
}

/** Returns the rates of a site, with the names of the sites that sessions came from. */
function siteRates(
  traffic: Traffic,
  metrics: RequestMetrics,
  table: SiteTable,
  load: ProcessLoad,
): SiteRates {
  const { all, apps, moved } = traffic.snapshot();
  const names = new Map(table.list().map(({ id, number }) => [number, id]));
  return {
    all,
    apps,
    arrivals: metrics.arrivals,
    moved: moved.map(({ replica, ...kinds }) => ({ from: names.get(replica) ?? null, ...kinds })),
    process: load.look(),
  };
}

/**
 * Returns a bundle's manifest: the bundle is run in an isolate, and the manifest checked here, since an isolate's word
 * is not trusted.
 */
async function evaluate(
  isolates: IsolatePool,
  stateful: Pick<StatefulService, "tryLoad">,
  bundle: Uint8Array,
): Promise<Evaluation> {
  const evaluated = await isolates.evaluate(bundle);
  if (evaluated.kind === "error") {
    return {
      ok: false,
      message: evaluated.message,
      ...(evaluated.stack === "" ? {} : { stack: evaluated.stack }),
    };
  }
  try {
    const manifest = parseManifest(evaluated.manifest);
    if (Object.keys(manifest.sessions).length > 0) await stateful.tryLoad(bundle);
    return { ok: true, manifest };
  } catch (error) {
    if (error instanceof StatefulLoadError) {
      const message = `it does not load where its stateful sessions run: ${error.message}`;
      return { ok: false, message, ...(error.trace === "" ? {} : { stack: error.trace }) };
    }
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

/** Returns an app version with this site's limits. */
function isolateApp(version: LiveVersion, config: SiteConfig, secrets: SecretTable): IsolateApp {
  const { manifest } = version;
  return {
    app: version.app,
    version: version.version,
    bundle: () => version.bundle(),
    limits: isolateLimits(config),
    vars: manifest.vars,
    secrets: () => secrets.values(version.app, manifest.secrets),
    atRoot: config.parent === null,
    fetchHosts: manifest.fetchHosts,
  };
}

const isolateLimits = ({ limits }: SiteConfig): IsolateLimits => ({
  ...DEFAULT_ISOLATE_LIMITS,
  cpuMs: limits.cpuMs,
  wallMs: limits.wallMs,
  waitUntilMs: limits.waitUntilMs,
  heapMib: limits.heapMb,
  bodyBytesMax: limits.bodyBytes,
  requestsMax: limits.requestsPerIsolate,
  isolatesMax: limits.isolatesMax,
});
