/** What the homes of a site need of it, and what they say of themselves. */
import type { Choice } from "../../../store/presence/choose.ts";
import type { Standing, StandingChanged } from "../../../store/presence/detector.ts";
import type { Clock, Random, SiteId, Storage } from "../../../store/model/ports.ts";
import type { HomeError, StatefulName } from "./api.ts";
import type { LogPiece } from "./asks.ts";
import type { HostsPort } from "./hosts_asked.ts";
import type { KeptLog } from "./kept_log.ts";

/** What becomes of a log on this disk. */
export type LogNews =
  /** It has another home; `isSame`: what it holds is as before. */
  | { readonly kind: "begun"; readonly isSame: boolean }
  | { readonly kind: "appended"; readonly pieces: readonly LogPiece[] }
  /** A checkpoint stands for all up to that entry, whether it was here or not. */
  | { readonly kind: "based"; readonly at: number }
  | { readonly kind: "gone" };

export interface HomesPorts {
  readonly site: SiteId;
  /** This process: 48 random bits above BOOT_MIN (packet.ts). */
  readonly boot: number;
  /** Its wall clock is what the site believes of the time (docs/protocol/clocks.md). */
  readonly clock: Clock;
  /** Milliseconds that never go back. */
  readonly nowMs: () => number;
  readonly random: Random;
  /** A disk of its own, for the logs. */
  readonly storage: Storage;
  /** At the root: a disk of its own for the arbiter's rows; null elsewhere. */
  readonly arbiterStorage: Storage | null;
  /** The site of the arbiter: the root. */
  readonly arbiter: () => SiteId;
  /** Resolves when there is room for another; a packet to an unreachable site is dropped. */
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  /** Who may be an owner, and who lives (store/owners/site_owners.ts). */
  readonly fellows: {
    readonly f: number;
    /** All sites of the tree. */
    sites(): readonly SiteId[];
    /** @param last the site whose loss would cost most. */
    choose(kept: readonly SiteId[], without: (site: SiteId) => boolean, last: SiteId): Choice;
    /** Other sites that live, the nearest first (seats.ts); left out: the arbiter's site is a home, and once it is an owner stays one, as any other. */
    nearest?(): readonly SiteId[];
    isKnown(site: SiteId): boolean;
    standing(site: SiteId): Standing;
    watch(site: SiteId): () => void;
    onChange(changed: StandingChanged): () => void;
    /** Finds out whether a site's process is there at all: `standing` tells where it is not. */
    look(site: SiteId): void;
  };
  /**
   * A named timer is due of a stateful session that is not open anywhere, as far as is known here, or its log leaves
   * work open, or one is to move to this site: `open` it.
   */
  readonly due: (name: StatefulName) => void;
  /**
   * What a piece of a log leaves to be done: 0 nothing; else a number, of which those beyond 1 are the clock of its oldest
   * write that may not be applied. Left out: nothing is ever left.
   */
  readonly openOf?: (bytes: Uint8Array) => number;
  /** A log on this disk is other than before; it may not be on disk yet. */
  readonly onLog?: (log: KeptLog, news: LogNews) => void;
  /** This site is not the home of that epoch any more, whether it was open or rested: for who outlives an opening. */
  readonly onOver?: (name: StatefulName, epoch: number, error: HomeError) => void;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
  /** Clients and origins that hold logs; left out: none can be reached here. */
  readonly hosts?: HostsPort;
  /** The disk has failed: the site must stop. */
  readonly fatal: (error: Error) => void;
  /** Bounds of this site's disk, where they are not those of limits.ts. */
  readonly keptMax?: number;
  readonly keptBytesMax?: number;
  readonly answersBytesMax?: number;
  /** Of a state, what goes in one packet. */
  readonly batchBytes?: number;
  /** At the root: stateful sessions of one app, in the whole tree. */
  readonly perAppMax?: number;
  /** FORCED_MS, where absent. */
  readonly forcedMs?: number;
  readonly lostMs?: number;
  /** At the root: so long it knows that a name has ended, ENDED_MS by default. */
  readonly endedMs?: number | undefined;
}

/** Whether the arbiter goes by its disk (certainty.ts). */
export interface ArbiterStatus {
  /** `behind`: its disk went back, and names are put on record anew. */
  readonly state: "sure" | "unsure" | "behind";
  /** Sites that it waits for. */
  readonly missed: readonly SiteId[];
}

export interface HomesStatus {
  /** null: it is another site. */
  readonly arbiter: ArbiterStatus | null;
  /** Number of this site's disk, as an owner. */
  readonly disk: number;
  /** Open here. */
  readonly open: number;
  /** At home here, out of memory. */
  readonly resting: number;
  /** Logs on this disk, own ones among them. */
  readonly kept: number;
  readonly keptBytes: number;
  /** Open ones that wait for owners. */
  readonly stalled: number;
  readonly counters: Readonly<Record<string, number>>;
}
