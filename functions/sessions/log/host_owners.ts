/**
 * Hosts of a stateful session, clients or origins that hold its log: the rules of its home and of a home that takes it
 * over.
 *
 * A host on record is told what follows from a commit before any owner's disk has it, with the log up to there in the
 * same message. So it may know more than all disks; nobody goes on without having asked it.
 *
 * HO1  Nothing leaves to a host ahead of the disks but while it is on record in each configuration that may be.
 * HO2  A home is opened with the promise, and the log, of every host on record, and of a disk; the longest log is taken.
 *      Where it may be without a disk, the disks are asked for as long as hosts are.
 * HO3  Where one disk alone is on record (f = 0), what is released to anybody else is at all hosts on record first, in
 *      each configuration that may be, and a host is recorded only when it has all that was released before, and all that
 *      those that have left the record were told: that may be on the disk alone. So there, and only there, hosts are
 *      enough where the disk can't be asked.
 * HO4  Hosts change like disks, through the arbiter only; and none leaves the record before the disks that stay, and
 *      with one disk alone the hosts that stay, have all that it was told.
 * HO8  Where an operator opens the session without hosts that do not come back, these are left behind: off the record,
 *      and no peers of it any more. What they hold is never taken. It is on record that they were left behind until all
 *      owners know that they are no peers: a home that follows would go on with them as if they had been told what it
 *      knows.
 */
import type { HomeHosts, Owner } from "./api.ts";
import type { LogPiece } from "./log_copy.ts";

/**
 * Largest number of hosts on record; further hosts are told things when the disks have them. A row of the arbiter stays
 * small.
 */
export const HOSTS_MAX = 64;
const MARK = "@";

/** Numbers in place of a disk's: the host holds the log, or was left behind (HO8). */
const HOLDS = 0, LEFT_BEHIND = 1;

/** Reports whether an owner is a host that holds the log, or was left behind. */
export const isClient = ({ site }: Owner): boolean => site.startsWith(MARK);
export const isLeftBehind = (owner: Owner): boolean => isClient(owner) && owner.disk === LEFT_BEHIND;
export const isClientDisk = (disk: number): boolean => disk === HOLDS || disk === LEFT_BEHIND;
export const hostOwner = (host: string): Owner => ({ site: MARK + host, disk: HOLDS });
const leftOwner = (host: string): Owner => ({ site: MARK + host, disk: LEFT_BEHIND });
const clientsOf = (owners: readonly Owner[], as: number): string[] =>
  owners.filter((owner) => isClient(owner) && owner.disk === as).map(({ site }) => site.slice(MARK.length));
export const hostsOf = (owners: readonly Owner[]): string[] => clientsOf(owners, HOLDS);
/** Returns the hosts that were left behind (HO8). */
export const leftBehindOf = (owners: readonly Owner[]): string[] => clientsOf(owners, LEFT_BEHIND);
export const disksOf = (owners: readonly Owner[]): Owner[] => owners.filter((owner) => !isClient(owner));

const recordedOf = (owners: readonly Owner[]): ReadonlySet<string> =>
  owners.some(isClient) ? new Set(hostsOf(owners)) : NONE;

/** Reports whether the hosts on record have all that was ever released (HO3). */
export const hostsAreEnough = (owners: readonly Owner[]): boolean =>
  hostsOf(owners).length > 0 && disksOf(owners).length <= 1;

/** Returns the owners on record that an opening still misses (HO2). */
export function missing(
  owners: readonly Owner[],
  { hosts, hasDisk }: { readonly hosts: ReadonlySet<string>; readonly hasDisk: boolean },
): { readonly hosts: readonly string[]; readonly isDiskMissing: boolean } {
  return {
    hosts: hostsOf(owners).filter((host) => !hosts.has(host)),
    isDiskMissing: !hasDisk && !hostsAreEnough(owners),
  };
}

/** Home that is told when something may be released, or other owners are to be on record. */
interface OwnedHome {
  advanced(): void;
}

