/**
 * Asks and replies between homes, keepers and the arbiter. Each ask has one answer; each may be repeated, and means the
 * same then. Bytes: packet.ts; rules: docs/protocol/homes.md.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Owner, RowState, StatefulName } from "./api.ts";
import type { Base, LogCopy, LogPiece } from "./log_copy.ts";
import type { StateMark } from "./state_parts.ts";

export type { Base, LogCopy, LogPiece, RowState };

/** Run of entries that were written in one epoch: those up to `upTo` that are not of an earlier segment. */
export interface EpochSegment {
  readonly epoch: number;
  readonly upTo: number;
}

/** State of a log at one keeper. */
export interface LogState {
  readonly base: { readonly at: number; readonly epoch: number; readonly state: StateMark };
  readonly segments: readonly EpochSegment[];
}

/** Fields of an ask about one log: its name, and the disk that is meant (0: whichever the site has). */
interface OfLog {
  readonly name: StatefulName;
  readonly disk: number;
  /** Epoch of the home that asks. */
  readonly epoch: number;
}

export type KeeperAsk =
  /** Say which disk you are. */
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
    /** Parts of the base's state after those that were uploaded for it. */
    readonly parts: readonly Uint8Array[];
  }
    & OfLog
  /** Your log is as mine up to the entry `keep`: cut the rest. */
  | { readonly kind: "align"; readonly turn: number; readonly keep: number } & OfLog
  | { readonly kind: "append"; readonly pieces: readonly LogPiece[] } & OfLog
  /** Give me what you have after an entry; `whole`: and the base, first. */
  | { readonly kind: "fetch"; readonly after: number; readonly whole: boolean } & OfLog
  /** Put a new base: its state is `kept`, which you have (or nothing), then what was uploaded for it, then `parts`. */
  | {
    readonly kind: "checkpoint";
    readonly base: Base;
    readonly kept: StateMark;
    readonly parts: readonly Uint8Array[];
  }
    & OfLog
  /** Take parts of the state of a base to come, at the entry `at`; the first of them is number `first`. */
  | {
    readonly kind: "upload";
    readonly at: number;
    readonly first: number;
    readonly parts: readonly Uint8Array[];
  }
    & OfLog
  /** Give me parts of the state of your base, which is at the entry `at`. */
  | { readonly kind: "parts"; readonly at: number; readonly first: number } & OfLog
  /** Forget the log: you are no owner any more of what you were made an owner of in this turn of the epoch. */
  | { readonly kind: "forget"; readonly turn: number } & OfLog
  /** Note that these owners are on record, as configuration `config`. */
  | { readonly kind: "recorded"; readonly config: number; readonly owners: readonly Owner[] } & OfLog;

export type ArbiterAsk =
  /** Let me be the home; `seen`: the epoch that I know of, 0 for none; `grant` tells this ask from any other. */
  | {
    readonly kind: "acquire";
    readonly name: StatefulName;
    readonly seen: number;
    readonly grant: number;
    readonly version: string;
  }
  /** Put these owners on record in place of configuration `config`. */
  | {
    readonly kind: "configure";
    readonly name: StatefulName;
    readonly epoch: number;
    readonly config: number;
    readonly owners: readonly Owner[];
  }
  /** Let another site take the session over. */
  | { readonly kind: "yield"; readonly name: StatefulName; readonly epoch: number; readonly to: SiteId }
  | { readonly kind: "end"; readonly name: StatefulName; readonly epoch: number }
  | { readonly kind: "look"; readonly name: StatefulName }
  /** Put these owners on record for what is born at my site. */
  | { readonly kind: "births"; readonly owners: readonly Owner[] };

/** Invitation to a site to take a session over: it is to open it. */
export type Invitation = { readonly kind: "invite"; readonly name: StatefulName };

/**
 * Asks of the arbiter to sites, with which it finds out whether it knows all that it knew (certainty.ts, rebuild.ts).
 */
