/**
 * Replica numbers: the root counts them, and writes down whom it gave each.
 *
 * N1  The row of a number is on disk at the root before anybody hears the number: it goes down behind the feed (N2),
 *     and a child of the root's is welcomed when its enrolment is on disk (enrolment.ts N1).
 * N2  A number goes down behind the feed that tells of it (downlinks.ts), from each site on the way only when what came
 *     before it there has been committed: so nobody hears of one before all that were given earlier (enrolment.ts N2).
 *     A number that is not known of is never ended, and no other parent takes its site.
 * N3  There is no number beyond the last that a version can name: a site that asks for one then waits, and the root's
 *     log says why.
 * N4  A site that comes with a number which was never given gets none: this disk is an older copy of itself (removal.ts
 *     R8), and would give that number to another. The sites that had it may be gone, and their tokens not: so the first
 *     number that a process gives is beyond one that it draws (gaps.ts). Half of all numbers are never jumped over.
 */
import type { Core } from "../core/core.ts";
import { drawn } from "../model/gaps.ts";
import { NUMBER_JUMP_SHARE } from "../model/limits.ts";
import type { Claim } from "../wire/message.ts";
import { REPLICA_NUMBER_MAX, type ReplicaNumber } from "../model/row.ts";
import { encodeJson, replicaKey } from "../members/topology.ts";

/** Name of the record of the next number on the root's disk. */
const RECORD = "numbers";

/** Source of numbers for the sites below one site. */
export class Numbers {
  readonly #core: Core;
  readonly #above: ((claim: Claim) => Promise<ReplicaNumber>) | null;
  /** Number that is given next; the root itself is 1. */
  #next: ReplicaNumber = 2;
  #hasJumped = false;

  /** @param above gets a number from above; null at the root. */
  constructor(core: Core, above: ((claim: Claim) => Promise<ReplicaNumber>) | null) {
    this.#core = core;
    this.#above = above;
  }

  /** Goes on from what was found on disk. */
  restore(next: ReplicaNumber): void {
    this.#next = Math.max(this.#next, next);
  }

  /** Gives a fresh number. */
  async give(claim: Claim): Promise<ReplicaNumber> {
    if (this.#above !== null) return await this.#above(claim);
    if (this.#next > REPLICA_NUMBER_MAX) { // N3
      this.#core.ports.note("numbers_exhausted", { child: claim.site, most: REPLICA_NUMBER_MAX });
      return await new Promise(() => {});
    }
    const { rows, topology } = this.#core;
    if (claim.from !== 0 && topology.incarnation(claim.from) === undefined) { // N4
      this.#core.refused("number_unknown", claim.site, { number: claim.from });
      return await new Promise(() => {});
    }
    if (!this.#hasJumped) this.#jump();
    return await rows.lock.run(() => {
      const number = this.#next++;
      rows.record(RECORD, encodeJson(this.#next));
      rows.put(this.#core.own(replicaKey(number), encodeJson(claim)));
      return Promise.resolve(number);
    });
  }

  /** Jumps to a number that this process draws (N4). */
  #jump(): void {
    const most = Math.max(0, REPLICA_NUMBER_MAX / 2 - this.#next) * NUMBER_JUMP_SHARE;
    this.#next += Math.floor(drawn(this.#core.ports.random) * most);
    this.#hasJumped = true;
  }
}
