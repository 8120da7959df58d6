/**
 * What homes, keepers and the arbiter say to each other. Each ask has one answer; each may be asked again, and means the
 * same then. Bytes: packet.ts; rules: docs/protocol/homes.md.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Owner, StatefulName } from "./api.ts";
import type { Base, LogCopy, LogPiece } from "./log_copy.ts";
import type { StateMark } from "./state_parts.ts";

export type { Base, LogCopy, LogPiece };

/** Entries up to `upTo` that are not of an earlier segment were written in one epoch. */
export interface EpochSegment {
  readonly epoch: number;
  readonly upTo: number;
}

/** What one keeper has of a log. */
export interface LogState {
  readonly base: { readonly at: number; readonly epoch: number; readonly state: StateMark };
  readonly segments: readonly EpochSegment[];
}

/** Asks about one log, at the disk that is meant (0: whichever the site has). */
interface OfLog {
  readonly name: StatefulName;
  readonly disk: number;
  /** Of the home that asks. */
  readonly epoch: number;
}

export type KeeperAsk =
  /** Which disk are you? */
  | { readonly kind: "greet" }
  /** Take nothing of an earlier epoch any more, and say what you have. */
  | { readonly kind: "promise" } & OfLog
  /** Begin the log anew: with a base, or blank. */
  | {
    readonly kind: "install";
    readonly turn: number;
    readonly seed: Uint8Array;
    readonly version: string;
    readonly base: Base | null;
    /** Of its state, those after what was uploaded for it. */
    readonly parts: readonly Uint8Array[];
  }
    & OfLog
  /** Up to the entry `keep` your log is as mine: cut the rest. */
  | { readonly kind: "align"; readonly turn: number; readonly keep: number } & OfLog
  | { readonly kind: "append"; readonly pieces: readonly LogPiece[] } & OfLog
  /** Give me what you have after an entry; `whole`: and the base, first. */
  | { readonly kind: "fetch"; readonly after: number; readonly whole: boolean } & OfLog
  /** Its state is `kept`, which you have, or nothing; what was uploaded for it; and `parts`. */
  | {
    readonly kind: "checkpoint";
    readonly base: Base;
    readonly kept: StateMark;
    readonly parts: readonly Uint8Array[];
  }
    & OfLog
  /** Parts of the state of a base that will come, at the entry `at`; the first of them is number `first`. */
  | {
    readonly kind: "upload";
    readonly at: number;
    readonly first: number;
    readonly parts: readonly Uint8Array[];
  }
    & OfLog
  /** Give me parts of the state of your base, which is at the entry `at`. */
  | { readonly kind: "parts"; readonly at: number; readonly first: number } & OfLog
  /** You are no owner any more of what you were made one of in this turn of the epoch. */
  | { readonly kind: "forget"; readonly turn: number } & OfLog
  /** These owners are on record, as configuration `config`. */
  | { readonly kind: "recorded"; readonly config: number; readonly owners: readonly Owner[] } & OfLog;

export type ArbiterAsk =
  /** Let me be its home; `seen`: the epoch that I know of, 0 for none; `grant` tells this asking from any other. */
  | {
    readonly kind: "acquire";
    readonly name: StatefulName;
    readonly seen: number;
    readonly grant: number;
    readonly version: string;
  }
  /** These are the owners now, after configuration `config`. */
  | {
    readonly kind: "configure";
    readonly name: StatefulName;
    readonly epoch: number;
    readonly config: number;
    readonly owners: readonly Owner[];
  }
  /** Another site may take it. */
  | { readonly kind: "yield"; readonly name: StatefulName; readonly epoch: number; readonly to: SiteId }
  | { readonly kind: "end"; readonly name: StatefulName; readonly epoch: number }
  | { readonly kind: "look"; readonly name: StatefulName }
  /** What is born at my site has these owners. */
  | { readonly kind: "births"; readonly owners: readonly Owner[] };

/** Your site is to take it over: open it. */
export type Invitation = { readonly kind: "invite"; readonly name: StatefulName };

/** What the arbiter asks sites to find out whether it knows all that it knew (certainty.ts, rebuild.ts). */
export type RecallAsk =
  /** How far have you heard of me? Answered when that is on disk. */
  | { readonly kind: "witness" }
  /** What do you know of this name? */
  | { readonly kind: "recall"; readonly name: StatefulName }
  /** Of which names do you know anything, in their order, after this one? */
  | { readonly kind: "names"; readonly after: StatefulName | null };

export type SiteAsk = KeeperAsk | ArbiterAsk | Invitation | RecallAsk;

export const REFUSALS = ["superseded", "unknown", "gap", "disk", "full", "parts"] as const;
export type AskRefusal = typeof REFUSALS[number];
export const OUTCOMES = ["granted", "refused", "unsure"] as const;

/** What the arbiter knows of a name. */
export interface RowState {
  readonly site: SiteId;
  readonly epoch: number;
  readonly config: number;
  readonly owners: readonly Owner[];
  readonly version: string;
  readonly ended: boolean;
  readonly movesTo: SiteId;
}

