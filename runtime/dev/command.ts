/**
 * `sojourn dev`: a whole cluster on this machine, with the given apps, redeployed when they change.
 *
 * Stages: topology and apps found → sites started, apps bundled → the root is ready: it takes the apps → all are ready:
 * they have them → every app answers at each site → `ready` → changes watched → Ctrl-C → all stopped.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Command,
  DATA_DEFAULT,
  EXIT,
  type ExitCode,
  type Parsed,
  type Shell,
  UsageError,
} from "../cli/mod.ts";
import type { BundleResult } from "../bundle/mod.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { bundle } from "../deploy/upload.ts";
import { F_MAX } from "../../store/model/limits.ts";
import { ConfigError } from "../site/config.ts";
import { ownersCount } from "../site/owners_fields.ts";
import { type AppSource, findApp, watchFolder } from "./app_source.ts";
import { answers, Cluster } from "./cluster.ts";
import { openControl } from "./control.ts";
import { hostPattern } from "../isolate/egress_rules.ts";
import { deployApp } from "./deploy_app.ts";
import { lockData } from "./data_lock.ts";
import { EnvFile } from "./env_file.ts";
import { type DevTopology, loadTopology, withOwners } from "./topology.ts";

const PORT_DEFAULT = 8000;
const TOPOLOGY_DEFAULT = "three-tier";
const APP_DEFAULT = "guestbook";
/**
 * Milliseconds in which a cluster is ready: longer than the slowest start of six processes on two busy cores; past it
 * something is broken.
 */
const READY_MS_MAX = 120_000;

/** The `dev` command. */
export const devCommand: Command = {
  name: "dev",
  usage:
    "[APP…] [--topology FILE|NAME] [--f 0] [--port 8000] [--data DIR] [--ephemeral] [--reach HOST:PORT,…] " +
    "[--check-determinism] [--verbose]",
  summary:
    "Runs a whole cluster on this machine, each site its own process; redeploys the given apps on change.",
  details: [
    `APP is a module, a folder with app.ts, or a name in examples/; ${APP_DEFAULT} by default. HTTP ports go up from`,
    "--port, one a site: cloud, core-1, core-2, edge-1, edge-2, edge-3 in the default topology. Ctrl-C stops all.",
    "Other commands find the cluster in the same folder, or by --data; one that is --ephemeral, too.",
  ],
  options: {
    topology: {
      type: "string",
      value: "FILE|NAME",
      says: "three-tier (default), single, or a topology file",
    },
    f: {
      type: "string",
      value: "N",
      says: "what a site has told survives the loss of N sites, 0 by default; a topology's own f goes first",
    },
    port: {
      type: "string",
      value: "PORT",
      says: `first HTTP port, ${PORT_DEFAULT} by default; 0 takes free ones`,
    },
    data: {
      type: "string",
      value: "DIR",
      says: `where the cluster keeps its data, ${DATA_DEFAULT} by default`,
    },
    ephemeral: {
      type: "boolean",
      says: "keep the data only while it runs; in --data is only what commands find the cluster by",
    },
    reach: {
      type: "string",
      value: "HOST:PORT,…",
      says: "what apps may reach although its address is private, where they declare it too",
    },
    "check-determinism": {
      type: "boolean",
      says:
        "replay each message of a stateful session in an isolate of its own, and stop the session where it differs",
    },
    verbose: {
      type: "boolean",
      says:
        "print all that the sites log, not only what apps print and what is wrong; sojourn logs has it anyway",
    },
  },
  words: [0, Infinity],
  async run(args, shell) {
    const port = portOf(args), f = ownersOf(args), reach = reachOf(args);
    const stop = interrupted(); // from here on there is something to undo
    try {
      const topology = withOwners(await loadTopology(args.text("topology") ?? TOPOLOGY_DEFAULT), f);
      const apps = await Promise.all((args.words.length === 0 ? [APP_DEFAULT] : args.words).map(findApp));
      const kept = args.text("data") ?? DATA_DEFAULT;
      const data = args.flag("ephemeral") ? await Deno.makeTempDir({ prefix: "sojourn-dev-" }) : kept;
      try {
        const checkDeterminism = args.flag("check-determinism"), verbose = args.flag("verbose");
        const what = { topology, data, found: kept, port, reach, checkDeterminism, verbose, apps };
        return await runCluster(what, stop, args, shell);
      } finally {
        if (args.flag("ephemeral")) await Deno.remove(data, { recursive: true });
      }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      shell.err(error.message);
      return EXIT.failed;
    }
  },
};

async function runCluster(
  what: {
    topology: DevTopology;
    data: string;
    found: string;
    port: number;
    reach: readonly string[];
    checkDeterminism: boolean;
    verbose: boolean;
    apps: readonly AppSource[];
  },
  stop: AbortSignal,
  args: Parsed,
  shell: Shell,
): Promise<ExitCode> {
  using _lock = await lockData(what.data);
  const starts = new Starts();
  const cluster = await Cluster.create({
    ...what,
    main: fileURLToPath(Deno.mainModule), // sites are processes of this command line
    onExit: (site, code, signal, nextMs) => {
      if (nextMs === null) return;
      shell.err(`${site} ended (${signal ?? code}); it starts again in ${nextMs} ms`);
      starts.failed(site);
    },
  });
  return await new DevRun(cluster, what.apps, args, shell).until(stop, starts);
}

