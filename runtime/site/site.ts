/**
 * A site: a replica on its disk, its links, its isolates and its gateway in one process.
 *
 * Stages: secrets and disk → replica (no traffic yet) → links → HTTP (answers health, refuses apps) → ready: the
 * replica has its number and its system ranges → apps served → `stop`: no new requests, sockets closed, requests
 * drained, isolates ended, replica closed with a goodbye, links closed, disk closed.
 *
 * S1  Nothing of a site runs before its disk is locked.
 * S2  After a fault (a broken invariant, a failed disk) nothing is acknowledged any more: links are closed, every
 *     request gets `disk_failed`, and the log says why. The process stays, so that its operator can look, until the
 *     disk takes writes again: then it ends, to be started anew (disk_trial.ts).
 * S3  After an exception that nothing caught (faults.ts) the site stops in order: nothing new is begun, what was
 *     acknowledged is on disk. Whoever started the process is told by its exit code to start it anew (command.ts).
 */
import { OwnersError } from "../../store/presence/choose.ts";
import { OlderDisk, OlderRoot } from "../../store/core/lost.ts";
import { openReplica, type SiteReplica } from "../../store/replica.ts";
import { type Replica, StoreUnavailable } from "../../store/api/api.ts";
import type { Drained } from "../admin/services.ts";
import type { Network } from "../../store/model/ports.ts";
import { deriveKeyRing, openToken, sealToken } from "../../store/session/token.ts";
import { type ChaosFile, SiteChaos } from "../chaos/site_chaos.ts";
import { keepRestored, readRestored, type Restored, secretsOfBefore } from "../backup/restored.ts";
import { SiteBackups, type SiteFacts } from "../backup/site_backups.ts";
import { versionsOfThis } from "../cli/version.ts";
import { Dashboard } from "../dashboard/files.ts";
import { Gateway } from "../gateway/gateway.ts";
import { platform, type PlatformServices, type SiteReadiness } from "../gateway/platform.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import type { TokenCodec } from "../gateway/session_tokens.ts";
import { RequestTelemetry } from "../gateway/request_telemetry.ts";
import { SiteQueues } from "../isolate/mod.ts";
import { FORWARD_KIND } from "../gateway/forward.ts";
import { Hold, LinkHub, overWebSocket, type Transport } from "../link/mod.ts";
import { splitAddress } from "../link/transport.ts";
import { polledLate } from "../loop/socket_polls.ts";
import { Telemetry } from "../telemetry/mod.ts";
import { linkAddress, scheme, splitListen, transportOf } from "./addresses.ts";
import { adminCallLog } from "./admin_calls.ts";
import { ClientFile } from "./client_file.ts";
import { ConfigError, linkUrl, type SiteConfig } from "./config.ts";
import { Certificates } from "./certificates.ts";
import { openData, readAdminTokens, readSecrets, readTls, type TlsFiles } from "./data_folder.ts";
import { DiskDamage } from "./disk_damage.ts";
import { isOpenToOthers } from "./file_mark.ts";
import { HttpListener } from "./http_listener.ts";
import { SiteLog } from "./log.ts";
import { type AppService, type AppServicePorts, startApps } from "./app_service.ts";
import { dismissalOf, refusalOf } from "./admission.ts";
import { DiskSpace } from "./alerts.ts";
import { diskWorks } from "./disk_trial.ts";
import { drain } from "./drain.ts";
import { DiskRoom, lookAt, nextLookMs } from "./disk_room.ts";
import { describe, Faults } from "./faults.ts";
import { frontPage } from "./front_page.ts";
import { fixedChanges, ownersSettings } from "./owners_fields.ts";
import { IsolateMetrics } from "./isolate_metrics.ts";
import { MessageMetrics } from "./message_metrics.ts";
import { QueueMetrics } from "./queue_metrics.ts";
import { siteFamilies } from "./site_metrics.ts";
import { siteResource } from "./site_resource.ts";
import { siteStatus } from "./status.ts";
import { SUBPROTOCOL } from "../../functions/sessions/attach/mod.ts";
import { FORWARDED_FRAME_BYTES_MAX } from "../../functions/sessions/attach/frame_way.ts";
import { StatefulMetrics } from "../stateful/metrics.ts";
import { StorageMetrics } from "./storage_metrics.ts";
import { markOlder } from "./lost_folder.ts";
import { keepParent, type Parent, withParent } from "./parent_file.ts";
import { RestoredTree } from "./restored_tree.ts";
import { SiteTable } from "./site_table.ts";
import { SystemClock, SystemRandom } from "./system_ports.ts";
import { WARNINGS } from "./warnings.ts";

