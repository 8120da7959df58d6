/**
 * System rows that tell every site who holds the wards of which incarnation:
 *
 *   ["s", "wards", number]            {number, owners, previous}: a configuration of that incarnation, written by its
 *                                     site; `previous` own its ward until it is in effect
 *   ["s", "recovered", number, site]  {position, down, config, clock}: all that it had told up to that position
 *                                     of its journal stands before this row in that of the site, which owned the ward
 *                                     (recovery.ts) or has taken it back (retake.ts)
 */
import { SYSTEM } from "../api/api.ts";
import { type Key, packKey } from "../model/key.ts";
import type { SiteId } from "../model/ports.ts";
import type { ClockValue, Position, ReplicaNumber } from "../model/row.ts";

/** The owners of one incarnation's ward. */
export interface Configuration {
  /** Number that rises with each configuration of the incarnation, from 1. */
  readonly number: number;
  readonly owners: readonly SiteId[];
  readonly previous: readonly SiteId[];
}

/** Part of an incarnation that is over which an owner, or the incarnation's own site, has put in its place. */
export interface RecoveredWard {
  readonly position: Position;
  /** The incarnation's `down` when it stood there, root first. */
  readonly down: readonly Position[];
  /** The newest configuration under which the owner had acknowledged the rows of which sessions were told. */
  readonly config: number;
  /** Clock that is no earlier than that of anything that stood there. */
  readonly clock: ClockValue;
}

export const wardsKey = (replica: ReplicaNumber): Key => packKey([SYSTEM, "wards", replica]);
export const recoveredKey = (replica: ReplicaNumber, owner: SiteId): Key =>
  packKey([SYSTEM, "recovered", replica, owner]);

/** Rows of wards as this site has them. They are written by sites only, so they are trusted. */
export class WardRows {
  readonly #configurations = new Map<ReplicaNumber, Configuration>();
  readonly #recovered = new Map<ReplicaNumber, Map<SiteId, RecoveredWard>>();

  /** True where a row has changed anything since this was set to false. */
  changed = false;

  /** Takes a row in; true where it is one of these. */
  apply(space: unknown, replica: unknown, owner: unknown, value: unknown): boolean {
    if (typeof replica !== "number" || value === undefined) return false;
    this.changed = true;
    if (space === "wards") {
      this.#configurations.set(replica, value as Configuration);
      return true;
    }
    if (space !== "recovered" || typeof owner !== "string") return false;
    const by = this.#recovered.get(replica) ?? new Map<SiteId, RecoveredWard>();
    this.#recovered.set(replica, by.set(owner, value as RecoveredWard));
    return true;
  }

  /**
   * Takes in the same of an incarnation that is over (past.ts): rows of its own, if there are any, are as new. True
   * where it names an owner of which no row has said anything.
   */
  recall(
    replica: ReplicaNumber,
    configuration: Configuration | undefined,
    recovered: Readonly<Record<SiteId, RecoveredWard>> = {},
  ): boolean {
    if (configuration !== undefined && configuration.number > (this.of(replica)?.number ?? 0)) {
      this.#configurations.set(replica, configuration);
      this.changed = true;
    }
    const by = this.#recovered.get(replica) ?? new Map<SiteId, RecoveredWard>(), { size } = by;
    for (const [owner, found] of Object.entries(recovered)) if (!by.has(owner)) by.set(owner, found);
    if (by.size > 0) this.#recovered.set(replica, by);
    return by.size > size;
  }

  /** Returns the newest configuration of an incarnation. */
  of(replica: ReplicaNumber): Configuration | undefined {
    return this.#configurations.get(replica);
  }

  /** True where any incarnation has, or had, owners. */
  get exist(): boolean {
    return this.#configurations.size > 0;
  }

  /** Lists incarnations that have, or had, owners. */
  all(): MapIterator<ReplicaNumber> {
    return this.#configurations.keys();
  }

  /** Lists all sites that may have the ward of an incarnation. */
  owners(replica: ReplicaNumber): SiteId[] {
    const known = this.of(replica);
    return known === undefined ? [] : [...new Set([...known.owners, ...known.previous])];
  }

  /** Returns what each owner has put in the place of an incarnation. */
  recovered(replica: ReplicaNumber): ReadonlyMap<SiteId, RecoveredWard> {
    return this.#recovered.get(replica) ?? new Map();
  }
}