function portOf(args: Parsed): number {
  const text = args.text("port") ?? String(PORT_DEFAULT);
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_000) {
    throw new UsageError(`--port takes a port from 0 to 65000, not ${text}`);
  }
  return port;
}

function ownersOf(args: Parsed): number {
  const text = args.text("f") ?? "0";
  const parsed = ownersCount.safeParse(/^\d+$/.test(text) ? Number(text) : NaN);
  if (!parsed.success) {
    throw new UsageError(`--f takes a number of other sites from 0 to ${F_MAX}, not ${text}`);
  }
  return parsed.data;
}

/** Returns the hosts of `--reach`, in the form of `egress.private` in a site file. */
function reachOf(args: Parsed): readonly string[] {
  const hosts = (args.text("reach") ?? "").split(",").map((host) => host.trim()).filter((host) =>
    host !== ""
  );
  const odd = hosts.find((host) => {
    const pattern = hostPattern(host);
    return pattern === null || pattern.below || !pattern.port;
  });
  if (odd !== undefined) throw new UsageError(`--reach takes host:port, several with commas, not ${odd}`);
  return hosts;
}

/** Aborts at the first SIGINT or SIGTERM. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => controller.abort());
  }
  return controller.signal;
}

/** Number of early ends after which a site will not start by being started again. */
const FAILED_STARTS_MAX = 3;

/** Counts sites that end while the cluster starts. */
class Starts {
  readonly #counts = new Map<string, number>();
  readonly #hopeless = new AbortController();
  #over = false;

  /** Signal that aborts when a site can't start. */
  get hopeless(): AbortSignal {
    return this.#hopeless.signal;
  }

