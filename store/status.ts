/** The status that a replica reports of itself. */
import type { ReplicaStatus } from "./api/api.ts";
import type { Child } from "./core/child.ts";
import type { Core } from "./core/core.ts";
import type { SiteOwners } from "./owners/site_owners.ts";
import { CLOCK_TICKS_PER_MS, type ClockValue } from "./model/row.ts";
import type { Uplink } from "./tree/uplink.ts";
import type { Wards } from "./wards/wards.ts";

interface Parts {
  readonly uplink: Uplink | null;
  readonly children: Iterable<Child>;
  readonly owners: SiteOwners;
  readonly wards: Wards;
  readonly adopting: ReplicaStatus["adopting"];
  /** The site's own stable clock. */
  readonly stableNow: ClockValue;
}

/** Makes the status of a replica. */
export function replicaStatus(core: Core, parts: Parts): ReplicaStatus {
  const { config } = core, { uplink, children, owners, wards, adopting, stableNow } = parts;
  const pending = core.isRoot ? { rows: 0, bytes: 0 } : core.pending.measure(core.acked, core.depth);
  const stable = core.isRoot ? stableNow : core.stable[0] ?? 0;
  return {
    site: config.site,
    replica: core.replica,
    depth: core.depth,
    position: core.rows.head,
    parent: config.parent === null ? null : {
      id: config.parent,
      connected: uplink?.connected ?? false,
      acked: core.acked,
      feedLagMs: ageMs(core, core.fedClock),
    },
    coverage: {
      ranges: core.coverage.size,
      bytes: core.counters["storage_bytes"] ?? 0,
      capacityBytes: core.capacityBytes,
    },
    pending: pending.rows,
    pendingBytes: pending.bytes,
    stableLagMs: ageMs(core, stable),
    children: [...children].map(({ id, connected, ranges, stable }) => ({
      id,
      connected,
      ranges,
      stableLagMs: ageMs(core, stable),
    })),
    adopting,
    clockDoubt: core.wall.doubt,
    clocksAhead: core.clockGuard.refused,
    watched: owners.detector.list(),
    ownersMissing: owners.unmet,
    damaged: core.damage.names,
    wards: wards.status(),
    counters: { ...core.counters },
  };
}

function ageMs(core: Core, clock: ClockValue): number | null {
  return clock === 0 ? null : Math.max(0, (core.clock.wall() - clock) / CLOCK_TICKS_PER_MS);
}
