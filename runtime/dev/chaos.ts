/**
 * Faults on purpose, in a dev cluster: the actions of `POST /_sojourn/admin/chaos`, at whichever site the call arrived.
 * Faults of processes are made here, as the dev process holds them; those of links, clocks and disks are sent to the
 * sites over HTTP, which no cut of a link concerns.
 *
 * X1  The faults in force are written for every site concerned before any of them is told, so that a site that starts,
 *     or is started again by its supervisor, has them from its first byte on.
 * X2  Faults last as long as the dev process: the next one begins with nothing broken.
 * X3  Actions are done one after the other.
 */
import { join } from "node:path";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { type ChaosAction, type ChaosDone, type ChaosState } from "../chaos/actions.ts";
import { type ChangedLink, Ledger } from "../chaos/ledger.ts";
import { CHAOS_PATH, type ChaosFile } from "../chaos/site_chaos.ts";
import { readSiteConfig } from "../site/config.ts";
import type { Cluster, ClusterSite } from "./cluster.ts";

/** A refusal, with the code that its caller is told (runtime/gateway/problem.ts). */
export class ChaosRefused extends Error {
  override readonly name = "ChaosRefused";
  constructor(readonly code: "chaos_invalid" | "chaos_refused", message: string) {
    super(message);
  }
}

/**
 * Milliseconds for which telling a site is tried: one that starts listens within seconds, on a machine full of others
 * too; later it has the faults from its file.
 */
const TELL_MS_MAX = 10_000;
const TELL_AGAIN_MS = 50;
/** Milliseconds of one attempt: a site that stands still does not answer. */
const ANSWER_MS_MAX = 3_000;
/** Properties of a link to which nothing is added. */
const PLAIN: ChangedLink = { rttMs: 0, mbps: 1000, jitterMs: 0, loss: 0 };

type Did = Omit<ChaosDone, "action" | "missing"> & Partial<Pick<ChaosDone, "missing">>;
type Of<Name extends ChaosAction["action"]> = Extract<ChaosAction, { action: Name }>;

/** Makes the faults of a dev cluster. */
export class ClusterChaos {
  readonly #cluster: Cluster;
  readonly #door: ChaosFile["door"];
  readonly #ledger = new Ledger();
  readonly #paused = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param doorUrl URL to which sites pass actions on. */
  constructor(cluster: Cluster, doorUrl: string) {
    this.#cluster = cluster;
    this.#door = { url: doorUrl, token: cluster.adminToken };
  }

  /** Writes the faults with which every site begins; before any of them starts (X2). */
  async begin(): Promise<void> {
    await Promise.all(this.#cluster.sites.map((site) => this.#write(site)));
  }

  /** Returns the faults that are in force now. */
  state(): ChaosState {
    const down = this.#cluster.sites.filter((site) => site.process.pid === 0).map((site) => site.id);
    const paused = [...this.#paused].filter((id) => !down.includes(id));
    return { ...this.#ledger.state(), down, paused };
  }

  /** Notes that a process was started or ended by another way: it stands still no more. */
  moved(site: string): void {
    this.#paused.delete(site);
  }

  /** Does one action (X3). @throws ChaosRefused */
  do(action: ChaosAction): Promise<ChaosDone> {
    const done = this.#last.then(async () => {
      await this.allow(action);
      return { action: action.action, missing: [], ...await this.#do(action) };
    });
    this.#last = done.catch(() => {});
    return done;
  }

  /** Checks an action. @throws ChaosRefused unless all sites that it names exist, and are configured to be broken. */
  async allow(action: ChaosAction): Promise<void> {
    const sites = namesIn(action).map((id) => this.#site(id));
    if (action.action === "wipe" && sites[0]?.parent === null) {
      throw new ChaosRefused(
        "chaos_invalid",
        `${action.site} is the root, whose disk has everything: end \`dev\` and start it with an empty --data instead`,
      );
    }
    for (const site of this.#cluster.sites) {
      const config = await readSiteConfig(site.file, Deno.env.toObject());
      if (!config.chaos) {
        throw new ChaosRefused("chaos_refused", `the configuration of ${site.id} lacks "chaos": true`);
      }
    }
  }

  #do(action: ChaosAction): Promise<Did> {
    switch (action.action) {
      case "kill":
      case "restart":
      case "pause":
      case "resume":
      case "wipe":
        return this.#process(action.action, this.#site(action.site));
      case "partition":
        return this.#partition(action);
      case "heal":
        return this.#heal(action);
      case "delay":
        return this.#delay(action);
      case "evict":
        return this.#evict(action);
      case "skew":
        return this.#skew(action);
      case "disk":
        return this.#disk(action);
    }
  }

  // ── Processes ──

  async #process(action: "kill" | "restart" | "pause" | "resume" | "wipe", site: ClusterSite): Promise<Did> {
    const { id, process } = site;
    if (action === "wipe") return await this.#wipe(site);
    if (action === "restart") {
      const was = process.pid === 0 ? "was down" : "was killed";
      await this.#restart(site);
      return { did: `${id} ${was} and starts again (pid ${process.pid})`, undo: "nothing to undo" };
    }
    if (process.pid === 0) {
      if (action !== "kill") {
        throw new ChaosRefused("chaos_invalid", `${id} is down: \`restart ${id}\` starts it`);
      }
      await process.kill(); // its supervisor was about to start it again
      return { did: `${id} is down already, and stays so`, undo: `chaos restart ${id}` };
    }
    if (action === "kill") {
      await process.kill();
      this.#paused.delete(id);
      return { did: `${id} was killed (SIGKILL) and stays down`, undo: `chaos restart ${id}` };
    }
    if (action === "pause") {
      process.signal("SIGSTOP");
      this.#paused.add(id);
      return { did: `${id} stands still (SIGSTOP); its connections stay open`, undo: `chaos resume ${id}` };
    }
    process.signal("SIGCONT");
    this.#paused.delete(id);
    const missing = await this.#tell([id]); // faults that changed while it stood still
    return { did: `${id} runs on`, undo: `chaos pause ${id}`, missing };
  }

  async #restart(site: ClusterSite): Promise<void> {
    await site.process.kill();
    this.#paused.delete(site.id);
    await site.process.start();
  }