  /** Counts a site that has ended. */
  failed(site: string): void {
    const count = (this.#counts.get(site) ?? 0) + 1;
    this.#counts.set(site, count);
    if (this.#over || count < FAILED_STARTS_MAX) return;
    this.#hopeless.abort(new ConfigError(`${site} cannot start: it ended ${count} times; its log says why`));
  }

  /** Ends the counting: the cluster is ready, and from now on sites come back as often as they end. */
  done(): void {
    this.#over = true;
  }
}

/** A run of a dev cluster. */
class DevRun {
  readonly #cluster: Cluster;
  readonly #apps: readonly AppSource[];
  readonly #json: boolean;
  readonly #shell: Shell;
  /** The `.env` file of each app, and the app's name, once it has been deployed. */
  readonly #envs = new Map<AppSource, EnvFile>();
  readonly #names = new Map<AppSource, string>();

  constructor(cluster: Cluster, apps: readonly AppSource[], args: Parsed, shell: Shell) {
    this.#cluster = cluster;
    this.#apps = apps;
    this.#json = args.json;
    this.#shell = shell;
  }

  /** Runs until the signal aborts. */
  async until(stop: AbortSignal, starts: Starts): Promise<ExitCode> {
    const begunMs = performance.now();
    const cluster = this.#cluster;
    let controlUrl = "";
    const writeFile = () => cluster.writeFile(controlUrl);
    const control = await openControl(cluster, writeFile);
    controlUrl = control.url;
    // Files are watched from before the first deploy on, so that no change falls between that and the watching.
    const ending = new AbortController();
    const deployed = Promise.withResolvers<void>();
    const watching = this.#watch(AbortSignal.any([stop, ending.signal]), deployed.promise);
    watching.catch(() => {}); // reported when it is awaited
    try {
      cluster.start();
      const bundles = this.#apps.map(({ module }) => bundle(module)); // while the sites start
      await writeFile();
      const signal = AbortSignal.any([stop, starts.hopeless, AbortSignal.timeout(READY_MS_MAX)]);
      const taken = this.#rootTakes(bundles, signal);
      await cluster.ready(signal);
      starts.done();
      const changed = await taken;
      const names: string[] = [];
      for (const [i, app] of this.#apps.entries()) {
        names.push(await this.#deploy(app, { bundled: bundles[i], changed: changed[i] }));
      }
      await this.#answering(names, stop);
      this.#announce(names, performance.now() - begunMs);
      deployed.resolve();
      await watching;
      return EXIT.done;
    } catch (error) {
      return this.#failed(error, stop);
    } finally {
      if (!this.#json) this.#shell.err("stopping");
      ending.abort();
      await control.close();
      await cluster.stop();
    }
  }

  #failed(error: unknown, stop: AbortSignal): ExitCode {
    if (stop.aborted) return EXIT.done;
    if (error instanceof AdminError) {
      this.#shell.err(error.lines.join("\n"));
      return EXIT.failed;
    }
    if (error instanceof DOMException && error.name === "TimeoutError") {
      this.#shell.err(`the sites were not ready within ${READY_MS_MAX / 1000} s; their log says why`);
      return EXIT.failed;
    }
    throw error;
  }

  /** Address and token for changes of the cluster. */
  get #target(): { readonly url: string; readonly token: string } {
    return { url: this.#cluster.root.url, token: this.#cluster.adminToken };
  }

  /**
   * Has the root run the apps for their manifests and write their rows while the other sites start; returns for each
   * whether that changed anything. Failures are reported by the deploys that follow, which wait for all sites.
   */
  async #rootTakes(
    bundles: readonly Promise<BundleResult>[],
    signal: AbortSignal,
  ): Promise<readonly boolean[]> {
    const changed: boolean[] = [];
    try {
      await this.#cluster.rootReady(signal);
      for (const [i, app] of this.#apps.entries()) {
        const options = { bundled: bundles[i], waitMs: 0, signal };
        changed.push((await deployApp(app, this.#target, options)).changed);
      }
    } catch {
      // The deploys that follow report it.
    }
    return changed;
  }

  async #deploy(
    app: AppSource,
    early: { readonly bundled?: Promise<BundleResult> | undefined; readonly changed?: boolean | undefined } =
      {},
  ): Promise<string> {
    const target = this.#target;
    const warned = (warning: string) => this.#shell.err(`warning: ${warning}`);
    const said = await deployApp(app, target, { bundled: early.bundled, warned });
    const deployed = { ...said, changed: said.changed || early.changed === true };
    const env = this.#envs.get(app) ??
      new EnvFile(app.folder, target, (line) => this.#shell.err(line));
    this.#envs.set(app, env);
    await env.apply(deployed.app);
    this.#names.set(app, deployed.app);
    this.#line({ event: "deployed", ...deployed }, () => {
      const missing = deployed.missing.length === 0 ? "" : `; missing at ${deployed.missing.join(", ")}`;
      return `deployed ${deployed.app} ${
        deployed.version.slice(0, 12)
      } to ${deployed.sites.length} sites${missing}`;
    });
    return deployed.app;
  }

  async #answering(apps: readonly string[], stop: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(READY_MS_MAX)]);
    const urls = this.#cluster.sites.flatMap((site) => apps.map((app) => `${site.url}/${app}/`));
    // Any answer of an app at "/", a 404 of its own too, shows that it serves.
    await Promise.all(
      urls.map((url) => answers(url, signal, (answer) => answer.headers.has("sojourn-version"))),
    );
  }

  #announce(apps: readonly string[], tookMs: number): void {
    const { sites } = this.#cluster;
    for (const { id, parent, tier, url, process } of sites) {
      this.#line(
        { event: "site", id, parent, tier, url, pid: process.pid },
        () => `${id.padEnd(10)} ${tier.padEnd(5)} ${url}/${parent === null ? "" : `  under ${parent}`}`,
      );
    }
    const { data } = this.#cluster;
    this.#line({ event: "ready", sites: sites.length, apps, ms: Math.round(tookMs), data }, () => "ready");
    if (!this.#cluster.isFound) {
      this.#shell.err(`another cluster runs in this folder: commands find this one by --data ${data}`);
    }
    if (this.#json) return;
    const at = sites.find((site) => site.tier === "edge") ?? sites[0];
    const first = apps[0];
    if (at === undefined || first === undefined) return;
    this.#shell.out(`try        curl -i ${at.url}/${first}/`);
    this.#shell.out(`dashboard  ${sites[0]?.url}/_sojourn/dashboard#token=${this.#cluster.adminToken}`);
    const whose = apps.length === 1 ? `${first} is redeployed when its` : "apps are redeployed when their";
    this.#shell.out(`           ${whose} files change; Ctrl-C stops all sites`);
  }

  async #watch(stop: AbortSignal, first: Promise<void>): Promise<void> {
    const watched = (app: AppSource) => ({ folder: app.folder, except: this.#cluster.data, signal: stop });
    const envFiles = this.#apps.map((app) =>
      watchFolder({ ...watched(app), only: join(app.folder, ".env") }, async () => {
        await first;
        const [env, name] = [this.#envs.get(app), this.#names.get(app)];
        if (env !== undefined && name !== undefined) await env.apply(name);
      })
    );
    await Promise.all([
      ...envFiles,
      ...this.#apps.map((app) =>
        watchFolder(watched(app), async () => {
          await first;
          try {
            await this.#deploy(app);
          } catch (error) {
            const why = error instanceof AdminError ? `${error.code}: ${error.message}` : String(error);
            this.#shell.err(`${app.fallback}: ${why}; the version before it keeps serving`);
          }
        })
      ),
    ]);
  }

  /** Prints one line for people, or one object for programs. */
  #line(object: Record<string, unknown>, text: () => string): void {
    this.#shell.out(this.#json ? JSON.stringify(object) : text());
  }
}