export type RecallAsk =
  /** Say how far you have heard of me, when that is on your disk. */
  | { readonly kind: "witness" }
  /** Say what you know of this name. */
  | { readonly kind: "recall"; readonly name: StatefulName }
  /** List the names of which you know anything, in their order, after this one. */
  | { readonly kind: "names"; readonly after: StatefulName | null };

export type SiteAsk = KeeperAsk | ArbiterAsk | Invitation | RecallAsk;

export const REFUSALS = ["superseded", "unknown", "gap", "disk", "full", "parts"] as const;
export type AskRefusal = typeof REFUSALS[number];
export const OUTCOMES = ["granted", "refused", "unsure"] as const;

/** Head of a log at a site, as the site tells the arbiter. */
export interface KeptWord {
  readonly promised: number;
  readonly by: SiteId;
  /** Newest configuration that the site was told to be on record; 0: none. */
  readonly config: number;
  readonly owners: readonly Owner[];
  readonly version: string;
}

/** Account that a home gives of itself. */
export interface HomeWord {
  readonly epoch: number;
  readonly config: number;
  readonly owners: readonly Owner[];
  /** True while the home has asked for these owners, and goes by those before, too. */
  readonly isChanging: boolean;
}

export type Reply =
  /** Last entry on disk here; nothing after it is. */
  | { readonly kind: "held"; readonly through: number }
  /**
   * Promise that was asked for, and the log, null where there is none; `aligned`: it was made the home's in this epoch.
   */
  | {
    readonly kind: "promised";
    readonly disk: number;
    readonly aligned: boolean;
    readonly log: LogState | null;
  }
  /** Part of a log; with the base only where that was asked for, and as many parts of its state as fit. */
  | {
    readonly kind: "copy";
    readonly seed: Uint8Array;
    readonly version: string;
    readonly base: Base | null;
    readonly parts: readonly Uint8Array[];
    readonly pieces: readonly LogPiece[];
    readonly more: boolean;
  }
  /** Parts of the state that were asked for, as many as fit. */
  | { readonly kind: "parts"; readonly parts: readonly Uint8Array[] }
  /** Refusal; `epoch`: the one promised; `last`: the last entry that is here. */
  | { readonly kind: "refused"; readonly why: AskRefusal; readonly epoch: number; readonly last: number }
  | { readonly kind: "row"; readonly outcome: typeof OUTCOMES[number]; readonly row: RowState | null }
  | { readonly kind: "births"; readonly number: number }
  /** This site is no arbiter, or not ready: ask again. */
  | { readonly kind: "nobody" }
  /** The session's app has `max` stateful sessions, and may have no more. */
  | { readonly kind: "full"; readonly max: number }
  /** Highest position of the arbiter that this site has on this disk, and the last ones before it jumped (RE3). */
  | {
    readonly kind: "witness";
    readonly disk: number;
    readonly position: number;
    readonly jumps: readonly number[];
  }
  /**
   * Knowledge of a name at a site. `granted`: the epoch with which the session is being opened here; `ended`: that in
   * which it ended here; 0 where neither is so.
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

/**
 * Reports whether an ask is of the second form of packets, which a site of the version before does not know
 * (packet.ts).
 */
export const isOfSecondForm = (ask: SiteAsk): boolean =>
  RECALL_KINDS.has(ask.kind) || ask.kind === "recorded";

/** Returns the last entry of a log. */
export const lastOf = ({ base, segments }: LogState): number => segments.at(-1)?.upTo ?? base.at;
/** Returns the epoch that the last entry of a log was written in. */
export const lastEpochOf = ({ base, segments }: LogState): number => segments.at(-1)?.epoch ?? base.epoch;

/**
 * Returns the last entry up to which two logs are one: entries with one number and one epoch are the same, and so are
 * all before them (H4). Null where they are not known to share anything that both can still show.
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

/** Returns the epoch of an entry; null where the log does not show it any more, or not yet. */
function epochAt({ base, segments }: LogState, entry: number): number | null {
  if (entry < base.at) return null;
  if (entry === base.at) return base.epoch;
  return segments.find(({ upTo }) => entry <= upTo)?.epoch ?? null;
}
