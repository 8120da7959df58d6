/**
 * Keeps sites whose clocks are too far ahead out (clock.ts, C2): at their hello, and at everything they say later, since
 * a clock may go wrong while a link is up. What they said is not applied: its versions would win for as long as they
 * are in the future, and its clock would go on from here to all others.
 *
 * A neighbour that is refused is asked to join again every second, so that it is back when its clock is right.
 */
import type { ReplicaPorts } from "../api/api.ts";
import type { HybridClock } from "../model/clock.ts";
import { CLOCK_RETRY_MS } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { ClockValue } from "../model/row.ts";

/**
 * The newest clock of what a site says: its own, or that of a row. In what sites of ours say none is newer than their
 * own; a row that is would drag the clock of whoever takes it along, and that of all others.
 */
export const newestClock = (
  { clock, rows }: { readonly clock: ClockValue; readonly rows: readonly { readonly clock: ClockValue }[] },
): ClockValue => rows.reduce((newest, row) => Math.max(newest, row.clock), clock);

/** What it needs of the replica (core.ts). */
export interface GuardedSite {
  readonly clock: HybridClock;
  readonly ports: Pick<ReplicaPorts, "clock">;
  readonly closed: boolean;
  refused(event: string, from: SiteId): void;
}

/** See the file's header. */
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

  /** It is no neighbour at present: what its clock says now nobody here knows. */
  forget(site: SiteId): void {
    this.#refused.delete(site);
  }

  /** Whether what a neighbour said must not be taken; `again` is called when it may try to join again. */
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
