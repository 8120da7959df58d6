/** One site's core by itself, without a replica around it: for tests of single parts of the store. */
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import type { ReplicaConfig, ReplicaPorts } from "../../store/api/api.ts";
import { Core } from "../../store/core/core.ts";
import { encodeJson, endedKey, removedKey, replicaKey } from "../../store/members/topology.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { ReplicaNumber } from "../../store/model/row.ts";

/** A clock that stands still, and whose timers never end. */
const STILL: ReplicaPorts["clock"] = {
  nowMs: () => 1_900_000_000_000,
  steadyMs: () => 1_000,
  after: () => () => {},
  turn: () => Promise.resolve(),
};

/**
 * The core of the last of these sites, the first of which is the root.
 *
 * @param replica its incarnation.
 */
export function loneCore(
  path: readonly SiteId[],
  replica: ReplicaNumber,
  ports: Partial<ReplicaPorts> = {},
  config: Partial<ReplicaConfig> = {},
): Core {
  const [site = "", ...above] = path.toReversed();
  const core = new Core({
    ...{ site, parent: above[0] ?? null, tier: "", url: "", linkAddress: "", capacityBytes: 1e9 },
    ...config,
  }, {
    clock: STILL,
    random: { bytes: (length) => new Uint8Array(length) },
    storage: new MemoryStorage(),
    network: { send: () => Promise.resolve() },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
    ...ports,
  });
  core.replica = replica;
  core.setPath(above.toReversed());
  return core;
}

/** What a site knows of who is who: an incarnation of the last of these sites. */
export function learns(
  core: Core,
  number: ReplicaNumber,
  path: readonly SiteId[],
  rest: { readonly parent?: ReplicaNumber; readonly from?: ReplicaNumber } = {},
): void {
  const claim = { site: path.at(-1), path, parent: 0, from: 0, ...rest };
  core.rows.put(core.own(replicaKey(number), encodeJson(claim)));
}

/** … that it has ended. */
export function ends(
  core: Core,
  number: ReplicaNumber,
  ended: { stable: number; next?: ReplicaNumber },
): void {
  core.rows.put(core.own(endedKey(number), encodeJson(ended)));
}

/** … and that a site is off the tree. */
export function removes(core: Core, site: SiteId): void {
  core.rows.put(core.own(removedKey(site), encodeJson({ atMs: 1 })));
}