/** What a site has of a log, as it tells the arbiter. */
export interface KeptWord {
  readonly promised: number;
  readonly by: SiteId;
  /** The newest configuration that it was told to be on record; 0: none. */
  readonly config: number;
  readonly owners: readonly Owner[];
  readonly version: string;
}

/** What a home says of itself. */
export interface HomeWord {
  readonly epoch: number;
  readonly config: number;
  readonly owners: readonly Owner[];
  /** It has asked for these owners, and goes by those before, too. */
  readonly isChanging: boolean;
}

export type Reply =
  /** On disk up to this entry, and nothing after it. */
  | { readonly kind: "held"; readonly through: number }
  /** `log` is null where there is none; `aligned`: in the epoch of who asks. */
  | {
    readonly kind: "promised";
    readonly disk: number;
    readonly aligned: boolean;
    readonly log: LogState | null;
  }
  /** Part of a log; the base only where it was asked for, with as many parts of its state as fit. */
  | {
    readonly kind: "copy";
    readonly seed: Uint8Array;
    readonly version: string;
    readonly base: Base | null;
    readonly parts: readonly Uint8Array[];
    readonly pieces: readonly LogPiece[];
    readonly more: boolean;
  }
  /** Those asked for, as many as fit. */
  | { readonly kind: "parts"; readonly parts: readonly Uint8Array[] }
  /** `epoch`: the one promised; `last`: the last entry that is here. */
  | { readonly kind: "refused"; readonly why: AskRefusal; readonly epoch: number; readonly last: number }
  | { readonly kind: "row"; readonly outcome: typeof OUTCOMES[number]; readonly row: RowState | null }
  | { readonly kind: "births"; readonly number: number }
  /** This site is no arbiter, or not ready: ask again. */
  | { readonly kind: "nobody" }
  /** Its app has `max` stateful sessions, and may have no more. */
  | { readonly kind: "full"; readonly max: number }
  /** The highest position of the arbiter that this site has on this disk, and the last ones before it jumped (RE3). */
  | {
    readonly kind: "witness";
    readonly disk: number;
    readonly position: number;
    readonly jumps: readonly number[];
  }
  /**
   * `granted`: the epoch with which it is being opened here, `ended`: that in which it ended here; 0: it is not, it did
   * not.
   */
  | {
    readonly kind: "recalled";
    readonly disk: number;
    readonly log: KeptWord | null;
    readonly home: HomeWord | null;
    readonly granted: number;
    readonly ended: number;
  }
  | { readonly kind: "names"; readonly names: readonly StatefulName[]; readonly more: boolean }
  /** The arbiter does not know yet whether it knows all that it knew: these sites have not told it. Ask again. */
  | { readonly kind: "waits"; readonly sites: readonly SiteId[] };

const ARBITER_KINDS: ReadonlySet<string> = new Set([
  "acquire",
  "configure",
  "yield",
  "end",
  "look",
  "births",
]);
export const isForArbiter = (ask: SiteAsk): ask is ArbiterAsk => ARBITER_KINDS.has(ask.kind);

const RECALL_KINDS: ReadonlySet<string> = new Set(["witness", "recall", "names"]);
export const isRecall = (ask: SiteAsk): ask is RecallAsk => RECALL_KINDS.has(ask.kind);

/** Asks of the second form of packets: a site of the version before does not know them (packet.ts). */
export const isOfSecondForm = (ask: SiteAsk): boolean =>
  RECALL_KINDS.has(ask.kind) || ask.kind === "recorded";

/** The last entry of a log. */
export const lastOf = ({ base, segments }: LogState): number => segments.at(-1)?.upTo ?? base.at;
/** The epoch that the last entry was written in. */
export const lastEpochOf = ({ base, segments }: LogState): number => segments.at(-1)?.epoch ?? base.epoch;

/**
 * The last entry up to which two logs are one: entries with one number and one epoch are the same, and so are all
 * before them (H4). null: not known to share anything that both can still show.
 */
export function commonUpTo(a: LogState, b: LogState): number | null {
  const ends = (log: LogState) => [{ epoch: log.base.epoch, upTo: log.base.at }, ...log.segments];
  let common: number | null = null;
  for (const x of ends(a)) {
    for (const y of ends(b)) {
      if (x.epoch !== y.epoch) continue;
      const upTo = Math.min(x.upTo, y.upTo);
      if (epochAt(a, upTo) === x.epoch && epochAt(b, upTo) === x.epoch) common = Math.max(common ?? 0, upTo);
    }
  }
  return common;
}

/** The epoch of an entry; null where the log does not show it any more, or not yet. */
function epochAt({ base, segments }: LogState, entry: number): number | null {
  if (entry < base.at) return null;
  if (entry === base.at) return base.epoch;
  return segments.find(({ upTo }) => entry <= upTo)?.epoch ?? null;
}
