/** What goes wrong between sites: cuts, links that stand still both ways or one way only, slow networks. */
import type { HistoryEvent } from "./history.ts";
import type { SimNetwork } from "./network.ts";
import type { Draws } from "./random.ts";
import type { Plan } from "./topology.ts";
import type { World } from "./world.ts";

/** What they act upon. */
interface Surroundings {
  readonly world: World;
  readonly network: SimNetwork;
  readonly plan: Plan;
  readonly record: (event: HistoryEvent) => void;
  /** Whether peace has come: no link is cut any more. */
  readonly isOver: () => boolean;
}

export const LINK_FAULTS = ["partition", "stall", "oneWay", "slowLinks"] as const;
export type LinkFault = typeof LINK_FAULTS[number];

const CUT_MS: readonly [number, number] = [5, 800];
const SLOW_FACTORS: readonly [number, number] = [3, 20];
/** A link that carries nothing one way ends in a cut in most cases: the transport gives up. */
const GIVES_UP_CHANCE = 0.7;

/** One of them befalls a link, mostly one of the tree, or all links. */
export function strikeLink(name: LinkFault, draws: Draws, around: Surroundings): void {
  const { plan, network, world, record, isOver } = around;
  const say = (text: string) => record({ kind: "fault", atMs: world.nowMs, text });
  const untilMs = world.nowMs + draws.between(...CUT_MS);
  if (name === "slowLinks") {
    const factor = draws.integer(...SLOW_FACTORS);
    say(`all links are ${factor} times slower until ${untilMs.toFixed(1)}`);
    network.slow(factor);
    return void world.at(untilMs, () => network.slow(1));
  }
  const one = draws.pick(plan.sites);
  const others = plan.sites.filter((other) => other !== one);
  if (others.length === 0) return;
  const other = draws.chance(0.8) && one.parent !== null ? one.parent : draws.pick(others).id;
  const [from, to] = draws.chance(0.5) ? [one.id, other] : [other, one.id];
  const between = `${from} and ${to} until ${untilMs.toFixed(1)}`;
  switch (name) {
    case "partition":
      say(`partition between ${between}`);
      return network.partition(from, to, untilMs);
    case "stall":
      say(`stall between ${between}`);
      network.stall(from, to, untilMs);
      return network.stall(to, from, untilMs);
    case "oneWay": {
      say(`nothing arrives from ${from} at ${to} until ${untilMs.toFixed(1)}`);
      network.stall(from, to, untilMs);
      // A link is made by messages in both directions.
      network.block(from, to, untilMs);
      if (!draws.chance(GIVES_UP_CHANCE)) return;
      const atMs = draws.between(world.nowMs, untilMs);
      return void world.at(atMs, () => {
        if (!isOver()) network.partition(from, to, untilMs);
      });
    }
  }
}
