/**
 * Seats: which site has a stateful session that was asked for at the arbiter's own.
 *
 * While the arbiter's site is away nobody is granted an epoch: what is at home there could be taken over by nobody, and
 * its owners, which have the log, could do nothing with it. So the arbiter's site gives what is asked for there to
 * another site that lives, and serves it over the link.
 *
 * The site that is to open it is asked to, as with a move (`invite`), and asks the arbiter for its epoch as any home
 * does. That there is one home is due to the epochs alone: nothing here is needed for it.
 *
 * SE1  Where f is 1 or more, and f + 1 other sites live, nothing is opened at the arbiter's site that another opens in
 *      its place: one of those that keep its log, or else the nearest.
 * SE3  A site that was asked to open a session did not, where the session is asked for here again soon and no epoch was
 *      granted meanwhile: it is not asked for that one for a while. After SEATS_MAX of them the session is opened here:
 *      better served where the loss of its home costs more than not at all.
 * SE4  A session that an operator, or another home, gives to the arbiter's site it takes; what is at home there leaves
 *      when it rests, and when it is opened, some at a time.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { StatefulName } from "../log/api.ts";
import type { Reply, RowState } from "../log/asks.ts";
import { SEAT_AGAIN_MS, SEATS_ASKED_MAX, SEATS_MAX } from "../log/limits.ts";
import { keyOf } from "../log/name.ts";

export interface SeatsPorts {
  /** Site of the arbiter. */
  readonly site: SiteId;
  readonly nowMs: () => number;
  readonly f: () => number;
  /** Returns other sites that live, the nearest first. */
  readonly nearest: () => readonly SiteId[];
  /** Reports whether a site can be asked to serve what is at home there. */
  readonly gone: (site: SiteId) => "gone" | "here" | "unsure";
  /** Returns what the arbiter has on record. */
  readonly look: (name: StatefulName) => Promise<Reply>;
  /** Reports whether a site says, in time, that it opens a session. */
  readonly invite: (site: SiteId, name: StatefulName) => Promise<boolean>;
}

/** Site that opens a session. */
export interface Opener {
  readonly to: SiteId;
  readonly mayLeave: boolean;
}

/** Sites that were asked to open a session. */
interface Asked {
  /** Epoch on record when the first was asked; 0: there was no record. */
  readonly epoch: number;
  readonly sites: Set<SiteId>;
  readonly untilMs: number;
}

/** Choice of sites (see the file's header). */
export class Seats {
  readonly #ports: SeatsPorts;
  /** Sites that were asked, by session; the session that was asked for last comes last (SE3). */
  readonly #asked = new Map<string, Asked>();

  constructor(ports: SeatsPorts) {
    this.#ports = ports;
  }

  /**
   * Returns the site that opens what is asked for here: another, or this one; `mayLeave`: it was at home here already
   * (SE4).
   */
  async opener(name: StatefulName): Promise<Opener> {
    const { site } = this.#ports, here = { to: site, mayLeave: false };
    if (this.#living().length === 0) return here;
    const reply = await this.#ports.look(name);
    const row = reply.kind === "row" ? reply.row : null;
    if (row?.site === site && row.movesTo === "" && !row.ended) return { to: site, mayLeave: true };
    if (!this.#isFree(row)) return here;
    const epoch = row?.epoch ?? 0, owners = row?.owners.map(({ site }) => site) ?? [];
    for (;;) {
      const to = this.of(name, epoch, owners);
      if (to === null) return here;
      this.refused(name, epoch, to); // until an epoch shows that it was not
      if (await this.#ports.invite(to, name)) return { to, mayLeave: false };
    }
  }

  /**
   * Returns the site that is to have a session, of those that live (SE1, SE3); null: none. @param owners those that
   * keep its log.
   */
  of(name: StatefulName, epoch: number, owners: readonly SiteId[]): SiteId | null {
    const asked = this.#lately(name, epoch);
    if (asked !== undefined && asked.sites.size >= SEATS_MAX) return null;
    const living = this.#living().filter((one) => asked?.sites.has(one) !== true);
    return living.find((one) => owners.includes(one)) ?? living[0] ?? null;
  }

  /** Notes that a site was to have a session, and has not taken it (SE3). */
  refused(name: StatefulName, epoch: number, by: SiteId): void {
    const key = keyOf("", name), before = this.#lately(name, epoch);
    const sites = new Set(before?.sites).add(by);
    this.#asked.delete(key);
    this.#asked.set(key, { epoch, sites, untilMs: this.#ports.nowMs() + SEAT_AGAIN_MS });
    for (const oldest of this.#asked.keys()) {
      if (this.#asked.size <= SEATS_ASKED_MAX) break;
      this.#asked.delete(oldest);
    }
  }

  /** Returns the sites that live, where there are enough (SE1). */
  #living(): readonly SiteId[] {
    const { f, nearest, site } = this.#ports;
    if (f() === 0) return [];
    const living = nearest().filter((one) => one !== site);
    return living.length > f() ? living : [];
  }

  /**
   * Reports whether another site is to have a session than the one on record: not where that is this site (SE4), nor
   * where it lives.
   */
  #isFree(row: RowState | null): boolean {
    if (row === null || row.ended) return true;
    const at = row.movesTo === "" ? row.site : row.movesTo;
    return at !== this.#ports.site && this.#ports.gone(at) !== "here";
  }

  #lately(name: StatefulName, epoch: number): Asked | undefined {
    const asked = this.#asked.get(keyOf("", name));
    return asked?.epoch === epoch && this.#ports.nowMs() < asked.untilMs ? asked : undefined;
  }
}
