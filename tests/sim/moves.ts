/**
 * Sites that get another parent: because their operator wants it so, or because the one they had is lost for good.
 */
import type { Departures } from "./departures.ts";
import type { HistoryEvent } from "./history.ts";
import type { Probes } from "./probes.ts";
import type { Draws } from "./random.ts";
import type { SimSite } from "./site.ts";
import type { World } from "./world.ts";

/** What moves act upon. */
interface Surroundings {
  readonly world: World;
  readonly probes: Probes;
  readonly sites: readonly SimSite[];
  readonly record: (event: HistoryEvent) => void;
}

/** An operator who finds a site lost takes his time. */
const BEFORE_ADOPTION_MS: readonly [number, number] = [0, 800];

/** Moves sites. */
export class Moves {
  readonly #around: Surroundings;
  readonly #departures: Departures;
  readonly #draws: Draws;
  readonly #running: Promise<void>[] = [];

  constructor(around: Surroundings, departures: Departures, draws: Draws) {
    this.#around = around;
    this.#departures = departures;
    this.#draws = draws;
  }

  /** A site, and with it all that is below, gets another parent. */
  move(): void {
    const movable = this.#around.sites.filter((site) =>
      site.parent !== null && !this.#departures.isAway(site) && this.#parentsFor(site).length > 0 &&
      // One that has no number yet is refused elsewhere while the one that it may have been given lives.
      site.process?.ready === true
    );
    if (movable.length === 0) return;
    this.#moveTo(this.#draws.pick(movable));
  }

  /** An inner site is lost for good; its children are moved, in no order, and then it is taken off the tree. */
  adopt(): void {
    const { sites, probes } = this.#around;
    const lost = sites.filter((site) =>
      site.plan.tier === "core" && !this.#departures.isAway(site) && site.process !== null &&
      this.#childrenOf(site).length > 0
    );
    if (lost.length === 0) return;
    const parent = this.#draws.pick(lost);
    probes.count("lost for good");
    this.#departures.beginForGood(parent);
    // Those that had just left it, and whose new parent may ask it still.
    for (const site of this.#around.sites) {
      if (site.parent !== null && site.parent !== parent.plan.id) site.move(site.parent, this.#lost());
    }
    this.#running.push(this.#adopted(parent));
  }

  /** Resolves when all orphans have a parent again, and the lost site is off the tree. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #adopted(parent: SimSite): Promise<void> {
    const { world } = this.#around;
    for (let orphans = this.#childrenOf(parent); orphans.length > 0; orphans = this.#childrenOf(parent)) {
      await world.sleep(this.#draws.between(...BEFORE_ADOPTION_MS));
      const orphan = this.#draws.pick(orphans);
      if (orphan.parent === parent.plan.id) this.#moveTo(orphan);
    }
    await this.#departures.takeOff(parent);
  }

  #moveTo(site: SimSite): void {
    const { record, world, probes } = this.#around;
    const parents = this.#parentsFor(site);
    const to = this.#draws.pick(parents);
    record({
      kind: "fault",
      atMs: world.nowMs,
      text: `${site.plan.id} moves from ${site.parent} to ${to.plan.id}`,
    });
    probes.count(site.process === null ? "moved while down" : "moved");
    site.move(to.plan.id, this.#lost());
  }

  #lost(): string[] {
    return this.#around.sites.filter((site) => this.#departures.isGone(site)).map(({ plan }) => plan.id);
  }

  #childrenOf(parent: SimSite): SimSite[] {
    return this.#around.sites.filter((site) =>
      site.parent === parent.plan.id && !this.#departures.isGone(site)
    );
  }

  /** Inner sites that are there, and not below it. */
  #parentsFor(site: SimSite): SimSite[] {
    return this.#around.sites.filter((each) =>
      each.plan.tier !== "edge" && !this.#departures.isAway(each) && each.plan.id !== site.parent &&
      !this.#isBelow(each, site)
    );
  }

  #isBelow(site: SimSite, top: SimSite): boolean {
    const byId = new Map(this.#around.sites.map((each) => [each.plan.id, each]));
    for (let at: SimSite | undefined = site; at !== undefined; at = byId.get(at.parent ?? "")) {
      if (at === top) return true;
    }
    return false;
  }
}