/** Milliseconds that running requests have to end when a site stops; streams are cut. */
const DRAIN_MS_MAX = 3_000;
/** Milliseconds between the answer to a call that drains or moves a site, and the draining or the move. */
const ANSWER_MS = 100;
const DRAINING = "the site is about to stop, as planned; another site takes this session";
const SCARCE =
  "half of the files that this process may open are connections: idle ones are closed twelve times as " +
  "soon as limits.idleMs says; a higher `ulimit -n` or a proxy in front makes room";
const FELL =
  "no connection could be taken, most often since no more files can be opened (`ulimit -n`); those that " +
  "are open go on, and the site listens again in a moment";
const SENT_ON = "they went on sending while they were answered, beyond what a client has to say then";

/** A running site. */
export class Site {
  readonly config: SiteConfig;
  readonly log: SiteLog;
  readonly table = new SiteTable();
  readonly clock = new SystemClock();
  readonly random = new SystemRandom();
  readonly telemetry: Telemetry;
  readonly requests: RequestTelemetry;
  readonly faults: Faults;
  readonly damage: DiskDamage;
  readonly isolates = new IsolateMetrics();
  readonly queues = new QueueMetrics();
  readonly messages = new MessageMetrics();
  readonly stateful = new StatefulMetrics();
  readonly #cut = new AbortController();
  readonly #chaos: SiteChaos | null;
  readonly #dashboard = new Dashboard(() => this.table.list(), () => this.#apps?.table.hosts);
  readonly #client = new ClientFile();
  readonly #hold = new Hold();
  #replica: SiteReplica | null = null;
  #hub: LinkHub | null = null;
  #apps: AppService | null = null;
  #backups: SiteBackups | null = null;
  #gateway: Gateway | null = null;
  #server: HttpListener | null = null;
  #certificates: Certificates | null = null;
  /**
   * Record of the backup that the data was restored from, while the site has not joined; no client is served before
   * (restored_tree.ts).
   */
  #restoredAlone: Restored | null = null;
  #tree: RestoredTree | null = null;
  #roomTimer: ReturnType<typeof setTimeout> | undefined;
  #fault: Error | null = null;
  /** Id of a child that has had more of the root's disk than is on it; null: none has. */
  #ahead: string | null = null;
  readonly #disk: DiskSpace;
  #isDraining = false;
  /** Parent as the site was last told, and has it on disk, … */
  #parent: SiteConfig["parent"];
  /** … and the parent that its replica and its links go by. */
  #followed: SiteConfig["parent"];
  /** The last move that was asked for. */
  #moving: Promise<unknown> = Promise.resolve();
  /** Parent as the site file has it. */
  readonly #fileParent: SiteConfig["parent"];
  readonly #drained = Promise.withResolvers<void>();
  readonly #recovered = Promise.withResolvers<void>();
  readonly #broken = Promise.withResolvers<void>();
  readonly #trials = new AbortController();
  #stopping: Promise<void> | null = null;
  #closeStorage: () => Promise<void> = () => Promise.resolve();

  private constructor(config: SiteConfig, chaos: ChaosFile | null, fileParent: SiteConfig["parent"]) {
    this.config = config;
    this.#parent = this.#followed = config.parent;
    this.#fileParent = fileParent;
    this.#disk = new DiskSpace(config.data);
    this.log = new SiteLog(config.id, config.log, config.logLevel);
    this.faults = new Faults(this.log);
    this.damage = new DiskDamage(this.log, config.data);
    this.telemetry = new Telemetry({
      settings: config.otel,
      resource: siteResource(config),
      note: (event, fields) => this.log.line("warn", event, fields),
    });
    this.requests = new RequestTelemetry(config.id, this.telemetry.tracer);
    this.#chaos = chaos && config.chaos ? new SiteChaos(config, chaos, this.clock) : null;
  }

