/**
 * A cluster on this machine: every site of a topology as its own process.
 *
 * Life: `Cluster.create` (folders, secret, tokens, site files) → `start` (all sites at once; their order does not
 * matter) → `ready` → … → `stop`.
 *
 * C1  Files that others must not read (secret, admin token, cluster file) have mode 0600.
 * C2  Existing data, secret and admin token are used again.
 * C3  From its first writing to `stop` the cluster file names the processes that run.
 */
import { join, resolve } from "node:path";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { firstAdminToken } from "../deploy/roles.ts";
import { bootstrapFile } from "../isolate/bootstrap_file.ts";
import type { ClusterFile } from "../cli/mod.ts";
import { ConfigError, type SiteFile } from "../site/config.ts";
import { ClusterFilePlaces } from "./cluster_file.ts";
import { FreePorts, isFree } from "./free_port.ts";
import { SiteProcess } from "./site_process.ts";
import { type DevTopology, linksOf, tierOf, type TopologyLink, type TopologySite } from "./topology.ts";

/** Options of a cluster. */
export interface ClusterOptions {
  readonly topology: DevTopology;
  /** Folder of all files of the cluster. */
  readonly data: string;
  /** Folder in which commands look for the cluster, where it is another one. */
  readonly found?: string;
  /** First HTTP port; 0 takes free ones. */
  readonly port: number;
  /** Addresses (`host:port`) that apps may reach although they are private. */
  readonly reach?: readonly string[];
  /** True when each message of a stateful session is replayed in an isolate of its own. */
  readonly checkDeterminism?: boolean;
  /** True when sites print all that they log. */
  readonly verbose?: boolean;
  /** Module of the command line that has `site`. */
  readonly main: string;
  readonly onExit: (site: string, code: number, signal: string | null, nextMs: number | null) => void;
}

/** A site as commands and tests see it. */
export interface ClusterSite {
  readonly id: string;
  readonly parent: string | null;
  readonly tier: "root" | "core" | "edge";
  readonly url: string;
  /** Path of the site file; and of the file with the faults that the site begins with (chaos.ts). */
  readonly file: string;
  readonly chaosFile: string;
  /** Properties that the site's links add, by the other site's id. */
  readonly links: Readonly<Record<string, TopologyLink>>;
  readonly process: SiteProcess;
}

interface SitePorts {
  readonly http: number;
  readonly link: number;
}

const SOURCE = resolve(import.meta.dirname ?? ".", "..");

/**
 * Folder shared by all clusters of this checkout: files that were made once from its sources need not be made again.
 */
const CACHE = join(SOURCE, "..", ".cache", "isolates");

/** Milliseconds until a site that is not ready is asked again. */
const POLL_MS = 25;

/** A running cluster. */
export class Cluster {
  readonly sites: readonly ClusterSite[];
  readonly adminToken: string;
  readonly data: string;
  readonly #ports: FreePorts;
  readonly #file: ClusterFilePlaces;
  #isFound = true;
  /** URL of the dev process's own door; null: the cluster file was not written yet (C3). */
  #controlUrl: string | null = null;
  #written: Promise<void> = Promise.resolve();
  #isStopping = false;

