/**
 * What a history proves to have happened before something: per key the least version that must be visible, and
 * why. Shared by the checkers; it knows clients' operations only.
 *
 * P1  A past only grows: `join` never forgets.
 */
import type { Stamp } from "./history.ts";

/**
 * Why a version is in a past:
 * own     the session wrote it                      → read-your-writes
 * seen    the session read it                       → monotonic reads
 * ownBy   the writer of something seen wrote it before → monotonic writes
 * seenBy  the writer of something seen had read it  → writes follow reads
 * cause   anything further back                     → causality
 */
export const REASONS = ["own", "seen", "ownBy", "seenBy", "cause"] as const;
export type Reason = typeof REASONS[number];

/** The guarantee that a reason belongs to. */
export const GUARANTEE: Readonly<Record<Reason, string>> = {
  own: "read-your-writes",
  seen: "monotonic reads",
  ownBy: "monotonic writes",
  seenBy: "writes follow reads",
  cause: "causality",
};

/** Sets of writes to sum keys are bit sets over their ordinal within the run. */
export type SumSet = bigint;

/** One reason's share of a past. */
interface Share {
  readonly stamps: Stamp[];
  sums: SumSet;
}

/** A past. */
export class Past {
  readonly #shares: Readonly<Record<Reason, Share>>;
  readonly #keys: number;

  constructor(keys: number) {
    this.#keys = keys;
    const share = (): Share => ({ stamps: new Array<Stamp>(keys).fill(""), sums: 0n });
    this.#shares = { own: share(), seen: share(), ownBy: share(), seenBy: share(), cause: share() };
  }

  copy(): Past {
    const out = new Past(this.#keys);
    out.join(this);
    return out;
  }

  /** The same session goes on: reasons stay what they are. */
  join(other: Past): void {
    for (const reason of REASONS) this.#raise(reason, other.#shares[reason]);
  }

  /** Something that another wrote was seen: its writer's past is part of this one. */
  joinWriter(writer: Past): void {
    this.#raise("ownBy", writer.#shares.own);
    this.#raise("seenBy", writer.#shares.seen);
    for (const reason of REASONS) this.#raise("cause", writer.#shares[reason]);
  }

  note(reason: Reason, key: number, stamp: Stamp): void {
    const { stamps } = this.#shares[reason];
    if (stamp > (stamps[key] ?? "")) stamps[key] = stamp;
  }

  noteSums(reason: Reason, sums: SumSet): void {
    this.#shares[reason].sums |= sums;
  }

  /**
   * The least version that must show, and why; the nearest reason among equals.
   *
   * @param isExcused versions that need not show: then the others must, of each reason the newest.
   */
  need(
    key: number,
    isExcused: (stamp: Stamp, reason: Reason) => boolean = () => false,
  ): { readonly stamp: Stamp; readonly reason: Reason } {
    let stamp: Stamp = "";
    let reason: Reason = "own";
    for (const each of REASONS) {
      const candidate = this.#shares[each].stamps[key] ?? "";
      if (candidate > stamp && !isExcused(candidate, each)) {
        stamp = candidate;
        reason = each;
      }
    }
    return { stamp, reason };
  }

  /** Writes to sum keys that must be in. */
  needSums(): SumSet {
    return REASONS.reduce((all, reason) => all | this.#shares[reason].sums, 0n);
  }

  /** Those of them that the chain itself wrote or read. */
  ownSums(): SumSet {
    return this.#shares.own.sums | this.#shares.seen.sums;
  }

  /** Why one of these sum writes must be in. */
  reasonOfSums(missing: SumSet): Reason {
    return REASONS.find((reason) => (this.#shares[reason].sums & missing) !== 0n) ?? "cause";
  }

  #raise(reason: Reason, from: Share): void {
    const share = this.#shares[reason];
    for (let key = 0; key < this.#keys; key++) {
      const stamp = from.stamps[key] ?? "";
      if (stamp > (share.stamps[key] ?? "")) share.stamps[key] = stamp;
    }
    share.sums |= from.sums;
  }
}