/** Empty values for sessions without hosts, which most are: they take no memory of their own. */
const NOBODY: readonly string[] = [], NONE: ReadonlySet<string> = new Set(), NOTHING = () => {};

/** Hosts of an open home. */
export class HostOwners implements HomeHosts {
  #recorded: ReadonlySet<string>;
  #isSingle: boolean;
  /** True where one disk alone is to be on record. */
  #isSingleNext: boolean;
  #proposed: { readonly hosts: ReadonlySet<string>; readonly isSingle: boolean } | null = null;
  /** Hosts that are to be on record, and the last entry that each is known to have. */
  #has: Map<string, number> | null = null;
  /** Last entry that each host on record may have (HO4). */
  #told: Map<string, number> | null = null;
  /** Hosts left behind that may be peers yet (HO8). */
  readonly #left: Set<string>;

  readonly asked: readonly string[];
  readonly leftBehind: readonly string[];
  readonly #home: OwnedHome | null;
  /**
   * Last entry that the home was opened with: earlier homes may have released it (HO3). Or, where that is higher, the
   * last one that a host was told which is off the record since: the disks have it, and a host that is recorded beside
   * one disk must.
   */
  #floor = 0;
  onRecorded: () => void = NOTHING;
  onReleased: () => void = NOTHING;
  onAppended: (piece: LogPiece) => void = NOTHING;
  onBased: (at: number) => void = NOTHING;