  async #wipe(site: ClusterSite): Promise<Did> {
    const { id, process } = site;
    const wasUp = process.pid !== 0;
    await process.stop();
    this.#paused.delete(id);
    await Deno.remove(join(this.#cluster.data, "sites", id, "data"), { recursive: true }).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    const undo = "nothing brings back what only its disk had; the rest it fetches again";
    if (!wasUp) {
      return {
        did: `${id} lost its data; it stays down: \`chaos restart ${id}\` starts a new incarnation`,
        undo,
      };
    }
    await process.start();
    return { did: `${id} lost its data and starts as a new incarnation (pid ${process.pid})`, undo };
  }

  // ── Links ──

  async #partition(action: Of<"partition">): Promise<Did> {
    const all = this.#cluster.sites.map((site) => site.id);
    const a = [...new Set(action.a)];
    const rest = action.b === undefined ? all.filter((id) => !a.includes(id)) : [...new Set(action.b)];
    const both = a.find((id) => rest.includes(id));
    if (both !== undefined) {
      throw new ChaosRefused("chaos_invalid", `${both} cannot be in both groups of a partition`);
    }
    if (rest.length === 0) {
      throw new ChaosRefused("chaos_invalid", "there is no other site to part them from");
    }
    this.#ledger.cut(a, rest);
    const missing = await this.#put([...a, ...rest]);
    const links = a.length * rest.length;
    return {
      did: `no byte passes between ${a.join(", ")} and ${rest.join(", ")} (${links} ${
        plural(links, "link")
      } cut)`,
      undo: links === 1 ? `chaos heal ${a[0]} ${rest[0]}` : "chaos heal",
      missing,
    };
  }

