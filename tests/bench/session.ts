/** Stateful sessions (TARGETS; CESSNA, figures 2 to 6), in the executor alone and at real sites. */
import type { Bench, BenchContext } from "./bench.ts";
import type { TestCluster } from "../e2e/cluster.ts";
import type { BenchRecord } from "./record.ts";
import { durable } from "./session/durable.ts";
import { headers } from "./session/headers.ts";
import { many } from "./session/many.ts";
import { moves } from "./session/moves.ts";
import { openings } from "./session/openings.ts";
import { peers } from "./session/peers.ts";
import { lastLinesOf, startSites } from "./session/real_sites.ts";
import { recoveries } from "./session/recoveries.ts";
import { tracked } from "./session/tracked.ts";
import { turns } from "./session/turns.ts";

/** In this order. */
const CASES: Readonly<
  Record<string, (context: BenchContext, sites?: TestCluster) => Promise<BenchRecord[]>>
> = {
  turns,
  headers,
  moves,
  tracked,
  durable,
  recoveries,
  many,
  openings,
  peers,
};

/** The cases that `--cases a,b` names. @throws TypeError for others. */
function wanted({ args }: BenchContext): string[] {
  const [option = "", value = ""] = args;
  if (option === "") return Object.keys(CASES);
  const names = (option.startsWith("--cases=") ? option.slice("--cases=".length) : value).split(",");
  if (option.startsWith("--cases") && names.every((name) => Object.hasOwn(CASES, name))) return names;
  throw new TypeError(`session takes --cases with some of ${Object.keys(CASES)}, not ${args.join(" ")}`);
}

export const bench: Bench = {
  name: "session",
  summary:
    "stateful sessions: a message, its replay, checkpoints, recoveries, memory, and other counters beside",
  options: [`--cases ${Object.keys(CASES)}   some of its cases`],
  notMeasured: "clients on machines of their own; disks of several machines: all sites share one",
  byDefault: true,
  run: async (context) => {
    const records: BenchRecord[] = [];
    // A quick run measures nothing that a fresh cluster for each would change, nor how long a site that is lost takes
    // to be missed: so that none is, on a machine that stands still for a second.
    const patient = { SOJOURN_OWNERS_SUSPECTMS: "10000" };
    const sites = context.quick ? await startSites(1, context.folder, patient) : undefined;
    try {
      for (const name of wanted(context)) records.push(...await CASES[name]?.(context, sites) ?? []);
    } catch (error) {
      if (sites !== undefined) context.say(lastLinesOf(sites));
      throw error;
    } finally {
      await sites?.stop();
    }
    return records;
  },
};
