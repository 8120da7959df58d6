/**
 * Sites that are lost for good, or drained because nobody needs them: an operator takes them off the tree at the root,
 * and lets some in again with a blank disk.
 */
import type { HistoryEvent } from "./history.ts";
import type { Probes } from "./probes.ts";
import type { Draws } from "./random.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { SimSite } from "./site.ts";
import type { World } from "./world.ts";

/** What departures act upon. */
interface Surroundings {
  readonly world: World;
  readonly probes: Probes;
  readonly sites: readonly SimSite[];
  readonly record: (event: HistoryEvent) => void;
}

const BEFORE_REMOVAL_MS: readonly [number, number] = [0, 600];
const BEFORE_RETURN_MS: readonly [number, number] = [0, 600];
/** Between two tries of the operator, whose root may be down. */
const RETRY_MS = 50;

/** Removes sites, and brings some back. */
export class Departures {
  readonly #around: Surroundings;
  readonly #draws: Draws;
  readonly #away = new Set<SimSite>();
  readonly #gone = new Set<SimSite>();
  readonly #running: Promise<void>[] = [];

  constructor(around: Surroundings, draws: Draws) {
    this.#around = around;
    this.#draws = draws;
  }

  /** Whether a site is down for now or for ever: nothing else starts it. */
  isAway(site: SimSite): boolean {
    return this.#away.has(site);
  }

  /** Whether it is not to come back. */
  isGone(site: SimSite): boolean {
    return this.#gone.has(site);
  }

  /** A site goes up in smoke. */
  begin(site: SimSite): void {
    const returns = this.#draws.chance(0.5);
    this.#away.add(site);
    if (!returns) this.#gone.add(site);
    this.#running.push(this.#depart(site, returns));
  }

  /** A site is drained, and taken off the tree: nothing is lost with it. */
  retire(site: SimSite, graceMs: number): void {
    const returns = this.#draws.chance(0.5);
    this.#away.add(site);
    this.#running.push(this.#retire(site, graceMs, returns));
  }

  /** The same as at first, for a site that stays away; resolves when nobody is waited for any more on its account. */
  beginForGood(site: SimSite): void {
    this.#away.add(site);
    this.#gone.add(site);
    this.#say(`${site.plan.id} is lost for good`);
    site.wipe(true);
  }

  /** The operator takes a lost site off the tree as soon as the root lets him. */
  async takeOff(site: SimSite): Promise<void> {
    const { id } = site.plan;
    await this.#atRoot(async (members) => {
      const { kind } = await members.remove(id);
      return kind === "removed" || members.isRemoved(id);
    }, SETTLING_TRIES_MAX);
    this.#removed(id);
  }

  /** Resolves when everybody is removed, or back. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #depart(site: SimSite, returns: boolean): Promise<void> {
    this.#say(`${site.plan.id} is lost for good`);
    site.wipe(true);
    await this.#leaves(site, returns);
  }

  async #retire(site: SimSite, graceMs: number, returns: boolean): Promise<void> {
    const { id } = site.plan;
    this.#say(`${id} is drained for good`);
    if (await site.retire(graceMs)) {
      if (!returns) this.#gone.add(site);
      return await this.#leaves(site, returns);
    }
    this.#say(`${id} has something left`);
    this.#away.delete(site);
    if (site.process === null) await site.start();
  }

  /** The operator takes it off the tree, and lets it in again where it `returns`. */
  async #leaves(site: SimSite, returns: boolean): Promise<void> {
    const { world, probes } = this.#around;
    const { id } = site.plan;
    await world.sleep(this.#draws.between(...BEFORE_REMOVAL_MS));
    await this.#atRoot(async (members) => {
      const { kind } = await members.remove(id);
      return kind === "removed" || members.isRemoved(id);
    });
    probes.count(returns ? "removed: returns" : "removed");
    this.#removed(id);
    if (!returns) return;
    await world.sleep(this.#draws.between(...BEFORE_RETURN_MS));
    await this.#atRoot(async (members) => await members.admit(id) || !members.isRemoved(id));
    this.#say(`${id} is let in again`);
    this.#away.delete(site);
    await site.start();
  }

  /** Tries until it is done; a site that the root has never heard of needs no removal. */
  async #atRoot(
    act: (members: NonNullable<SimSite["process"]>["replica"]["members"]) => Promise<boolean>,
    triesMax = TRIES_MAX,
  ): Promise<void> {
    const { world, sites } = this.#around;
    const root = sites.find(({ plan }) => plan.parent === null);
    for (let tries = 0;; tries++) {
      const process = root?.process;
      if (process !== null && process !== undefined && process.ready) {
        // A root that dies meanwhile answers nothing.
        const done = await Promise.race([
          act(process.replica.members).catch(() => false),
          world.sleep(10 * RETRY_MS).then(() => false),
        ]);
        if (done || tries > triesMax) return;
      }
      await world.sleep(RETRY_MS);
    }
  }

  #removed(site: SiteId): void {
    this.#around.record({ kind: "removed", atMs: this.#around.world.nowMs, site });
  }

  #say(text: string): void {
    this.#around.record({ kind: "fault", atMs: this.#around.world.nowMs, text });
  }
}

/** A site that was lost before it had joined may still get a row from its parent within this. */
const TRIES_MAX = 60;
/** One whose children are still on their way to another parent is not let go of yet. */
const SETTLING_TRIES_MAX = 400;
