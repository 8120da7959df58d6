/**
 * The guard that keeps out sites whose clocks are too far ahead (clock.ts, C2): at their hello, and at everything they
 * say later, since a clock may go wrong while a link is up. What they said is not applied: its versions would win for
 * as long as they are in the future, and its clock would go on from here to all others.
 *
 * A neighbour that is refused is asked to join again every second, so that it is back when its clock is right.
 */
import type { ReplicaPorts } from "../api/api.ts";
import type { HybridClock } from "../model/clock.ts";
import { CLOCK_RETRY_MS } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { ClockValue } from "../model/row.ts";

/**
 * Returns the newest clock in a message of a site: the site's own, or that of a row. No row of a sound message is newer
 * than its sender's clock; one that is would drag along the clock of each site that takes it, and those of all others.
 */
export const newestClock = (
  { clock, rows }: { readonly clock: ClockValue; readonly rows: readonly { readonly clock: ClockValue }[] },
): ClockValue => rows.reduce((newest, row) => Math.max(newest, row.clock), clock);

/** Interface to the replica (core.ts). */
export interface GuardedSite {
  readonly clock: HybridClock;
  readonly ports: Pick<ReplicaPorts, "clock">;
  readonly closed: boolean;
  refused(event: string, from: SiteId): void;
}

/** Guard of one site against neighbours whose clocks are too far ahead. */
export class ClockGuard {
  readonly #core: GuardedSite;
  readonly #refused = new Set<SiteId>();

  constructor(core: GuardedSite) {
    this.#core = core;
  }

  /** Neighbours that are refused at present. */
  get refused(): readonly SiteId[] {
    return [...this.#refused];
  }

  /** Forgets a site that is no neighbour at present: nobody here knows what its clock says now. */
  forget(site: SiteId): void {
    this.#refused.delete(site);
  }

  /** Reports whether what a neighbour said must not be taken; `again` is called when it may try to join again. */
  refuses(site: SiteId, clock: ClockValue, again: () => void): boolean {
    const core = this.#core;
    if (core.clock.admits(clock)) {
      this.#refused.delete(site);
      return false;
    }
    core.refused("clock_ahead", site);
    this.#refused.add(site);
    core.ports.clock.after(CLOCK_RETRY_MS, () => {
      if (!core.closed) again();
    });
    return true;
  }
}