  /**
   * Takes the hosts as they are when the home opens.
   *
   * @param recorded the owners as the arbiter has them.
   * @param has the last entry of each host that has promised.
   */
  constructor(
    recorded: readonly Owner[],
    has: ReadonlyMap<string, number> | null = null,
    home: OwnedHome | null = null,
  ) {
    this.#home = home;
    this.#recorded = recordedOf(recorded);
    this.#isSingle = this.#isSingleNext = disksOf(recorded).length <= 1;
    this.asked = has === null || has.size === 0 ? NOBODY : [...has.keys()];
    const isBlank = this.#recorded.size === 0;
    const missing = isBlank ? NOBODY : [...this.#recorded].filter((host) => !has?.has(host));
    this.leftBehind = isBlank ? leftBehindOf(recorded) : [...leftBehindOf(recorded), ...missing];
    this.#left = new Set(this.leftBehind);
    for (const host of this.#recorded) {
      const through = has?.get(host);
      if (through === undefined) continue;
      (this.#has ??= new Map()).set(host, through);
      (this.#told ??= new Map()).set(host, through);
    }
  }

  /**
   * Notes the last entry that the home was opened with. A host that lacks some is off the record until it has them:
   * nothing that follows from them is held up by a host that is sent nothing before.
   */
  opened(floor: number): void {
    this.#floor = floor;
    for (const [host, through] of this.#has ?? []) if (through < floor) this.#has?.delete(host);
  }

  /** Notes that a host has the log up to an entry. Returns false where as many are on record as there may be. */
  has(host: string, through: number): boolean {
    if (this.#left.has(host)) return false;
    const all = this.#has ??= new Map();
    const before = all.get(host);
    if (before === undefined && all.size >= HOSTS_MAX) return false;
    if (before === undefined || through > before) {
      const { held } = this;
      all.set(host, through);
      // Each host says this for each commit: most such words change nothing.
      if (before === undefined || held !== this.held || this.#isChanging) this.#home?.advanced();
    }
    return true;
  }

  /**
   * True while what hosts have may change the record: other hosts are there than are on it, or fewer disks are to be.
   */
  get #isChanging(): boolean {
    if (this.#isSingleNext !== this.#isSingle || this.#proposed !== null) return true;
    if (this.#has?.size !== this.#recorded.size) return true;
    for (const host of this.#recorded) if (!this.#has.has(host)) return true;
    return false;
  }

  /** Takes a host off the record that can't be reached, or holds the log no more. */
  drop(host: string): void {
    if (this.#has?.delete(host)) this.#home?.advanced();
  }

  /** Notes that a host left behind is no peer of the session any more, as all owners know (HO8). */
  gone(host: string): void {
    if (this.#left.delete(host)) this.#home?.advanced();
  }

  /** Reports whether a host may be told things ahead of the disks (HO1). */
  isAhead(host: string): boolean {
    return this.#has?.has(host) === true && this.#recorded.has(host) &&
      (this.#proposed?.hosts.has(host) ?? true);
  }

  /** Reports whether a host is on record in a configuration that may be (HO2). */
  isAwaited(host: string): boolean {
    return this.#recorded.has(host) || this.#proposed?.hosts.has(host) === true;
  }

  /** Notes that something leaves to a host that is ahead, with the log up to an entry. */
  told(host: string, through: number): void {
    const all = this.#told ??= new Map();
    all.set(host, Math.max(all.get(host) ?? 0, through));
  }

  /**
   * Returns the hosts that are to be on record beside so many disks; null where what they have does not allow for so
   * few yet.
   *
   * @param released last entry that others were told: with one disk, only a host is recorded that has it, and what
   * hosts were told that have left (HO3).
   * @param kept last entry of the log that the disks that stay have (HO4).
   */
  wanted({ released, kept, disks }: { released: number; kept: number; disks: number }): Owner[] | null {
    if (this.#has === null && this.#recorded.size === 0 && this.#left.size === 0) return [];
    const left = [...this.#left].map(leftOwner);
    const isSingle = this.#isSingleNext = disks <= 1, before = Math.max(released, this.#floor);
    const ready = [...this.#has ?? []]
      .filter(([host, through]) =>
        !isSingle || through >= before || (this.#isSingle && this.#recorded.has(host))
      ).map(([host]) => host);
    const stay = new Set(ready.filter((host) => this.#recorded.has(host)));
    const fresh = ready.filter((host) => !stay.has(host));
    for (;;) {
      // A host on record has its place; new hosts get the places that are left.
      const hosts = [...stay, ...fresh.slice(0, HOSTS_MAX - stay.size - left.length)];
      // HO4: with one disk, the hosts that stay may be all that an opening finds, also one that stays for what it was
      // told.
      const others = isSingle ? hosts.map((host) => this.#has?.get(host) ?? 0) : [];
      const least = Math.min(kept, ...others);
      const bound = [...this.#recorded].filter((host) =>
        !stay.has(host) && (this.#told?.get(host) ?? 0) > least
      );
      if (bound.length === 0) return [...hosts.map(hostOwner), ...left];
      // HO3: beside more disks others were told what these hosts may lack.
      if (isSingle && !this.#isSingle) return null;
      for (const host of bound) stay.add(host);
    }
  }

  /** Last entry that may leave to others, as far as hosts decide it (HO3). */
  get held(): number {
    if (!this.#isSingle && this.#proposed?.isSingle !== true) return Infinity;
    // Hosts that are to be on record are waited for, too: else a busy session would always be ahead of them. Not those
    // that lack some of what the home was opened with, or of what a host was told that has left: they are sent it when
    // it is released.
    let least = Infinity;
    for (const hosts of [this.#recorded, this.#proposed?.hosts ?? NONE]) {
      for (const host of hosts) least = Math.min(least, this.#has?.get(host) ?? 0);
    }
    for (const through of this.#has?.values() ?? []) {
      if (through >= this.#floor) least = Math.min(least, through);
    }
    return least;
  }

  /** Notes that the arbiter is asked for other owners. */
  proposed(owners: readonly Owner[]): void {
    this.#proposed = { hosts: recordedOf(owners), isSingle: disksOf(owners).length <= 1 };
  }

  /** Notes that the arbiter has other owners on record. */
  recorded(owners: readonly Owner[]): void {
    this.#recorded = recordedOf(owners);
    this.#isSingle = disksOf(owners).length <= 1;
    this.#proposed = null;
    for (const [host, through] of this.#told ?? []) {
      if (this.#recorded.has(host)) continue;
      this.#floor = Math.max(this.#floor, through);
      this.#told?.delete(host);
    }
    this.onRecorded();
  }
}
