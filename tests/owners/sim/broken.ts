/**
 * Owners groups broken on purpose, each in one rule. A variant wraps the production code from outside (its disk, its
 * packets, whom it knows) and changes nothing in it.
 */
import { decodeTuplePacket, encodeTuplePacket, type Entry } from "../../../store/owners/packet.ts";
import type { Fellows } from "../../../store/owners/tuples.ts";
import type { Storage } from "../../../store/model/ports.ts";
import type { World } from "../../sim/world.ts";
import type { Wrongs } from "./owner_site.ts";
import type { OwnersPlan } from "./simulation.ts";

export interface Variant {
  readonly name: string;
  readonly wrongs: Wrongs;
  readonly change: (plan: OwnersPlan) => OwnersPlan;
  readonly caughtBy: readonly string[];
  /** Where few seeds catch it, or those that do run long: the first that is tried. */
  readonly first?: number;
  /** How many it may take. */
  readonly seeds: number;
}

/** Crashes only: nobody who lives is taken for dead, so that nothing excuses a duplicate. */
const crashing = (plan: OwnersPlan): OwnersPlan => ({
  ...plan,
  n: Math.max(plan.n, 3),
  delaysMs: Array.from({ length: Math.max(plan.n, 3) }, () => 1),
  crashes: 6,
  wipes: 0,
  partitions: 0,
  slow: false,
  lossChance: 0,
  fLeast: plan.f,
  fLater: plan.f,
  leaves: 0,
  tries: 0,
  payloadBytes: 20,
  commitMs: [0.1, 0.4],
  thinkMs: [200, 2_000],
});

/** Entries of what comes in, changed. */
const incoming = (change: (site: string, entries: readonly Entry[]) => readonly Entry[]): Wrongs => ({
  receives: (site, _from, bytes) => {
    const packet = decodeTuplePacket(bytes);
    return encodeTuplePacket({ ...packet, entries: change(site, packet.entries) });
  },
});

const passing = (storage: Storage): Storage => ({
  load: () => storage.load(),
  get: (key) => storage.get(key),
  getMany: (keys) => storage.getMany(keys),
  scan: (range, options) => storage.scan(range, options),
  journal: (after, upTo, limit) => storage.journal(after, upTo, limit),
  bytes: () => storage.bytes(),
  close: () => storage.close(),
  commit: (commit) => storage.commit(commit),
});

/** A disk that says it has written before it has. */
function hasty(storage: Storage, world: World): Storage {
  let tail = Promise.resolve();
  return {
    ...passing(storage),
    commit: (commit) => {
      tail = tail.then(() => world.sleep(20)).then(() => storage.commit(commit)).catch(() => {});
      return Promise.resolve();
    },
  };
}

/** A disk that keeps no records: nobody remembers what was said as the site stopped. */
const forgetful = (storage: Storage): Storage => ({
  ...passing(storage),
  commit: (commit) => storage.commit({ ...commit, records: new Map() }),
});

const knows = (change: (fellows: Fellows) => Partial<Fellows>): Wrongs => ({
  fellows: (fellows) => ({
    ...fellows,
    ...change(fellows),
  }),
});

