/**
 * Queues broken on purpose, each in one rule. A variant wraps the production code from outside (its tuples, its settings,
 * what is said between sites) and changes nothing in it.
 */
import type { MessageTuples } from "../../../functions/queues/broker.ts";
import { decodeNote, encodeNote } from "../../../functions/queues/note.ts";
import type { QueueSettings } from "../../../functions/queues/settings.ts";
import type { OutletWord, QueueWord, Verdict } from "../../../functions/queues/words.ts";
import type { Wrongs } from "./queue_site.ts";
import type { QueuePlan, QueuesPlan } from "./simulation.ts";

export interface Variant {
  readonly name: string;
  readonly wrongs: () => Wrongs;
  readonly change: (plan: QueuesPlan) => QueuesPlan;
  readonly caughtBy: readonly string[];
  /** How many seeds it may take. */
  readonly seeds: number;
}

/** Three sites with nothing between them that fails; consumers are at the first alone. */
const calm = (queue: Partial<QueuePlan> = {}, settings: Partial<QueueSettings> = {}) =>
(
  plan: QueuesPlan,
): QueuesPlan => ({
  ...plan,
  ...{ n: 3, f: 1, messages: 30, crashes: 0, wipes: 0, leaves: 0, partitions: 0, pauses: 0, lossChance: 0 },
  safetyMs: 4_000,
  commitMs: [0.1, 0.4],
  delaysMs: [1, 1, 5],
  queues: plan.queues.slice(0, 1).map((one) => ({
    ...one,
    ...{ consumers: [0], isPull: false, killChance: 0, failChance: 0, slowMs: 30 },
    ...queue,
    settings: { ...one.settings, f: 1, leaseMs: 2_500, maxAttempts: 3, perSecond: Infinity, ...settings },
  })),
});

/** Tuples of which a call is another one. */
const tuples = (change: (real: MessageTuples) => Partial<MessageTuples>): Wrongs => ({
  tuples: (real) => ({
    store: (fresh) => real.store(fresh),
    amend: (id, mark) => real.amend(id, mark),
    remove: (id) => real.remove(id),
    read: (id) => real.read(id),
    idAt: (slot) => real.idAt(slot),
    view: (id) => real.view(id),
    isKnown: (id) => real.isKnown(id),
    ...change(real),
  }),
});

const verdicts = (word: QueueWord, change: (verdict: Verdict) => Verdict | null): QueueWord =>
  word.kind !== "verdicts"
    ? word
    : { kind: "verdicts", verdicts: word.verdicts.flatMap((verdict) => change(verdict) ?? []) };

const isVerdicts = (word: QueueWord): word is Extract<OutletWord, { readonly kind: "verdicts" }> =>
  word.kind === "verdicts";

export const VARIANTS: readonly Variant[] = [
  {
    name: "a batch that comes again is taken again",
    wrongs: () => {
      let times = 0;
      return {
        receives: (words) =>
          words.map((word) =>
            word.kind === "batch" ? { ...word, number: word.number + ++times * 10_000 } : word
          ),
      };
    },
    change: calm(),
    caughtBy: ["doubled", "together"],
    seeds: 4,
  },
  {
    name: "an outlet counts what it was told as done before an owner has heard of it",
    wrongs: () => ({
      sends: (words, answer) => {
        for (const { verdicts } of words.filter(isVerdicts)) {
          const done = verdicts.filter(({ kind }) => kind === "ack");
          answer([{ kind: "settled", results: done.map(({ number }) => ({ number, result: "done" })) }]);
        }
        return words.map((word) => verdicts(word, (verdict) => verdict.kind === "ack" ? null : verdict));
      },
    }),
    change: calm(),
    caughtBy: ["doubled", "liveness"],
    seeds: 4,
  },
  {
    name: "what is to come again counts as done",
    wrongs: () => ({
      receives: (words) =>
        words.map((word) =>
          verdicts(word, (verdict) => verdict.kind === "retry" ? { ...verdict, kind: "ack" } : verdict)
        ),
    }),
    change: calm({ failChance: 0.6 }),
    caughtBy: ["conservation"],
    seeds: 4,
  },
  {
    name: "a delay is cut short",
    wrongs: () =>
      tuples((real) => ({ store: (fresh) => real.store({ ...fresh, dueMs: (fresh.dueMs ?? 0) - 400 }) })),
    change: calm(),
    caughtBy: ["early"],
    seeds: 4,
  },
  {
    name: "attempts are not written down",
    wrongs: () =>
      tuples((real) => ({
        amend: (id, mark) => decodeNote(mark.note).death === null ? Promise.resolve() : real.amend(id, mark),
      })),
    change: calm({ failChance: 0.6 }),
    caughtBy: ["attempts", "liveness"],
    seeds: 6,
  },
  {
    name: "what expires is said to have been tried too often",
    wrongs: () =>
      tuples((real) => ({
        amend: (id, mark) => {
          const note = decodeNote(mark.note), { death } = note;
          if (death?.cause !== "expired") return real.amend(id, mark);
          return real.amend(id, {
            ...mark,
            note: encodeNote({ ...note, death: { ...death, cause: "attempts" } }),
          });
        },
      })),
    change: calm({ slowMs: 800 }, { concurrency: 1, batchMax: 1 }),
    caughtBy: ["attempts"],
    seeds: 6,
  },
  {
    name: "a message is given up one attempt too soon",
    wrongs: () => ({ settings: (plain) => ({ ...plain, maxAttempts: plain.maxAttempts - 1 }) }),
    change: calm({ failChance: 0.6 }),
    caughtBy: ["attempts"],
    seeds: 6,
  },
  {
    name: "a rate is not kept",
    wrongs: () => ({ settings: (plain) => ({ ...plain, perSecond: Infinity }) }),
    change: calm({}, { perSecond: 3 }),
    caughtBy: ["rate"],
    seeds: 4,
  },
  {
    name: "handlers are given more at once than their queue says",
    wrongs: () => ({ settings: (plain) => ({ ...plain, concurrency: 3 * plain.concurrency }) }),
    change: calm({ slowMs: 800 }, { concurrency: 1, batchMax: 1 }),
    caughtBy: ["batches"],
    seeds: 4,
  },
  {
    name: "a lease does not end",
    wrongs: () => ({ settings: (plain) => ({ ...plain, leaseMs: 36_000_000 }) }),
    change: calm({ failChance: 0.6, isPull: true }),
    caughtBy: ["liveness"],
    seeds: 4,
  },
  {
    name: "what another site had is not given out",
    wrongs: () => ({
      user: (user) => ({
        mine: (tuple) => tuple.how === "adopted" ? undefined : user.mine(tuple),
        lost: (slot, id) => user.lost(slot, id),
      }),
    }),
    change: (plan) => ({ ...calm({ slowMs: 800 }, { concurrency: 1 })(plan), crashes: 4 }),
    caughtBy: ["conservation", "liveness"],
    seeds: 8,
  },
];
