/**
 * Homes broken on purpose, each in one rule. A variant wraps the production code from outside (its disks, its packets,
 * its host) and changes nothing in it.
 */
import { SITE_ANSWERS_BYTES_MAX } from "../../../functions/sessions/log/limits.ts";
import type { Owner } from "../../../functions/sessions/home/mod.ts";
import type { Base, KeeperAsk, Reply, RowState, SiteAsk } from "../../../functions/sessions/log/asks.ts";
import { decodeBase, encodeBase } from "../../../functions/sessions/log/kept_log.ts";
import {
  BOOT_MIN,
  decodeLogPacket,
  encodeLogPacket,
  type NumberedItem,
} from "../../../functions/sessions/log/packet.ts";
import { unpackKey } from "../../../store/model/key.ts";
import type { DiskCommit, SiteId, Storage } from "../../../store/model/ports.ts";
import type { Row } from "../../../store/model/row.ts";
import { guests } from "./broken_moves.ts";
import type { StatefulPlan } from "./simulation.ts";
import type { StatefulSite, Wrongs } from "./stateful_site.ts";

export interface Variant {
  readonly name: string;
  readonly wrongs: Wrongs;
  readonly change?: (plan: StatefulPlan) => StatefulPlan;
  readonly caughtBy: readonly string[];
  /** Where few seeds catch it: the first that is tried. */
  readonly first?: number;
  /** How many it may take from there on. */
  readonly seeds: number;
}

// ── Plans ──

/** Few sessions that change hands all the time. */
export const contested = (plan: StatefulPlan): StatefulPlan => ({
  ...plan,
  n: Math.max(plan.n, 3),
  f: Math.max(plan.f, 1),
  delaysMs: Array.from({ length: Math.max(plan.n, 3) }, (_, i) => [1, 5, 20][i % 3] ?? 1),
  sessions: 1,
  born: 0,
  clients: 5,
  requests: 25,
  safetyMs: 4_000,
  healMs: 10_000,
  answersBytesMax: SITE_ANSWERS_BYTES_MAX,
  crashes: 6,
  partitions: 4,
  wipes: 0,
  jumps: 0,
  slow: false,
  host: { ...plan.host, timerMs: 0 },
});

/** Two sites with slow disks: what one has and the other not, nobody else has either. */
export const pair = (plan: StatefulPlan): StatefulPlan => ({
  ...contested(plan),
  n: 2,
  f: 1,
  delaysMs: [1, 1],
  commitMs: [20, 100],
  crashes: 14,
  partitions: 14,
});

const moving = (plan: StatefulPlan): StatefulPlan => ({
  ...contested(plan),
  host: { checkpointEvery: 5, restChance: 0, moveChance: 0.3, timerMs: 0 },
});

// ── Wrappers ──

/** A disk that says it has written before it has. */
const hasty = (delayMs: number) => (storage: Storage, site: StatefulSite): Storage => {
  const { world } = site.options;
  let tail = Promise.resolve();
  return {
    ...methods(storage),
    commit: (commit) => {
      tail = tail.then(() => world.sleep(delayMs)).then(() => storage.commit(commit)).catch(() => {});
      return Promise.resolve();
    },
  };
};

/** A disk on which commits come out otherwise. */
const writing = (change: (commit: DiskCommit) => DiskCommit) => (storage: Storage): Storage => ({
  ...methods(storage),
  commit: (commit) => storage.commit(change(commit)),
});

export const methods = (storage: Storage): Storage => ({
  load: () => storage.load(),
  get: (key) => storage.get(key),
  getMany: (keys) => storage.getMany(keys),
  scan: (range, options) => storage.scan(range, options),
  journal: (after, upTo, limit) => storage.journal(after, upTo, limit),
  bytes: () => storage.bytes(),
  close: () => storage.close(),
  commit: (commit) => storage.commit(commit),
});

/** A base's row with something else in it. */
function rebased(value: Uint8Array, change: (base: Base) => Base): Uint8Array {
  const { base, parts } = decodeBase(value);
  return encodeBase(change(base), parts);
}