export const VARIANTS: readonly Variant[] = [
  {
    name: "an owner gives its receipt before its disk has the tuple",
    wrongs: { storage: hasty },
    change: (plan) => ({ ...plan, fLater: plan.f }),
    caughtBy: ["copies", "conservation"],
    seeds: 5,
  },
  {
    name: "an owner gives its receipt and drops the tuple",
    wrongs: incoming((_, entries) => entries.filter(({ content }) => content === null)),
    change: (plan) => ({ ...plan, fLater: plan.f }),
    caughtBy: ["copies"],
    seeds: 5,
  },
  {
    name: "nobody hears of an adoption",
    wrongs: incoming((_, entries) =>
      entries.filter(({ content, mark, version }) => mark === null || content !== null || version === 1)
    ),
    change: crashing,
    caughtBy: ["duplicates", "owners", "leftovers"],
    seeds: 30,
  },
  {
    name: "a site that returns acts before it has heard the others",
    first: 21,
    wrongs: {
      sends: (site, _to, bytes, answer) => {
        const packet = decodeTuplePacket(bytes);
        if (packet.greeting !== 0) {
          // As if the other had nothing to say.
          answer(encodeTuplePacket({
            boot: packet.to,
            to: packet.boot,
            seq: 0,
            greeting: 0,
            list: packet.greeting,
            part: packet.greeting === 0 ? 0 : 1,
            isListEnd: true,
            receipts: [],
            missing: [],
            entries: [],
            forget: [],
          }));
        }
        void site;
        return bytes;
      },
    },
    // What the others have to say is on its way for longer than it takes to act.
    change: (plan) => {
      const crashes = crashing(plan);
      return { ...crashes, delaysMs: crashes.delaysMs.map(() => 20), thinkMs: [0, 100] };
    },
    caughtBy: ["duplicates"],
    seeds: 60,
  },
  {
    name: "what has not been heard of yet counts as suspected",
    first: 3,
    wrongs: knows((fellows) => ({
      standing: (site) => fellows.standing(site) === "unknown" ? "suspected" : fellows.standing(site),
    })),
    change: crashing,
    caughtBy: ["duplicates"],
    seeds: 60,
  },
  {
    name: "the same, where others were taken for dead before",
    wrongs: knows((fellows) => ({
      standing: (site) => fellows.standing(site) === "unknown" ? "suspected" : fellows.standing(site),
    })),
    change: (plan) => ({
      ...crashing(plan),
      n: 6,
      delaysMs: [1, 1, 1, 1, 1, 1],
      crashes: 20,
      partitions: 6,
      namedChance: 0,
      safetyMs: 20_000,
    }),
    caughtBy: ["duplicates"],
    first: 49,
    seeds: 30,
  },
  {
    name: "one owner forgets what is gone",
    wrongs: incoming((site, entries) =>
      site === "s1" ? entries.filter(({ mark }) => mark !== null) : entries
    ),
    change: crashing,
    caughtBy: ["leftovers", "duplicates"],
    seeds: 10,
  },
  {
    name: "a suspected site is chosen",
    wrongs: knows((fellows) => ({
      choose: (f, kept, without) => {
        const { owners, missing } = fellows.choose(f, kept, without);
        const others = ["s0", "s1", "s2", "s3"].filter((site) => !owners.includes(site));
        return { owners: [...owners, ...others.slice(0, missing)], missing: 0 };
      },
    })),
    change: (plan) => ({ ...crashing(plan), n: 4, f: 3, fLeast: 3, fLater: 3 }),
    caughtBy: ["choice"],
    seeds: 10,
  },
  {
    name: "a site that lost its disk is taken for the one it was",
    wrongs: {
      sends: (_, __, bytes) => {
        const packet = decodeTuplePacket(bytes);
        return encodeTuplePacket({ ...packet, boot: 7 });
      },
      receives: (_, __, bytes) => {
        const packet = decodeTuplePacket(bytes);
        return encodeTuplePacket({ ...packet, to: packet.to });
      },
    },
    change: (plan) => ({ ...crashing(plan), crashes: 0, wipes: 1, thinkMs: [1_000, 4_000] }),
    caughtBy: ["owners", "leftovers", "conservation", "copies"],
    seeds: 20,
  },
  {
    name: "a site that was away for longer than it had said acts at once",
    first: 13,
    wrongs: { storage: forgetful },
    change: (plan) => ({
      ...plan,
      n: Math.max(plan.n, 3),
      leaves: 6,
      partitions: 6,
      wipes: 0,
      thinkMs: [200, 2_000],
    }),
    caughtBy: ["returns"],
    seeds: 30,
  },
  {
    name: "nobody waits for a site that will be back",
    wrongs: knows(() => ({ awaitedUntilMs: () => null })),
    change: (plan) => ({ ...plan, leaves: 6, thinkMs: [200, 2_000] }),
    caughtBy: ["patience"],
    seeds: 10,
  },
  {
    name: "a site that said when it will be back is taken for dead before that",
    wrongs: { detectorAheadMs: 3_600_000 },
    change: (plan) => ({ ...plan, leaves: 6 }),
    caughtBy: ["patience"],
    seeds: 10,
  },
  {
    name: "a site that has said that it stops goes on adopting",
    wrongs: { adoptsToTheEnd: true },
    change: (plan) => ({ ...plan, tuples: 35, tuplesMax: Infinity }),
    caughtBy: ["patience"],
    first: 99403138,
    seeds: 1,
  },
  {
    name: "owners are not told of marks",
    first: 7,
    wrongs: incoming((_, entries) =>
      entries.filter(({ mark, content, version }) => mark === null || content !== null || version === 1)
    ),
    change: (plan) => ({ ...crashing(plan), crashes: 1, tries: 2 }),
    caughtBy: ["owners"],
    seeds: 10,
  },
  {
    name: "ids are forgotten as soon as their tuples are gone",
    wrongs: { aheadMs: 3_600_000 },
    change: (plan) => ({ ...crashing(plan), crashes: 0, namedChance: 1, thinkMs: [0, 5] }),
    caughtBy: ["duplicates"],
    seeds: 10,
  },
];