  /**
   * Starts a site; resolves when it listens, which is before it is ready.
   *
   * @param chaos faults from the start, where the configuration has `chaos: true`.
   * @throws ConfigError, StoreUnavailable where it cannot start.
   */
  static async start(config: SiteConfig, chaos: ChaosFile | null = null): Promise<Site> {
    const site = new Site(await withParent(config), chaos, config.parent);
    try {
      await site.#start();
      return site;
    } catch (error) {
      await site.stop();
      throw error;
    }
  }

  /** URL at which clients reach the site. */
  get url(): string {
    const { http } = this.config.advertise;
    if (http !== undefined) return http;
    const { hostname, port } = this.#server?.addr ?? splitAddress(this.config.listen.http);
    return `${scheme(this.config)}://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  }

  /** Id of the site's parent; null at the root. */
  get parent(): string | null {
    return this.#parent?.id ?? null;
  }

  /** Backups of the site; null before it has a disk. */
  get backups(): SiteBackups | null {
    return this.#backups;
  }

  /** Returns the status as `/_sojourn/status` says it. */
  status(): unknown {
    const replica = this.#replica;
    if (replica === null || this.#gateway === null) throw new Problem("not_ready", "the site is starting");
    return siteStatus({
      config: this.config,
      replica,
      hub: this.#hub,
      apps: this.#apps,
      fault: this.#fault,
      disk: this.#disk,
      damage: this.damage,
      sites: () => this.table.list(),
      nowMs: replica.nowMs(),
    });
  }

  /** Returns the site's readiness to serve. */
  readiness(): SiteReadiness {
    if (this.#fault !== null) return { ready: false, code: "disk_failed", detail: this.#fault.message };
    if (this.#stopping !== null) return { ready: false, code: "not_ready", detail: "the site is stopping" };
    if (this.#isDraining) return { ready: false, code: "draining", detail: DRAINING };
    if (this.#apps === null) {
      return {
        ready: false,
        code: "not_ready",
        detail: this.#restoredAlone === null
          ? "the site waits for its system rows from its parent"
          : "the site was restored from a backup, and waits for the root, restored from the same moment",
      };
    }
    if (this.config.parent === null) return { ready: true, parent: "none" };
    return { ready: true, parent: this.#replica?.status().parent?.connected ? "connected" : "unreachable" };
  }

  async #start(): Promise<void> {
    const { config } = this;
    const secrets = await readSecrets(config);
    const restored = await this.#restored(secrets);
    const adminTokens = readAdminTokens(config, (event, fields) => this.log.line("warn", event, fields));
    const tls = await readTls(config);
    for (const { field, path } of secretFiles(config)) {
      if (!isOpenToOthers(path)) continue;
      const says = `others than its owner may read it: chmod 600 ${path}`;
      this.log.line("warn", "file_open_to_others", { field, file: path, says });
    }
    const late = polledLate();
    if (late !== null) this.log.line("warn", "sockets_polled_late", { says: late });
    const disks = new StorageMetrics();
    const { storage: inner, disk } = await openData(config, {
      synced: disks.synced,
      damaged: this.damage.found("store"),
      lost: this.damage.lost,
      renamed: this.damage.renamed,
    });
    this.#closeStorage = () => inner.close();
    if (config.engine !== "memory") await SiteBackups.sweep(config.data);
    const storage = disks.measured(this.#chaos?.storage(inner) ?? inner);
    const network: Network = { send: (to, message) => this.#hub?.send(to, message) ?? Promise.resolve() };
    const listen = splitListen(config.listen.http);
    const replica = this.#replica = await openReplica({
      site: config.id,
      parent: config.parent?.id ?? null,
      tier: config.tier,
      url: config.advertise.http ?? `${scheme(config)}://${config.listen.http}`,
      linkAddress: linkAddress(config),
      capacityBytes: config.capacityBytes,
      lost: config.parent?.lost ?? [],
      pendingBytesMax: config.pendingBytesMax,
      owners: ownersSettings(config),
    }, {
      clock: this.clock,
      random: this.random,
      storage: disks.measured(storage),
      network,
      fatal: (error) => this.#fatal(error),
      note: (event, detail) => this.#noted(event, detail),
      owed: () => this.#apps?.stateful.owed ?? 0,
      traced: this.requests.asked,
    });
    if (config.parent !== null && config.engine !== "memory") this.#watchRoom(replica);
    this.#backups = new SiteBackups({
      data: config.data,
      engine: config.engine,
      secrets,
      hold: this.#hold,
      facts: this.#factsOf(replica, (await versionsOfThis()).sojourn),
      note: (event, fields) => this.log.line("info", event, fields),
    });
    const transport = transportOf(tls);
    this.#hub = this.#startLinks(replica, { secrets, disk, transport });
    this.#chaos?.bind({ links: this.#hub.control, replica, tablesOf: (app) => this.#tablesOf(app) });
    const gateway: Gateway = this.#gateway = new Gateway({
      apps: () => this.#serving(),
      held: () => this.#hold.passed(),
      hosts: () => this.#apps?.table.hosts,
      // Frames of the client library hold a whole message of a client, and a head.
      messageBytesMax: (protocol) =>
        protocol === SUBPROTOCOL ? FORWARDED_FRAME_BYTES_MAX : config.limits.messageBytes,
      queues: (app) => (this.#apps?.queues ?? new SiteQueues()).of(app),
      sites: () => this.table.list(),
      platform: (request, path) => platform(services, request, path),
      link: async (socket, peer) => {
        const source = peer.transport === "tcp" ? peer.hostname : "HTTP";
        await this.#hub?.accept(await overWebSocket(socket, { peer }), source);
      },
      front: () => frontPage(config.dev, this.#apps?.table.list() ?? []),
      fault: (error) => this.log.line("error", "request_failed", { error: describe(error) }),
      surplus: {
        port: () => this.#server?.addr.port ?? null,
        note: (clients) => this.log.line("warn", "clients_cut_off", { clients, says: SENT_ON }),
        bodyBytesMax: config.limits.bodyBytes,
      },
      idle: {
        port: () => this.#server?.addr.port ?? null,
        idleMs: config.limits.idleMs,
        note: (scarcity) => this.log.line("warn", "connections_scarce", { ...scarcity, says: SCARCE }),
      },
      telemetry: this.requests,
    });
    this.telemetry.add(
      ...this.requests.families,
      ...this.isolates.families,
      ...this.queues.families,
      ...this.messages.families,
      ...this.stateful.families,
      ...disks.families,
      this.faults.counter,
      ...siteFamilies({
        info: { site: config.id, tier: config.tier },
        replica: () => replica.status(),
        hub: () => this.#hub?.status(),
        requests: () => ({ total: gateway.requests, active: gateway.active }),
        lostFolders: () => this.damage.lostFolders.length,
      }),
    );
    const services: PlatformServices = {
      site: config.id,
      dev: config.dev,
      adminTokens,
      readiness: () => this.readiness(),
      sites: () => this.table.list().map(({ id, url, tier }) => ({ id, url, tier })),
      hosts: () => this.#apps?.table.hosts,
      session: () => {
        const gateway = this.#serving();
        return gateway === null ? null : (request) => gateway.session(request);
      },
      client: (request) => this.#client.answer(request),
      status: () => this.status(),
      metrics: () => this.telemetry.prometheus(),
      admin: () => this.#apps?.admin ?? null,
      agents: () => this.#apps?.agents ?? null,
      queues: () => this.#apps?.door ?? null,
      adminCall: adminCallLog(this.log.line.bind(this.log), () => performance.now()),
      chaos: this.#chaos,
      dashboard: (request, path) => this.#dashboard.answer(request, path),
    };
    const shown = (files: TlsFiles | null) => config.tls?.http === true ? files?.own ?? {} : {};
    const server = this.#server = new HttpListener(
      {
        at: listen,
        handle: gateway.handle,
        signal: this.#cut.signal,
        note: (error) => this.log.line("error", "listener_fell", { error: String(error), says: FELL }),
      },
      shown(tls),
    );
    this.#certificates = new Certificates(config, this.log.line.bind(this.log), async (files) => {
      try {
        await transport.renew?.(files);
        if (config.tls?.http === true && files.own !== null) await server.renew(shown(files));
      } catch (error) {
        this.unexpected(error); // nothing listens any more
      }
    });
    this.log.line("info", "listening", { http: this.url, link: this.#hub.address });
    const codec = codecOf(secrets, replica, this.random);
    if (restored !== null && !restored.joined) this.#restoredAlone = restored;
    void this.#becomeReady(replica, { secrets, codec, fatal: (error) => this.#fatal(error) });
  }

  /**
   * Returns the record of the backup that the data was restored from; such a site is no part of the tree of before
   * (backup/restored.ts RS1). @throws ConfigError
   */
  async #restored(secrets: readonly Uint8Array[]): Promise<Restored | null> {
    const { config } = this;
    if (config.engine === "memory") return null;
    const restored = await readRestored(config.data);
    if (restored === null) return null;
    const [found] = secretsOfBefore(secrets, restored);
    if (found !== undefined) {
      throw new ConfigError(
        `secretFile: line ${
          found + 1
        } of the secrets in ${config.secretFile} was in force before ${config.data} was ` +
          `restored from a backup of ${restored.at}: others with that secret have seen what the backup lacks. Put a ` +
          `new secret alone into the file, at all sites`,
      );
    }
    const { cut, at, restoredAt } = restored;
    this.log.line("info", "restored", { cut, backup: at, restored: restoredAt });
    return restored;
  }

  #factsOf(replica: Replica, release: string): () => SiteFacts {
    return () => {
      const { position, replica: incarnation, pending } = replica.status();
      return {
        site: this.config.id,
        parent: this.parent,
        tier: this.config.tier,
        release,
        at: new Date(replica.nowMs()).toISOString(),
        ...{ incarnation, position, pending },
      };
    };
  }

  /** Watches the room on the disk: rows that can be fetched again are dropped before it is full. */
  #watchRoom(replica: Replica): void {
    const room = new DiskRoom(this.config.capacityBytes), folder = `${this.config.data}/store`;
    const looked = () => {
      const look = lookAt(folder, replica.status().coverage.bytes);
      if (look !== null) replica.holdAtMost(room.after(look));
      this.#roomTimer = setTimeout(looked, nextLookMs(look));
    };
    this.#roomTimer = setTimeout(looked, nextLookMs(null));
  }

  /** Logs a note of the replica, and acts upon it. */
  #noted(event: string, detail?: Record<string, unknown>): void {
    const isWarning = WARNINGS.has(event);
    // A note that repeats another of the same source within the minute is for this site to act upon only.
    if (detail?.before !== null) this.log.line(isWarning ? "warn" : "debug", event, detail);
    if (event !== "child_removed") return;
    const child = String(detail?.child), why = String(detail?.why);
    this.#hub?.dismiss(child, dismissalOf(child, why, String(detail?.parent)));
    if (why === "ahead") this.#isAhead(child);
  }

  /**
   * Handles a child that has had more of the root's disk than is on it: the root is an older copy, and its stateful
   * sessions may have been served elsewhere since the copy was made. The arbiter has to know.
   */
  #isAhead(child: string): void {
    this.#ahead = child;
    this.#apps?.stateful.storeWentBack(child);
  }

  #startLinks(
    replica: Replica,
    { secrets, disk, transport }: {
      secrets: readonly [Uint8Array, ...Uint8Array[]];
      disk: string;
      transport: Transport;
    },
  ): LinkHub {
    const { config } = this;
    return LinkHub.start({
      site: config.id,
      incarnation: disk,
      secrets,
      transport,
      listen: splitListen(config.listen.link),
      parent: config.parent === null ? null : { site: config.parent.id, address: config.parent.url },
      emulate: (site) => this.#chaos?.shapeOf(site) ?? config.links[site] ?? null,
      isCut: (site) => this.#chaos?.isCut(site) ?? false,
      hold: (kind) => kind === FORWARD_KIND.admin ? null : this.#hold.passed(),
      // Not the table's members: owners are asked before this site is ready (store/wards/retake.ts).
      addressOf: (site) => replica.members.sites.get(site)?.linkAddress ?? null,
      admit: (site, role) =>
        refusalOf(site, role, { id: config.id, members: replica.members, sites: this.table.sites }),
      handlers: {
        connected: (site, role) => replica.connected(site, role),
        disconnected: (site) => replica.disconnected(site),
        unreachable: (site) => replica.unreachable(site),
        refused: (site) => replica.owners.detector.refused(site),
        message: (site, bytes) => replica.receive(site, bytes),
        request: (_site, request) => {
          if (this.#apps === null) {
            return Promise.reject(new Problem("not_ready", `site ${config.id} is not ready`));
          }
          return this.#apps.serveLink(request);
        },
      },
      // In a line of the log, "site" is the one that writes it.
      log: ({ level, event, site: other, ...fields }) =>
        this.log.line(level, event, { ...(other === undefined ? {} : { other }), ...fields }),
    });
  }

  async #becomeReady(replica: SiteReplica, keys: Omit<AppServicePorts, "replica" | "hub">): Promise<void> {
    try {
      await replica.ready;
      await this.#join(replica);
      if (this.#stopping !== null || this.#hub === null) return;
      this.table.watch(replica.members);
      this.#apps = await startApps(this, { replica, hub: this.#hub, ...keys });
      if (this.#ahead !== null) this.#apps.stateful.storeWentBack(this.#ahead);
      this.log.line("info", "ready", {});
    } catch (error) {
      if (this.#stopping === null) this.#fatal(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Resolves when restored data has joined the tree, or the site stops. */
  async #join(replica: Replica): Promise<void> {
    const restored = this.#restoredAlone, { config } = this;
    if (restored === null) return;
    this.#tree = new RestoredTree({
      system: replica.system,
      site: config.id,
      isRoot: config.parent === null,
      restored,
      note: (event, fields) => this.log.line("warn", event, fields),
    });
    await this.#tree.join();
    if (this.#stopping !== null) return;
    await keepRestored(config.data, { ...restored, joined: true });
    this.#restoredAlone = null;
  }

  /** Returns the app gateway, or null while apps cannot be served. */
  #serving(): AppService["gateway"] | null {
    if (this.#fault !== null) throw new Problem("disk_failed", this.#fault.message);
    if (this.#isDraining) throw new Problem("draining", DRAINING);
    return this.#stopping === null ? this.#apps?.gateway ?? null : null;
  }

  #tablesOf(app: string): string[] | null {
    const version = this.#apps?.table.get(app)?.current;
    return version === undefined ? null : Object.keys(version.manifest.tables);
  }

  /** Stops all acknowledging after a fault (S2). */
  #fatal(error: Error): void {
    if (this.#fault !== null) return;
    this.#fault = error;
    this.log.line("error", "site_failed", {
      error: describe(error),
      says: "nothing is acknowledged any more",
    });
    this.#hub?.close().catch((error) => this.faults.unexpected(error));
    if (error instanceof OlderDisk) return this.#older(error);
    if (error instanceof OlderRoot) return; // the process stays: a new start would not find out
    if (
      !(error instanceof StoreUnavailable) || error.code !== "disk_failed" || this.#chaos?.isDiskOk === false
    ) {
      return;
    }
    void diskWorks(this.config.data, this.#trials.signal).then(() => {
      this.log.line("info", "disk_works", { says: "the site ends, to be started again" });
      this.#recovered.resolve();
    });
  }

  /**
   * Marks the store of which neighbours have had more than it holds: it is set aside at the next start (lost_folder.ts
   * LF4).
   */
  #older({ message }: OlderDisk): void {
    if (this.config.parent === null || this.config.engine === "memory") return;
    markOlder(`${this.config.data}/store`, message).then(() => {
      this.log.line("error", "disk_went_back", {
        says: "the site ends, and starts as after the loss of its disk",
      });
      this.#recovered.resolve();
    }).catch((error) => this.faults.unexpected(error));
  }

  /**
   * Applies what a changed site file says of owners; the rest of it takes a restart. Never fails: the log says why not.
   */
  async reload(read: () => Promise<SiteConfig>): Promise<void> {
    try {
      if (this.#fault !== null) throw this.#fault;
      const config = await read();
      await this.#replica?.owners.configure(ownersSettings(config));
      const later = fixedChanges({ ...this.config, parent: this.#fileParent }, config);
      const says = later.length === 0
        ? {}
        : { restart: `${later.join(", ")}: changed, and taken at a restart` };
      const { f, area = null, owners } = config;
      this.log.line(later.length === 0 ? "info" : "warn", "reloaded", { f, area, owners, ...says });
    } catch (error) {
      const isExpected = error instanceof ConfigError || error instanceof OwnersError ||
        error instanceof StoreUnavailable;
      this.log.line("warn", "not_reloaded", { error: isExpected ? error.message : describe(error) });
    }
  }

  /** Stops taking requests, gives back all that the other sites need, and then stops; the process ends after that. */
  async drain(untilMs: number): Promise<Drained> {
    if (this.#replica === null || this.#apps === null || this.#isDraining) {
      throw new Problem("draining", `site ${this.config.id} is being drained`);
    }
    this.#isDraining = true;
    const { log } = this;
    log.line("info", "draining", { until: new Date(untilMs).toISOString() });
    const gateway = this.#gateway;
    const requests = { count: () => gateway?.active ?? 0, cut: () => gateway?.close() };
    const drained = await drain({ replica: this.#replica, apps: this.#apps, requests, untilMs });
    log.line(drained.complete ? "info" : "warn", "drained", { ...drained });
    // The answer leaves first.
    setTimeout(() => this.#drained.resolve(), ANSWER_MS);
    return drained;
  }

  /**
   * Gives this site another parent, now and at later starts. Requests go on.
   *
   * @returns the parent before.
   */
  move(parent: Parent): Promise<string> {
    // One move after the other: the last that was asked for is the one that is kept.
    const moved = this.#moving.then(() => this.#move(parent));
    this.#moving = moved.catch(() => {});
    return moved;
  }

  async #move(parent: Parent): Promise<string> {
    const before = this.#parent, from = this.#fileParent;
    if (this.#replica === null || before === null || from === null) {
      throw new Problem("site_needed", `site ${this.config.id} is the root: it has no parent`);
    }
    if (!linkUrl.safeParse(parent.url).success) {
      throw new Problem("query_invalid", `url takes where a site's links come in, not ${parent.url}`);
    }
    await keepParent(this.config, parent, from);
    this.#parent = parent;
    this.log.line("info", "moving", { from: before.id, to: parent.id, url: parent.url, lost: parent.lost });
    // The answer leaves first, over the links as they are.
    setTimeout(() => this.#follow(parent), ANSWER_MS);
    return before.id;
  }

  #follow(parent: Parent): void {
    if (this.#stopping !== null || parent !== this.#parent) return;
    const before = this.#followed;
    this.#followed = parent;
    this.#replica?.move(parent.id, parent.lost);
    if (before?.id === parent.id && before.url === parent.url) return;
    this.#hub?.moveTo({ site: parent.id, address: parent.url });
  }

  /**
   * Stops the site in order after an exception that nothing caught (S3); after a fault (S2) there is nothing left to
   * stop for.
   */
  unexpected(error: unknown): void {
    this.faults.unexpected(error);
    if (this.#fault === null) this.#broken.resolve();
  }

  /** Resolves when the site is to stop by S3. */
  get broken(): Promise<void> {
    return this.#broken.promise;
  }

  /** Resolves when the site has been drained. */
  get drained(): Promise<void> {
    return this.#drained.promise;
  }

  /**
   * Resolves when the site has to be started anew: its disk had failed and works again, or turned out to be an older
   * copy.
   */
  get recovered(): Promise<void> {
    return this.#recovered.promise;
  }

  /** Stops in order; the second call waits for the first. */
  stop(): Promise<void> {
    return this.#stopping ??= this.#stop();
  }

  async #stop(): Promise<void> {
    this.log.line("info", "stopping", {});
    this.#trials.abort();
    clearTimeout(this.#roomTimer);
    await this.#certificates?.close();
    this.#tree?.close();
    await this.#backups?.close();
    this.#gateway?.close();
    await this.#drain();
    await this.#apps?.close();
    this.table.close();
    await this.#replica?.close().catch((error) =>
      this.log.line("error", "close_failed", { error: describe(error) })
    );
    await this.#hub?.close();
    await this.#closeStorage();
    await this.telemetry.close();
    this.log.line("info", "stopped", {});
  }

  async #drain(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    const timer = setTimeout(() => this.#cut.abort(), DRAIN_MS_MAX);
    await server.shutdown();
    clearTimeout(timer);
  }
}

/** Returns the files that only the site itself should be able to read. */
function secretFiles({ secretFile, adminTokenFile, tls }: SiteConfig): { field: string; path: string }[] {
  return [
    { field: "secretFile", path: secretFile },
    { field: "adminTokenFile", path: adminTokenFile },
    { field: "tls.key", path: tls?.key },
  ].flatMap(({ field, path }) => path === undefined ? [] : [{ field, path }]);
}

function codecOf(
  secrets: readonly Uint8Array[],
  replica: Pick<Replica, "nowMs">,
  random: SystemRandom,
): TokenCodec {
  const ring = deriveKeyRing(secrets);
  return {
    seal: (state) => sealToken(state, ring, { nowMs: replica.nowMs(), random }),
    open: (text) => openToken(text, ring, replica.nowMs()),
  };
}
