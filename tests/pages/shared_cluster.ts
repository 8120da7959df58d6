/**
 * A cluster that several pages are done on, one after the other: a start costs as much as ten of a page's commands.
 *
 * Life: `start` (the pages' `deno task dev`, of which there is one for all) → each page finds it as if it had started it
 * (`join`), and leaves it so (`leave`) → … → `stop`.
 *
 * SH1  What a page's `dev` names is served when the page comes to it: the examples from the beginning, what the page
 *      itself saves is deployed there.
 * SH2  A page leaves nothing broken behind: links, disks and clocks are as they should be, and all sites are ready,
 *      before the next one begins. What is in apps stays: pages that share one do not look at each other's rows.
 */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { type ChaosAction, type ChaosState, chaosStateSchema } from "../../runtime/chaos/actions.ts";
import { CHAOS_PATH } from "../../runtime/chaos/site_chaos.ts";
import { startCluster, type TestCluster } from "../e2e/cluster.ts";
import type { Step } from "./blocks.ts";

/** What a page's `deno task dev` asks for. */
export interface DevWords {
  /** As the page names them; `dev` has an app of its own where it names none. */
  readonly apps: readonly string[];
  /** `--f 1` */
  readonly options: readonly string[];
}

const DEV = /^(?:npx --yes deno@2\.9\.6|deno) task dev\b([^#]*)/;
/** The app of a `dev` that names none. */
const APP_DEFAULT = "guestbook";

/** What a command asks `dev` for; null: it is another command. */
export function devWords(command: string): DevWords | null {
  const found = DEV.exec(command);
  if (found === null) return null;
  const words = (found[1] ?? "").trim().split(/\s+/).filter(Boolean);
  const at = words.findIndex((word) => word.startsWith("--"));
  const apps = at < 0 ? words : words.slice(0, at);
  return { apps: apps.length === 0 ? [APP_DEFAULT] : apps, options: at < 0 ? [] : words.slice(at) };
}

/** A running cluster of several pages. */
export class SharedCluster implements AsyncDisposable {
  readonly cluster: TestCluster;

  private constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  /** Starts what all of the pages ask `dev` for, which must differ in nothing but apps. */
  static async start(pages: readonly (readonly Step[])[]): Promise<SharedCluster> {
    const apps = new Set<string>();
    const options = new Set<string>();
    for (const steps of pages) {
      const [words, ...others] = steps.flatMap((step) =>
        step.kind === "command" ? devWords(step.text) ?? [] : []
      );
      assert(words !== undefined && others.length === 0, "a page that shares a cluster has one `dev`");
      options.add(words.options.join(" "));
      for (const app of words.apps) if (!isSaved(app, steps)) apps.add(app);
    }
    const [only, ...others] = options;
    assert(only !== undefined && others.length === 0, `pages share one cluster, but ask for ${[...options]}`);
    return new SharedCluster(
      await startCluster({
        data: await Deno.makeTempDir({ prefix: "pages-" }),
        apps: [...apps, ...only.split(" ").filter(Boolean)],
      }),
    );
  }

  /** Has commands in a folder find it; resolves to those of the apps that the page has saved there (SH1). */
  async join(folder: string, { apps }: DevWords): Promise<string[]> {
    await Deno.symlink(this.cluster.data, join(folder, ".sojourn"));
    const own = await Promise.all(
      apps.map((app) => Deno.stat(join(folder, app)).then(() => true, () => false)),
    );
    return apps.filter((_, i) => own[i]);
  }

  /** SH2 */
  async leave(): Promise<void> {
    const { cluster } = this;
    await this.#chaos({ action: "heal" });
    const { down, paused, disks, skews } = await this.#chaos();
    for (const { site } of disks) await this.#chaos({ action: "disk", site, state: "ok" });
    for (const { site } of skews) await this.#chaos({ action: "skew", site, ms: 0 });
    for (const site of paused) await cluster.control("resume", site);
    for (const site of down) await cluster.control("start", site);
    for (const site of Object.keys(cluster.sites)) await cluster.ready(site);
  }

  async #chaos(action?: ChaosAction): Promise<ChaosState> {
    const { controlUrl } = JSON.parse(await Deno.readTextFile(join(this.cluster.data, "cluster.json"))) as {
      controlUrl: string;
    };
    const headers = { authorization: `Bearer ${this.cluster.adminToken}` };
    if (action !== undefined) {
      const done = await fetch(controlUrl + CHAOS_PATH, {
        method: "POST",
        headers,
        body: JSON.stringify(action),
      });
      const text = await done.text();
      assert(done.ok, text);
    }
    const state = await fetch(controlUrl + CHAOS_PATH, { headers });
    return chaosStateSchema.parse(await state.json());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster.stop();
    await Deno.remove(this.cluster.data, { recursive: true });
  }
}

/** Whether an app is one of the page's own. */
const isSaved = (app: string, steps: readonly Step[]): boolean =>
  steps.some((step) => step.kind === "file" && step.path === `${app}/app.ts`);
