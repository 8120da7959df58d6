/** Status of a site, as `/_sojourn/status` gives it (docs/http.md). */
import type { Replica } from "../../store/api/api.ts";
import type { LinkHub } from "../link/mod.ts";
import { alertsOf, type DiskSpace } from "./alerts.ts";
import type { AppService } from "./app_service.ts";
import type { SiteConfig } from "./config.ts";
import type { DiskDamage } from "./disk_damage.ts";

/** Parts of a site that the status is made of. */
export interface StatusParts {
  readonly config: SiteConfig;
  readonly replica: Replica;
  readonly hub: LinkHub | null;
  readonly apps: AppService | null;
  readonly fault: Error | null;
  readonly disk: DiskSpace;
  readonly damage: DiskDamage;
  readonly sites: () => readonly { readonly id: string; readonly parent: string | null }[];
  readonly nowMs: number;
}

/** Returns the status object. */
export function siteStatus(parts: StatusParts) {
  const status = parts.replica.status();
  const links = parts.hub?.status();
  const stateful = parts.apps?.stateful.status();
  const rttMs = links?.links.find((link) => link.site === status.parent?.id)?.rttMs ?? null;
  return {
    site: status.site,
    incarnation: status.replica,
    tier: parts.config.tier,
    position: status.position,
    parent: status.parent === null ? null : { ...status.parent, rttMs },
    coverage: status.coverage,
    pending: status.pending,
    pendingBytes: status.pendingBytes,
    lagMs: status.parent === null ? 0 : rounded(status.parent.feedLagMs),
    stableLagMs: rounded(status.stableLagMs),
    children: status.children.map((child) => ({ ...child, stableLagMs: rounded(child.stableLagMs) })),
    damaged: status.damaged,
    f: parts.replica.owners.settings.f,
    wards: status.wards,
    watched: status.watched.map((one) => ({ ...one, silentMs: Math.round(one.silentMs) })),
    apps: appStatus(parts.apps),
    sessions: stateful?.homes.open ?? 0,
    stateful: stateful === undefined ? null : {
      open: stateful.homes.open,
      resting: stateful.homes.resting,
      parked: stateful.parked,
      stalled: stateful.homes.stalled,
      kept: stateful.homes.kept,
      keptBytes: stateful.homes.keptBytes,
      standbys: stateful.standby.standbys,
    },
    queues: parts.apps?.messages.status() ?? [],
    alerts: alertsOf({
      fault: parts.fault,
      replica: status,
      diskFree: parts.disk.free(),
      damagedFolders: parts.damage.folders,
      lostFolders: parts.damage.lostFolders,
      stateful: { parked: stateful?.parked ?? 0, stalled: stateful?.homes.stalled ?? 0 },
      away: parts.sites().flatMap(({ id, parent }) => {
        const untilMs = parts.replica.members.awayUntilMs(id);
        const near = id === status.parent?.id || parent === status.site;
        return untilMs === undefined ? [] : [{ id, untilMs, near }];
      }),
      nowMs: parts.nowMs,
    }),
    links: links?.links ?? [],
    refused: links?.refused ?? 0,
    counters: status.counters,
  };
}

const rounded = (ms: number | null): number | null => ms === null ? null : Math.round(ms);

function appStatus(apps: AppService | null) {
  const running = apps?.isolates.status().apps ?? [];
  const isolates = (name: string, version: string) =>
    running.find((app) => app.app === name && app.version === version)?.isolates.length ?? 0;
  return (apps?.table.list() ?? []).map(({ name, current: { version }, rollout }) => ({
    name,
    version,
    isolates: isolates(name, version),
    ...rollout === undefined ? {} : {
      next: {
        version: rollout.next.version,
        weight: rollout.weight,
        isolates: isolates(name, rollout.next.version),
      },
    },
  }));
}