export const spaceOf = (row: { readonly key: Row["key"] }): unknown => unpackKey(row.key)[0];

/** Asks on their way out: each goes as it is returned; null is not sent. */
const asking = (
  change: (site: StatefulSite, to: SiteId, ask: SiteAsk) => SiteAsk | Reply | null,
): Wrongs => ({
  sends: (site, to, bytes) => {
    const packet = decodeLogPacket(bytes);
    const forged: NumberedItem<Reply>[] = [];
    const asks: NumberedItem<SiteAsk>[] = [];
    for (const { number, body } of packet.asks) {
      const made = change(site, to, body);
      if (made === null) continue;
      if (isReply(made)) forged.push({ number, body: made });
      else asks.push({ number, body: made });
    }
    if (forged.length > 0) {
      // Of a process that nothing was heard of yet any number will do.
      const boot = Math.max(packet.to, BOOT_MIN);
      const answer = encodeLogPacket({ boot, to: packet.boot, asks: [], replies: forged });
      site.options.world.after(1, () => site.receive(to, answer));
    }
    return asks.length === 0 && packet.replies.length === 0 && packet.asks.length > 0
      ? null
      : encodeLogPacket({ ...packet, asks });
  },
});

const REPLIES = new Set(["held", "promised", "copy", "refused", "row"]);
const isReply = (made: SiteAsk | Reply): made is Reply => REPLIES.has(made.kind);

/** Replies on their way out. */
const replying = (change: (reply: Reply) => Reply): Wrongs => ({
  sends: (_site, _to, bytes) => {
    const packet = decodeLogPacket(bytes);
    const replies = packet.replies.map(({ number, body }) => ({ number, body: change(body) }));
    return encodeLogPacket({ ...packet, replies });
  },
});

/** Asks on their way in, and whom they are from. */
export const taking = (
  change: (site: StatefulSite, from: SiteId, ask: KeeperAsk) => KeeperAsk | null,
): Wrongs => ({
  receives: (site, from, bytes) => {
    const packet = decodeLogPacket(bytes);
    const asks = packet.asks.flatMap(({ number, body }) => {
      const made = isOfLog(body) ? change(site, from, body) : body;
      return made === null ? [] : [{ number, body: made }];
    });
    return [from, encodeLogPacket({ ...packet, asks })];
  },
});

const OF_LOG = new Set([
  "promise",
  "install",
  "align",
  "append",
  "fetch",
  "checkpoint",
  "forget",
  "upload",
  "parts",
]);
const isOfLog = (ask: SiteAsk): ask is KeeperAsk => OF_LOG.has(ask.kind);

/** What a site's disk has of a log, by itself: synchronous, since it is asked in the middle of a packet. */
export const logOf = (site: StatefulSite, ask: SiteAsk) =>
  "name" in ask ? site.homes?.debugLog(ask.name) : undefined;

const isSuspect = (site: StatefulSite, to: SiteId): boolean =>
  ["suspected", "dead"].includes(site.standing(to));

/** The time in which a home goes on that should have been fenced. */
const LATE_MS = 300;

/**
 * A keeper tells and gives what it has, and is fenced when the other begins to write: what a home appends in between is
 * in no answer.
 */
