/**
 * Versions that are owed: rows that are still to be written under versions that were drawn before. The host says the
 * oldest of its own (ReplicaPorts.owed), from the start on; rows of versions drawn so long ago that nobody held them go
 * through `writeOld`.
 *
 * A floor says that no row so old stands in this subtree or will come there (core.ts, PROTOCOL I9), and so the root may
 * pass it with the watermark. A version that is owed holds the floor below it; a row that is written under a version
 * that the floor has passed already takes the floor back first, and waits until the root has heard of that.
 *
 * OW1  No push of this site says a floor at or above what its host owes, nor from `hold` on at or above what is held.
 * OW2  A floor that went back counts when a row that was applied to this journal after it stands in the root's: each
 *     push on the way has said the floors of all below it, as of its rows (I2). The watermark stays where it is by then
 *     for as long as the version is held, or a row as old is pending here.
 * OW3  A row that is written so counts as written when the root has it: the holder of the watermark lets go of it no
 *     earlier.
 */
import { type ReplicaPorts, StoreUnavailable, SYSTEM } from "../api/api.ts";
import { type Key, packKey } from "../model/key.ts";
import { WAIT_MS_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { Incoming, Rows } from "../rows/rows.ts";
import type { ClockValue, Position, ReplicaNumber } from "../model/row.ts";
import type { Steps } from "../model/steps.ts";
import { encodeJson } from "../members/topology.ts";

/**
 * Makes the key of a row of this site that nobody reads: the root that has the row has heard of the floor that was said
 * before it.
 */
const markerKey = (site: string): Key => packKey([SYSTEM, "owed", site]);

/** A place in this site's journal, and the incarnation that it is one of. */
export interface WrittenAt {
  readonly position: Position;
  readonly replica: ReplicaNumber;
}

/** Interface to the replica (core.ts). */
export interface OwingSite {
  readonly config: { readonly site: SiteId };
  readonly ports: Pick<ReplicaPorts, "clock">;
  readonly wall: { nowMs(): number };
  readonly isRoot: boolean;
  readonly horizonMs: number;
  readonly rows: Rows;
  readonly replica: ReplicaNumber;
  readonly reach: readonly Steps[];
  readonly replantedTo: Position;
  own(key: Key, value: Uint8Array | null, expiresAtMs?: number): Incoming;
  onAdvance(callback: () => void): () => void;
  wake(): void;
}

/** Versions that one site owes, which hold its floor below them. */
export class Owed {
  readonly #core: OwingSite;
  /** Returns the oldest version that the host owes (ReplicaPorts.owed). */
  readonly #ofHost: () => ClockValue;
  readonly #held = new Map<symbol, ClockValue>();

  constructor(core: OwingSite, ofHost: () => ClockValue) {
    this.#core = core;
    this.#ofHost = ofHost;
  }

  /** The oldest version that is owed; Infinity where there is none. */
  get least(): ClockValue {
    let least = this.#ofHost();
    for (const clock of this.#held.values()) least = Math.min(least, clock);
    return least;
  }

  /** Holds the floor below a version (OW1); the result lets go. */
  hold(clock: ClockValue): () => void {
    const one = Symbol();
    this.#held.set(one, clock);
    return () => this.#held.delete(one);
  }

  /**
   * Resolves once the root has heard of the floor that held versions took back (OW2).
   *
   * @throws StoreUnavailable `store_unreachable` where the root can't be heard within some time.
   */
  async pinned(): Promise<void> {
    const core = this.#core;
    if (core.isRoot) return;
    const written = await core.rows.lock.run(async () => {
      const key = markerKey(core.config.site), expiresAtMs = core.wall.nowMs() + core.horizonMs;
      const [old] = await core.rows.lookup([key]);
      core.rows.apply(old, core.own(key, encodeJson({}), expiresAtMs));
      return { position: core.rows.head, replica: core.replica };
    });
    core.wake();
    await this.atRoot(written);
  }

  /**
   * Resolves when the root has what stands at a position here.
   *
   * @param written the position, and the incarnation of this site that it is one of.
   * @throws StoreUnavailable `store_unreachable`
   */
  atRoot({ position, replica }: WrittenAt): Promise<void> {
    const core = this.#core;
    // Rows that were pending in an earlier incarnation stand anew in this one.
    const isThere = () =>
      core.isRoot ||
      (core.reach[0]?.top ?? 0) >= (core.replica === replica ? position : core.replantedTo);
    if (isThere()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const forget = core.onAdvance(() => {
        if (!isThere()) return;
        forget();
        cancel();
        resolve();
      });
      const cancel = core.ports.clock.after(WAIT_MS_MAX, () => {
        forget();
        const text = `site ${core.config.site} has old rows to write, and the root has not answered within ` +
          `${WAIT_MS_MAX} ms: it may forget deletions as old as they are`;
        reject(new StoreUnavailable("store_unreachable", text));
      });
    });
  }
}