  private constructor(
    make: (changed: () => void) => readonly ClusterSite[],
    adminToken: string,
    data: string,
    ports: FreePorts,
    file: ClusterFilePlaces,
  ) {
    this.#file = file;
    this.sites = make(() => this.#changed());
    this.#ports = ports;
    this.adminToken = adminToken;
    this.data = data;
  }

  /** Prepares the folder; starts nothing. */
  static async create(options: ClusterOptions): Promise<Cluster> {
    const { topology } = options;
    // Six sites that find none would each make it.
    await Promise.all([bootstrapFile("serve", CACHE), bootstrapFile("evaluate", CACHE)]);
    const data = resolve(options.data);
    await Deno.mkdir(join(data, "sites"), { recursive: true, mode: 0o700 });
    await keepSecret(join(data, "secret"), 32);
    const tokens = join(data, "admin-token");
    // Lines for others may stand in it: tokens of queues, of agents.
    const adminToken = firstAdminToken(await keepSecret(tokens, 24));
    if (adminToken === null) {
      throw new ConfigError(`${tokens} has no admin's token: add a line, or remove it`);
    }
    const free = new FreePorts();
    const ports = new Map<string, SitePorts>();
    for (const [i, site] of topology.sites.entries()) {
      if (options.port !== 0 && !isFree(options.port + i)) {
        throw new ConfigError(
          `port ${
            options.port + i
          } of 127.0.0.1, for ${site.id}, is taken; --port takes another first port, 0 free ones`,
        );
      }
      const http = options.port === 0 ? await free.draw() : options.port + i;
      ports.set(site.id, { http, link: await free.draw() });
    }
    for (const site of topology.sites) {
      const { file } = filesOf(data, site);
      await Deno.mkdir(join(data, "sites", site.id), { recursive: true, mode: 0o700 });
      const text = JSON.stringify(siteFile(options, site, ports), null, 2) + "\n";
      (await replaceFile(Deno, file, text, { mode: 0o600 })).close();
    }
    const sites = (onChange: () => void) =>
      topology.sites.map((site): ClusterSite => ({
        id: site.id,
        parent: site.parent ?? null,
        tier: tierOf(topology, site),
        url: `http://127.0.0.1:${portsOf(ports, site.id).http}`,
        ...filesOf(data, site),
        links: linksOf(topology, site),
        process: new SiteProcess({
          id: site.id,
          ...filesOf(data, site),
          main: options.main,
          denoConfig: join(SOURCE, "..", "deno.json"),
          onExit: (code, signal, nextMs) => options.onExit(site.id, code, signal, nextMs),
          onChange,
        }),
      }));
    const found = options.found === undefined ? null : resolve(options.found);
    return new Cluster(sites, adminToken, data, free, new ClusterFilePlaces(data, found));
  }

  /** Starts every site. */
  start(): void {
    for (const site of this.sites) void site.process.start();
  }

  /** Resolves when every site that is meant to run is ready. */
  async ready(signal: AbortSignal): Promise<void> {
    // Sites are asked one after the other: asking takes time of the processors that they all start on.
    for (const site of this.sites) {
      await answers(`${site.url}/_sojourn/readyz`, signal, (answer) => answer.ok);
    }
  }

  /** Resolves when the root is ready. */
  async rootReady(signal: AbortSignal): Promise<void> {
    await answers(`${this.root.url}/_sojourn/readyz`, signal, (answer) => answer.ok);
  }

  /** The root site, to which apps are deployed. */
  get root(): ClusterSite {
    const root = this.sites.find(({ parent }) => parent === null);
    if (root === undefined) throw new Error("a cluster has a root"); // topologies are checked
    return root;
  }

  /** Returns a site by id. */
  site(id: string): ClusterSite | undefined {
    return this.sites.find((site) => site.id === id);
  }

  /** True where commands find this cluster; else they find another one that runs. */
  get isFound(): boolean {
    return this.#isFound;
  }

  /** Writes the file by which commands find the cluster. Resolves when it has the present state. */
  writeFile(controlUrl: string): Promise<void> {
    if (this.#isStopping) return this.#written;
    this.#controlUrl = controlUrl;
    // Writings go one at a time; one that failed keeps none after it from being written.
    const written = this.#written.then(() => this.#write(controlUrl));
    this.#written = written.catch(() => {});
    return written;
  }

  /** Writes the cluster file anew (C3). */
  #changed(): void {
    if (this.#controlUrl !== null) this.writeFile(this.#controlUrl).catch(() => {});
  }

  async #write(controlUrl: string): Promise<void> {
    const file: ClusterFile = {
      pid: Deno.pid,
      adminToken: this.adminToken,
      sites: this.sites.map(({ id, parent, tier, url, process }) => ({
        id,
        parent,
        tier,
        url,
        pid: process.pid,
      })),
      controlUrl,
    };
    this.#isFound = await this.#file.write(file);
  }

  /** Stops every site: leaves first, so that each says goodbye to a parent that is there. */
  async stop(): Promise<void> {
    using _ = this.#ports; // no site comes back to them
    this.#isStopping = true;
    await this.#written;
    await this.#file.remove();
    for (const tier of ["edge", "core", "root"]) {
      await Promise.all(this.sites.filter((site) => site.tier === tier).map((site) => site.process.stop()));
    }
  }
}

/** Asks an address until its answer is the one waited for. */
export async function answers(
  url: string,
  signal: AbortSignal,
  accepted: (answer: Response) => boolean,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      const answer = await fetch(url, { signal, headers: { "sojourn-timing": "1" } });
      await answer.body?.cancel();
      if (accepted(answer)) return;
    } catch {
      signal.throwIfAborted(); // anything else: it does not listen yet
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const filesOf = (data: string, { id }: TopologySite) => ({
  file: join(data, "sites", id, "site.json"),
  chaosFile: join(data, "sites", id, "chaos.json"),
});

function portsOf(ports: ReadonlyMap<string, SitePorts>, id: string): SitePorts {
  const found = ports.get(id);
  if (found === undefined) throw new Error(`site ${id} has no ports`); // topologies are checked
  return found;
}

function siteFile(
  { topology, reach = [], checkDeterminism, verbose }: Pick<
    ClusterOptions,
    "topology" | "reach" | "checkDeterminism" | "verbose"
  >,
  site: TopologySite,
  ports: ReadonlyMap<string, SitePorts>,
): SiteFile {
  const { http, link } = portsOf(ports, site.id);
  const { parent } = site;
  return {
    id: site.id,
    parent: parent === undefined
      ? null
      : { id: parent, url: `tcp://127.0.0.1:${portsOf(ports, parent).link}` },
    tier: tierOf(topology, site),
    listen: { http: `127.0.0.1:${http}`, link: `127.0.0.1:${link}` },
    data: "data",
    cache: CACHE,
    secretFile: "../../secret",
    adminTokenFile: "../../admin-token",
    ...(site.capacityBytes === undefined ? {} : { capacityBytes: site.capacityBytes }),
    ...(site.pendingBytesMax === undefined ? {} : { pendingBytesMax: site.pendingBytesMax }),
    ...(site.f === undefined ? {} : { f: site.f }),
    ...(site.area === undefined ? {} : { area: site.area }),
    ...(site.owners === undefined ? {} : { owners: site.owners }),
    ...(reach.length === 0 ? {} : { egress: { allow: ["*"], private: [...reach] } }),
    ...(checkDeterminism === true ? { checkDeterminism } : {}),
    ...(verbose === true ? {} : { logLevel: "warn" as const }),
    links: linksOf(topology, site),
    answerHeaders: "always",
    dev: true,
    chaos: true,
  };
}

/** Returns a secret file's line; made where the file is absent (C1, C2). */
async function keepSecret(path: string, bytes: number): Promise<string> {
  try {
    return (await Deno.readTextFile(path)).trim();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    const text = crypto.getRandomValues(new Uint8Array(bytes)).toHex();
    (await replaceFile(Deno, path, text + "\n", { mode: 0o600 })).close();
    return text;
  }
}
