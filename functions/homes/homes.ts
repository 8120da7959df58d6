/**
 * The stateful sessions of one site: those at home here, the logs that it keeps for others, and, at the root, the
 * arbiter.
 *
 * Life: `Homes.open` → … → `close`.
 */
import type { Clock, Random, SiteId, Storage } from "../../store/ports.ts";
import type { Choice } from "../../store/owners/choose.ts";
import type { Standing, StandingChanged } from "../../store/owners/detector.ts";
import type { HomeRow, Opened, StatefulName } from "./api.ts";

export interface HomesPorts {
  readonly site: SiteId;
  /** 48 random bits: this process. */
  readonly boot: number;
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
    choose(kept: readonly SiteId[], without: (site: SiteId) => boolean): Choice;
    isKnown(site: SiteId): boolean;
    standing(site: SiteId): Standing;
    watch(site: SiteId): () => void;
    onChange(changed: StandingChanged): () => void;
  };
  /** A named timer is due of a stateful session that is not open anywhere, as far as is known here: `open` it. */
  readonly due: (name: StatefulName) => void;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
  /** The disk has failed: the site must stop. */
  readonly fatal: (error: Error) => void;
}

export interface HomesStatus {
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

/** See the file's header. */
export interface Homes {
  /**
   * Where a stateful session is at home, as far as is known here without asking: this site, another, or null. A hint
   * that was right once.
   */
  where(name: StatefulName): SiteId | null;
  /** The site that `where` named is not its home. */
  misled(name: StatefulName): void;
  /**
   * Makes this site its home, where nobody is, or nobody that lives; or opens it again where this site is.
   *
   * @param version the code to run, where nothing is known of it yet.
   * @throws HomeError `elsewhere` (with the site), `stateful_unreachable`, `arbiter_unreachable`, `closed`,
   *     `limit_stateful`.
   */
  open(name: StatefulName, version: string): Promise<Opened>;
  /** A new one with an id that says where it was born: the root need not be asked. */
  create(kind: { readonly app: string; readonly class: string }, version: string): Promise<Opened>;
  /** A packet of another site. @throws CodecError for bytes that are none. */
  received(from: SiteId, packet: Uint8Array): void;
  /** Rows of the arbiter by name, after `after`; at the root only. */
  rows(
    options: { readonly app?: string; readonly after?: StatefulName; readonly limit: number },
  ): Promise<HomeRow[]>;
  status(): HomesStatus;
  /** Resolves when all that was appended is held, or has waited `waitMs`; nothing is served any more. */
  close(waitMs?: number): Promise<void>;
}

/** Opens what is on the disk. */
export const Homes: { open(ports: HomesPorts): Promise<Homes> } = {
  open: () => Promise.reject(new Error("not_available")),
};
