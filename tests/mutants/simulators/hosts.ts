/** Hosts that hold the log of a session (tests/stateful/hosts_sim), and its hard plans. */
import { HARD_PLANS } from "../../stateful/hosts_sim/hard.ts";
import { type HostsOptions, simulateHosts } from "../../stateful/hosts_sim/simulation.ts";
import { firstOf, seeded, type Simulator } from "./simulator.ts";

type Change = NonNullable<HostsOptions["change"]>;

const hard = new Map<string, Change>(Object.entries(HARD_PLANS));

export const simulator: Simulator = seeded<Change>(
  { seeds: 40, hard, hardSeeds: 3 },
  async (seed, change) => {
    const { violations } = await simulateHosts(seed, { change: change ?? ((plan) => plan) });
    return firstOf(violations);
  },
);
