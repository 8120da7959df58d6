/** Whom a simulated site knows: all sites there are, as its detector has them. */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Fellows } from "../../../store/owners/tuples.ts";
import {
  type Candidate,
  checkOwners,
  chooseOwners,
  type OwnersSettings,
} from "../../../store/presence/choose.ts";
import type { Detector } from "../../../store/presence/detector.ts";

export interface FellowsOptions {
  readonly id: SiteId;
  readonly sites: readonly SiteId[];
  readonly settings: OwnersSettings;
  readonly areas: ReadonlyMap<SiteId, string | null>;
  /** Until when sites said that they are away. */
  readonly away: ReadonlyMap<SiteId, number>;
  readonly nowMs: () => number;
}

export function fellowsOf(detector: Detector, options: FellowsOptions): Fellows {
  const { id, sites, settings, areas, away, nowMs } = options;
  const areaOf = (site: SiteId) => areas.get(site) ?? null;
  return {
    choose: (f, kept, without) => {
      checkOwners(id, { f, sites: null }, sites);
      const candidates: Candidate[] = detector.list().map(({ site, rttMs, standing }) => ({
        id: site,
        area: areaOf(site),
        rttMs,
        isAlive: standing === "alive" && !without(site),
      }));
      const keptSites = kept.map((site) => ({ id: site, area: areaOf(site) }));
      return chooseOwners({ id, area: areaOf(id) }, { ...settings, f }, candidates, keptSites);
    },
    isKnown: () => true,
    isStranger: () => false,
    standing: (site) => detector.standing(site),
    awaitedUntilMs: (site) => {
      const untilMs = away.get(site) ?? 0;
      return untilMs > nowMs() ? untilMs : null;
    },
    isInTouch: (site) => detector.isInTouch(site),
    suspectMs: () => settings.suspectMs,
    watch: (site) => detector.watch(site),
    measured: (site, ms) => detector.measured(site, ms),
    onChange: (changed) => detector.onChange(changed),
  };
}
