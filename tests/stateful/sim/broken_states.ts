/** Keepers broken on purpose in what they do with the parts of a state (functions/sessions/log/state_parts.ts). */
import { markAfter, stateMarkOf } from "../../../functions/sessions/log/state_parts.ts";
import type { Storage } from "../../../store/model/ports.ts";
import { contested, logOf, methods, spaceOf, taking, type Variant } from "./broken.ts";
import type { StatefulPlan } from "./simulation.ts";
import type { StatefulSite } from "./stateful_site.ts";

/** Checkpoints all the time, in packets of one part, and a home that changes: to an owner, half of the time. */
const saving = (plan: StatefulPlan): StatefulPlan => ({
  ...contested(plan),
  batchBytes: 40,
  host: { checkpointEvery: 3, restChance: 0, moveChance: 0.2, timerMs: 0 },
});

/** One owner: what its disk has not, nobody has. */
const alone = (plan: StatefulPlan): StatefulPlan => ({
  ...saving(plan),
  f: 0,
  crashes: 20,
  partitions: 0,
  host: { checkpointEvery: 2, restChance: 0, moveChance: 0, timerMs: 0 },
});

/** What doubles each time is bounded. */
const GROWN_MAX = 100;
const WRONG = ["fault", "contradiction", "loss", "history", "once", "liveness"];

/** A disk on which one step of the site is two, with time between them. */
const split =
  (first: (space: unknown) => boolean, lateMs: number) => (storage: Storage, site: StatefulSite) => ({
    ...methods(storage),
    commit: async (commit: Parameters<Storage["commit"]>[0]) => {
      const isFirst = (key: Parameters<typeof spaceOf>[0]["key"]) => first(spaceOf({ key }));
      if (!commit.rows.some((row) => spaceOf(row) === "c")) return await storage.commit(commit);
      await storage.commit({
        rows: commit.rows.filter(({ key }) => isFirst(key)),
        drop: commit.drop.filter(isFirst),
        records: new Map(),
      });
      await site.options.world.sleep(lateMs);
      await storage.commit({
        rows: commit.rows.filter(({ key }) => !isFirst(key)),
        drop: commit.drop.filter((key) => !isFirst(key)),
        records: commit.records,
      });
    },
  });

export const STATE_VARIANTS: readonly Variant[] = [
  {
    name: "an increment is put behind whatever state an owner has",
    wrongs: taking((site, _from, ask) => {
      const log = logOf(site, ask);
      if (ask.kind !== "checkpoint" || log === undefined || log.base === null) return ask;
      const kept = stateMarkOf(log.parts.marks);
      if (ask.kept.count > 0 || kept.count === 0 || log.upload !== null) return ask;
      const parts = ask.parts.slice(kept.count);
      return { ...ask, kept, parts, base: { ...ask.base, state: markAfter(kept, parts) } };
    }),
    change: (plan) => ({ ...saving(plan), batchBytes: 1 << 20 }),
    caughtBy: WRONG,
    seeds: 40,
  },
  {
    name: "a whole state is put behind the one before",
    wrongs: taking((site, _from, ask) => {
      const log = logOf(site, ask);
      if (ask.kind !== "checkpoint" || log === undefined || log.upload !== null) return ask;
      const kept = stateMarkOf(log.parts.marks);
      if (ask.kept.count > 0 || kept.count > GROWN_MAX) return ask;
      return { ...ask, kept, base: { ...ask.base, state: markAfter(kept, ask.parts) } };
    }),
    change: (plan) => ({ ...saving(plan), batchBytes: 1 << 20 }),
    caughtBy: WRONG,
    seeds: 20,
  },
  {
    name: "the parts of the base before are dropped before the next one is durable",
    wrongs: { storage: split((space) => space === "s", 80) },
    change: alone,
    caughtBy: WRONG,
    seeds: 40,
  },
  {
    name: "a base is durable before the parts that it names, and the log that it stands for gone",
    wrongs: { storage: split((space) => space !== "s", 80) },
    change: alone,
    caughtBy: WRONG,
    seeds: 40,
  },
];