function fencingLate(): Wrongs {
  const late = new Map<string, Uint8Array>();
  const redirected = new Map<
    number,
    { readonly to: SiteId; readonly number: number; readonly boot: number }
  >();
  let forged = 2 ** 40;
  const keyOf = (site: StatefulSite, from: SiteId, ask: SiteAsk) =>
    "name" in ask ? `${site.id} ${from} ${site.boot} ${ask.name.id}` : "";
  return {
    receives: (site, from, bytes) => {
      const packet = decodeLogPacket(bytes);
      const asks: NumberedItem<SiteAsk>[] = [];
      for (const { number, body } of packet.asks) {
        const log = logOf(site, body), key = keyOf(site, from, body);
        const by = log?.head.by ?? "", boot = site.peers.get(by)?.boot;
        if (body.kind === "promise" && log !== undefined && log.head.promised < body.epoch) {
          const { disk } = site.homes?.status() ?? { disk: 0 };
          const reply = { kind: "promised", disk, aligned: false, log: log.state } as const;
          site.answer(from, repliesOf(site, packet.boot, [{ number, body: reply }]));
          late.set(key, encodeLogPacket({ ...packet, asks: [{ number, body }], replies: [] }));
        } else if (
          body.kind === "fetch" && log !== undefined && late.has(key) && by !== site.id && boot !== undefined
        ) {
          redirected.set(++forged, { to: from, number, boot: packet.boot });
          const ask = { number: forged, body: { ...body, epoch: log.head.promised } };
          site.receive(by, encodeLogPacket({ boot, to: 0, asks: [ask], replies: [] }));
        } else {
          const fence = late.get(key);
          late.delete(key);
          if (fence === undefined) asks.push({ number, body });
          else {
            const rest = encodeLogPacket({ ...packet, asks: [{ number, body }], replies: [] });
            site.options.world.after(LATE_MS, () => {
              site.receive(from, fence);
              site.receive(from, rest);
            });
          }
        }
      }
      return [from, encodeLogPacket({ ...packet, asks })];
    },
    sends: (site, _to, bytes) => {
      const packet = decodeLogPacket(bytes);
      const replies = packet.replies.filter(({ number, body }) => {
        const other = redirected.get(number);
        if (other !== undefined) {
          site.answer(other.to, repliesOf(site, other.boot, [{ number: other.number, body }]));
        }
        return other === undefined;
      });
      return encodeLogPacket({ ...packet, replies });
    },
  };
}

const repliesOf = (site: StatefulSite, to: number, replies: readonly NumberedItem<Reply>[]): Uint8Array =>
  encodeLogPacket({ boot: site.boot, to, asks: [], replies });

/** What a site would do that trusts its own eyes: no arbiter gives it an epoch, or other owners. */
function adopting(): Wrongs {
  const adopted = new Set<string>();
  return asking((site, _to, ask) => {
    if (ask.kind !== "acquire" && ask.kind !== "configure") return ask;
    const head = site.homes?.debugLog(ask.name)?.head, key = `${site.id} ${site.boot} ${ask.name.id}`;
    const row = { site: site.id, version: "v1", ended: false, movesTo: "" };
    if (ask.kind === "configure") {
      if (!adopted.has(key)) return ask;
      return rowOf({ ...row, epoch: ask.epoch, config: ask.config + 1, owners: ask.owners });
    }
    if (head === undefined || head.by === site.id || !isSuspect(site, head.by)) return ask;
    adopted.add(key);
    const owners = [{ site: site.id, disk: site.homes?.status().disk ?? 0 }];
    return rowOf({ ...row, epoch: head.promised + 1, config: 1_000, owners });
  });
}

/** A site that was its home before it was restarted is so again, in the same epoch, with what its own disk has. */
function resuming(): Wrongs {
  const configs = new Map<string, { readonly own: readonly Owner[]; readonly config: number }>();
  return asking((site, _to, ask) => {
    const key = "name" in ask ? `${site.id} ${ask.name.id}` : "";
    if (ask.kind === "configure") {
      configs.set(key, { own: ask.owners.slice(0, 1), config: ask.config + 1 });
    }
    const known = configs.get(key);
    if (ask.kind !== "acquire" || ask.seen === 0 || known === undefined) return ask;
    const row = { site: site.id, epoch: ask.seen, config: known.config, owners: known.own };
    return rowOf({ ...row, version: "v1", ended: false, movesTo: "" });
  });
}

/** Half of the time nobody who opens a session hears of others but itself: what they have is found later. */
export const deaf = asking((site, _to, ask) =>
  ask.kind === "promise" && Math.floor(site.options.world.nowMs / 1_500) % 2 === 0 ? null : ask
);

