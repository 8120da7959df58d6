/** Ports of the homes of a site: what they need of it, and what they say of themselves. */
import type { Choice } from "../../../store/presence/choose.ts";
import type { Standing, StandingChanged } from "../../../store/presence/detector.ts";
import type { Clock, Random, SiteId, Storage } from "../../../store/model/ports.ts";
import type { HomeError, StatefulName } from "./api.ts";
import type { LogPiece } from "./asks.ts";
import type { HostsPort } from "./hosts_asked.ts";
import type { KeptLog } from "./kept_log.ts";

/** Change of a log on this disk. */
export type LogNews =
  /** The log has another home; `isSame`: its contents are as before. */
  | { readonly kind: "begun"; readonly isSame: boolean }
  | { readonly kind: "appended"; readonly pieces: readonly LogPiece[] }
  /** A checkpoint stands for all up to that entry, whether it was here or not. */
  | { readonly kind: "based"; readonly at: number }
  | { readonly kind: "gone" };

export interface HomesPorts {
  readonly site: SiteId;
  /** Number of this process: 48 random bits above BOOT_MIN (packet.ts). */
  readonly boot: number;
  /** Clock whose wall time is what the site believes of the time (docs/protocol/clocks.md). */
  readonly clock: Clock;
  /** Milliseconds that never go back. */
  readonly nowMs: () => number;
  readonly random: Random;
  /** Disk of its own for the logs. */
  readonly storage: Storage;
  /** Disk of its own for the arbiter's rows, at the root; null elsewhere. */
  readonly arbiterStorage: Storage | null;
  /** Returns the site of the arbiter: the root. */
  readonly arbiter: () => SiteId;
  /** Sends a packet; resolves when there is room for another. A packet to an unreachable site is dropped. */
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  /** Other sites: which may be owners, and which live (store/owners/site_owners.ts). */
  readonly fellows: {
    readonly f: number;
    /** Returns all sites of the tree. */
    sites(): readonly SiteId[];
    /** Chooses owners. @param last the site whose loss would cost most. */
    choose(kept: readonly SiteId[], without: (site: SiteId) => boolean, last: SiteId): Choice;
    /**
     * Returns other sites that live, the nearest first (seats.ts); left out: the arbiter's site is a home, and once it
     * is an owner stays one, as any other.
     */
    nearest?(): readonly SiteId[];
    isKnown(site: SiteId): boolean;
    standing(site: SiteId): Standing;
    watch(site: SiteId): () => void;
    onChange(changed: StandingChanged): () => void;
    /** Finds out whether a site's process is there at all: `standing` tells where it is not. */
    look(site: SiteId): void;
  };
  /**
   * Notes a session that is to be opened (`open`): a named timer of it is due and it is not open anywhere, as far as is
   * known here, or its log leaves work open, or it is to move to this site.
   */
  readonly due: (name: StatefulName) => void;
  /**
   * Returns what a piece of a log leaves to be done: 0 nothing; else a number, of which those beyond 1 are the clock of
   * its oldest write that may not be applied. Left out: nothing is ever left.
   */
  readonly openOf?: (bytes: Uint8Array) => number;
  /** Notes a change of a log on this disk, which may not be on disk yet. */
  readonly onLog?: (log: KeptLog, news: LogNews) => void;
  /**
   * Notes that this site is not the home of that epoch any more, whether the session was open or rested: for parts of
   * the site that outlive an opening.
   */
  readonly onOver?: (name: StatefulName, epoch: number, error: HomeError) => void;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
  /** Clients and origins that hold logs; left out: none can be reached here. */
  readonly hosts?: HostsPort;
  /** Stops the site: the disk has failed. */
  readonly fatal: (error: Error) => void;
  /** Bounds of this site's disk, where they are not those of limits.ts. */
  readonly keptMax?: number;
  readonly keptBytesMax?: number;
  readonly answersBytesMax?: number;
  /** Bytes of a state that go in one packet. */
  readonly batchBytes?: number;
  /** Stateful sessions of one app in the whole tree, as the root bounds them. */
  readonly perAppMax?: number;
  /** Time to wait for clients that an operator would go on without; FORCED_MS where absent. */
  readonly forcedMs?: number;
  readonly lostMs?: number;
  /** Time for which the root knows that a name has ended; ENDED_MS where absent. */
  readonly endedMs?: number | undefined;
}

/** State of the arbiter: whether it goes by its disk (certainty.ts). */
export interface ArbiterStatus {
  /** State of its disk; `behind`: it went back, and names are put on record anew. */
  readonly state: "sure" | "unsure" | "behind";
  /** Sites that the arbiter waits for. */
  readonly missed: readonly SiteId[];
}

export interface HomesStatus {
  /** Status of the arbiter; null where it is another site. */
  readonly arbiter: ArbiterStatus | null;
  /** Number of this site's disk, as an owner. */
  readonly disk: number;
  /** Number of sessions open here. */
  readonly open: number;
  /** Number of sessions at home here, out of memory. */
  readonly resting: number;
  /** Number of logs on this disk, own ones among them. */
  readonly kept: number;
  readonly keptBytes: number;
  /** Number of open sessions that wait for owners. */
  readonly stalled: number;
  readonly counters: Readonly<Record<string, number>>;
}