  async #heal({ a, b }: Of<"heal">): Promise<Did> {
    if (a !== undefined && b !== undefined) this.#twoEnds(a, b);
    const healed = this.#ledger.heal(a === undefined || b === undefined ? undefined : [a, b]);
    // Sites that were told nothing are told as well: one of them may have missed it.
    const missing = await this.#put(
      a === undefined ? this.#cluster.sites.map((site) => site.id) : namesIn({ a, b }),
    );
    const what = a === undefined ? `${healed} ${plural(healed, "link")}` : `the link between ${a} and ${b}`;
    if (healed === 0) return { did: "no link was cut or delayed there", undo: "nothing to undo", missing };
    return {
      did: `${what} healed: as the topology says again`,
      undo: "chaos partition or delay, again",
      missing,
    };
  }

  async #delay(action: Of<"delay">): Promise<Did> {
    const { a, b, rttMs, jitterMs, loss, mbps } = action;
    this.#twoEnds(a, b);
    const base = this.#ledger.shapeOf([a, b]) ?? this.#site(a).links[b] ?? PLAIN;
    const shape: ChangedLink = {
      rttMs: rttMs ?? base.rttMs,
      mbps: mbps ?? base.mbps,
      jitterMs: jitterMs ?? base.jitterMs,
      loss: loss ?? base.loss,
    };
    this.#ledger.shape([a, b], shape);
    const missing = await this.#put([a, b]);
    return {
      did: `the link between ${a} and ${b} has ${shape.rttMs} ms round trip, ${shape.jitterMs} ms jitter, ` +
        `${shape.mbps} Mbit/s, loss ${shape.loss}`,
      undo: `chaos heal ${a} ${b}`,
      missing,
    };
  }

  #twoEnds(a: string, b: string): void {
    if (a === b) throw new ChaosRefused("chaos_invalid", `a link has two ends, not ${a} twice`);
  }

  // ── Clocks, disks, coverage ──

  async #skew({ site, ms }: Of<"skew">): Promise<Did> {
    this.#ledger.skew(site, ms);
    const missing = await this.#put([site]);
    if (ms === 0) return { did: `the clock of ${site} is right again`, undo: "nothing to undo", missing };
    const where = `${Math.abs(ms)} ms ${ms > 0 ? "ahead" : "behind"}`;
    return { did: `the clock of ${site} is ${where}`, undo: `chaos skew ${site} --ms 0`, missing };
  }

  async #disk({ site: id, state }: Of<"disk">): Promise<Did> {
    const site = this.#site(id);
    this.#ledger.disk(id, state);
    const missing = await this.#put([id]);
    if (state !== "ok") {
      const how = state === "full" ? "takes no more (every commit fails)" : "fails (commits and reads)";
      const then = "within a second the site stops acknowledging: 503 disk_failed";
      return { did: `the disk of ${id} ${how}; ${then}`, undo: `chaos disk ${id} ok`, missing };
    }
    if (!await hasFailed(site)) return { did: `the disk of ${id} works`, undo: "nothing to undo", missing };
    await this.#restart(site);
    return {
      did:
        `the disk of ${id} works, and the site starts again (pid ${site.process.pid}): a failed one stays so`,
      undo: "nothing to undo",
      missing,
    };
  }

  async #evict({ site: id, app, table }: Of<"evict">): Promise<Did> {
    const site = this.#site(id);
    if (site.process.pid === 0 || this.#paused.has(id)) {
      throw new ChaosRefused("chaos_invalid", `${id} ${this.#paused.has(id) ? "stands still" : "is down"}`);
    }
    const body = { ...app === undefined ? {} : { app }, ...table === undefined ? {} : { table } };
    const answer = await this.#ask(site, "POST", "/site/evict", body);
    const told = await answer.json() as { detail?: string; before?: number; after?: number };
    if (!answer.ok) throw new ChaosRefused("chaos_invalid", told.detail ?? `${id} answered ${answer.status}`);
    const what = app === undefined
      ? "everything that may go"
      : table === undefined
      ? app
      : `${app}'s ${table}`;
    return {
      did: `${id} gave ${what} back: it covers ${told.after} ranges, not ${told.before}`,
      undo: "nothing to undo: it fetches what is read again",
    };
  }

  // ── Telling sites ──

  #site(id: string): ClusterSite {
    const found = this.#cluster.site(id);
    if (found !== undefined) return found;
    const all = this.#cluster.sites.map((site) => site.id).join(", ");
    throw new ChaosRefused("chaos_invalid", `no site is called ${JSON.stringify(id)}; there are ${all}`);
  }

  /** Writes the faults of some sites, and tells them. Returns those that could not be told (X1). */
  async #put(ids: readonly string[]): Promise<string[]> {
    await Promise.all(ids.map((id) => this.#write(this.#site(id))));
    return await this.#tell(ids);
  }

  async #write(site: ClusterSite): Promise<void> {
    const file: ChaosFile = { door: this.#door, faults: this.#ledger.of(site.id) };
    (await replaceFile(Deno, site.chaosFile, JSON.stringify(file, null, 2) + "\n", { mode: 0o600 })).close();
  }

  /**
   * Tells some sites their faults. A site that is down has them from its file; one that stands still is told when it
   * runs on.
   */
  async #tell(ids: readonly string[]): Promise<string[]> {
    const told = await Promise.all(ids.map(async (id) => {
      const site = this.#site(id);
      const untilMs = performance.now() + TELL_MS_MAX;
      while (site.process.pid !== 0 && !this.#paused.has(id)) {
        try {
          const answer = await this.#ask(site, "PUT", "/site", this.#ledger.of(id));
          await answer.body?.cancel();
          if (answer.ok) return true;
        } catch {
          // It does not listen yet, or has just ended.
        }
        if (performance.now() > untilMs) return false;
        await new Promise((resolve) => setTimeout(resolve, TELL_AGAIN_MS));
      }
      return true;
    }));
    return ids.filter((_, i) => told[i] === false);
  }

  #ask(site: ClusterSite, method: string, path: string, body: object): Promise<Response> {
    return fetch(site.url + CHAOS_PATH + path, {
      method,
      headers: { authorization: `Bearer ${this.#door.token}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  }
}

/** Returns the sites that an action names. */
function namesIn(
  action: { site?: string; a?: string | string[] | undefined; b?: string | string[] | undefined },
): string[] {
  return [action.site ?? [], action.a ?? [], action.b ?? []].flat();
}

/** Reports whether a site says that its disk has failed. */
async function hasFailed(site: ClusterSite): Promise<boolean> {
  if (site.process.pid === 0) return false;
  try {
    const answer = await fetch(`${site.url}/_sojourn/readyz`, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    const told = await answer.json() as { code?: string };
    return told.code === "disk_failed";
  } catch {
    return false;
  }
}

const plural = (count: number, word: string): string => count === 1 ? word : `${word}s`;