const rowOf = (row: RowState): Reply => ({ kind: "row", outcome: "granted", row });

// ── Variants ──

export const VARIANTS: readonly Variant[] = [
  {
    name: "an output leaves before its commit is held",
    wrongs: { outputBeforeCommit: true },
    change: (plan) => ({ ...contested(plan), commitMs: [20, 60], crashes: 12 }),
    caughtBy: ["contradiction", "history"],
    seeds: 10,
  },
  {
    name: "a request that is asked again is run again",
    wrongs: { runsAgain: true },
    change: contested,
    caughtBy: ["once"],
    seeds: 10,
  },
  {
    name: "kept answers are forgotten at a recovery",
    wrongs: { forgetsAnswers: true },
    change: contested,
    caughtBy: ["once"],
    seeds: 10,
  },
  {
    name: "a request is said to be past that was never run",
    wrongs: { dismisses: true },
    change: contested,
    caughtBy: ["loss"],
    seeds: 5,
  },
  {
    name: "an answer goes with the next checkpoint, though nobody has received it",
    wrongs: { presumes: true },
    change: (plan) => ({
      ...contested(plan),
      jumps: 0,
      host: { ...plan.host, checkpointEvery: 1, timerMs: 0 },
    }),
    caughtBy: ["past"],
    seeds: 20,
  },
  {
    name: "a checkpoint leaves out the answers that nobody has received",
    wrongs: {
      storage: writing((commit) => ({
        ...commit,
        rows: commit.rows.map((row) =>
          spaceOf(row) !== "c" || row.value === null
            ? row
            : { ...row, value: rebased(row.value, (base) => ({ ...base, answers: new Uint8Array([0, 0]) })) }
        ),
      })),
    },
    change: (plan) => ({ ...contested(plan), host: { ...plan.host, checkpointEvery: 1, timerMs: 0 } }),
    caughtBy: ["once"],
    seeds: 20,
  },
  {
    name: "a checkpoint is of a state before the entry that it names",
    wrongs: { staleState: true },
    change: (plan) => ({ ...contested(plan), host: { ...plan.host, checkpointEvery: 3, timerMs: 0 } }),
    caughtBy: ["fault", "contradiction", "loss", "history"],
    seeds: 10,
  },
  {
    name: "the log is cut, and the checkpoint before stays",
    wrongs: {
      storage: writing((commit) => ({ ...commit, rows: commit.rows.filter((row) => spaceOf(row) !== "c") })),
    },
    change: (plan) => ({ ...contested(plan), host: { ...plan.host, checkpointEvery: 3, timerMs: 0 } }),
    caughtBy: ["fault", "contradiction", "loss", "history"],
    seeds: 10,
  },
  {
    name: "owners say what is held before it is on disk",
    wrongs: { storage: hasty(60) },
    change: contested,
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 20,
  },
  {
    name: "an owner says that it holds what it drops",
    first: 4,
    wrongs: asking((_site, _to, ask) =>
      ask.kind === "append"
        ? { kind: "held", through: Math.max(...ask.pieces.map(({ first, count }) => first + count - 1)) }
        : ask
    ),
    change: contested,
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 20,
  },
  {
    name: "the arbiter's grant is not durable: two recoveries of one epoch",
    wrongs: { arbiterStorage: hasty(150) },
    change: moving,
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 60,
  },
  {
    name: "the promise is not durable",
    first: 30,
    wrongs: {
      storage: writing((commit) => ({
        ...commit,
        rows: commit.rows.filter((row) => spaceOf(row) !== "h" || !isPromiseOnly(commit, row)),
      })),
    },
    change: moving,
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 100,
  },
  {
    name: "the log is told, and the promise comes later: the fence is not one step with the answer",
    first: 12,
    wrongs: fencingLate(),
    change: (plan) => ({ ...contested(plan), partitions: 12, crashes: 0, requests: 80 }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 100,
  },
  {
    name: "an owner that has promised a later epoch says held to a fenced home",
    first: 12,
    wrongs: replying((reply) =>
      reply.kind === "refused" && reply.why === "superseded" ? { kind: "held", through: 1_000_000 } : reply
    ),
    change: (plan) => ({ ...contested(plan), partitions: 8, crashes: 2 }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 100,
  },
  {
    name: "the shortest log wins",
    first: 12,
    wrongs: replying((reply) => {
      if (reply.kind === "copy") return { ...reply, pieces: reply.pieces.slice(0, -1), more: false };
      if (reply.kind !== "promised" || reply.log === null) return reply;
      const { base, segments } = reply.log;
      return { ...reply, log: { base, segments: segments.slice(0, -1) } };
    }),
    change: moving,
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 20,
  },
  {
    name: "a home drops an owner by itself",
    first: 10,
    wrongs: asking((site, _to, ask) =>
      ask.kind === "configure" && ask.config > 0
        ? rowOf({
          site: site.id,
          epoch: ask.epoch,
          config: ask.config + 1,
          owners: ask.owners,
          version: "v1",
          ended: false,
          movesTo: "",
        })
        : ask
    ),
    change: (plan) => ({ ...contested(plan), partitions: 8 }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once", "liveness"],
    seeds: 60,
  },
  {
    name: "an owner adopts by itself",
    first: 14,
    wrongs: adopting(),
    change: (plan) => ({ ...contested(plan), partitions: 8 }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 60,
  },
  {
    name: "a home that comes back goes on in its epoch",
    first: 12,
    wrongs: resuming(),
    change: pair,
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 100,
  },
  {
    name: "a home releases without an owner that it suspects",
    first: 27,
    wrongs: asking((site, to, ask) =>
      ask.kind === "append" && isSuspect(site, to)
        ? { kind: "held", through: Math.max(...ask.pieces.map(({ first, count }) => first + count - 1)) }
        : ask
    ),
    change: (plan) => ({ ...contested(plan), partitions: 16, mistakes: 0 }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 60,
  },
  {
    name: "what an earlier home had appended, and nobody else has, is not cut",
    first: 12,
    wrongs: {
      ...deaf,
      ...taking((site, _from, ask) =>
        ask.kind === "align" ? { ...ask, keep: logOf(site, ask)?.last ?? ask.keep } : ask
      ),
    },
    change: (plan) => ({
      ...pair(plan),
      host: { checkpointEvery: 1_000, restChance: 0, moveChance: 0.3, timerMs: 0 },
    }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 100,
  },
  {
    name: "the log that a site was given for a move counts as an owner's",
    wrongs: guests(),
    change: (plan) => ({
      ...contested(plan),
      ...{ safetyMs: 8_000, n: 4, f: 1, delaysMs: [1, 5, 20, 1], partitions: 4, crashes: 16, requests: 60 },
      host: { checkpointEvery: 1_000, restChance: 0, moveChance: 0.2, timerMs: 0 },
    }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once"],
    seeds: 60,
  },
  {
    name: "an owner is on record before it has the log",
    first: 7,
    wrongs: replying((reply) =>
      reply.kind === "held" && reply.through === 0 ? { kind: "held", through: 1_000_000 } : reply
    ),
    change: (plan) => ({ ...contested(plan), host: { ...plan.host, checkpointEvery: 1_000, timerMs: 0 } }),
    caughtBy: ["fault", "contradiction", "loss", "history", "once", "liveness"],
    seeds: 20,
  },
];

/** A head that changes while nothing of its log does. */
function isPromiseOnly(commit: DiskCommit, row: Row): boolean {
  const [, ...name] = unpackKey(row.key);
  const isOfName = (key: Row["key"]) => {
    const [space, ...rest] = unpackKey(key);
    return space !== "h" && rest.slice(0, 3).join() === name.join();
  };
  return !commit.rows.some(({ key }) => isOfName(key)) && !commit.drop.some(isOfName);
}
