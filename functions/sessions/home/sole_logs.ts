/**
 * Count of the logs that are on a site's disk alone: for whoever is to give that disk up.
 *
 * SL1  A log counts unless another owner on record lives, or hosts have all of it (host_owners.ts HO3), or this disk is
 *      no owner of it any more. Where the arbiter does not say who the owners are, and no other site that lives is its
 *      home, it counts: nobody is known to have it.
 * SL2  It is known in time: arbiter and owners are waited for no longer than each has here.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Owner, StatefulName } from "../log/api.ts";
import type { RowState } from "../log/asks.ts";
import { disksOf, hostsAreEnough } from "../log/host_owners.ts";
import type { KeptLog } from "../log/kept_log.ts";

export interface SoleLogsPorts {
  readonly site: SiteId;
  readonly disk: number;
  readonly logs: () => Iterable<Pick<KeptLog, "name" | "head">>;
  /** Returns the owners of a session that is at home here; null: it is not. */
  readonly owners: (name: StatefulName) => readonly Owner[] | null;
  /** Returns what the arbiter has of a name; null: nothing, or it does not answer. */
  readonly recorded: (name: StatefulName) => Promise<RowState | null>;
  /** Reports whether a site can be asked; where that is not known, it is found out. */
  readonly gone: (site: SiteId) => "gone" | "here" | "unsure";
  readonly after: (ms: number, callback: () => void) => () => void;
}

/** Logs that the arbiter is asked for at once: as many as fit into one of its batches. */
const ASKED_AT_ONCE = 64;
/** Milliseconds in which the arbiter is asked: some ten thousand logs over a fast link. The rest count (SL1). */
const ASKED_MS = 2_000;
/** Milliseconds for a site that nothing was heard of to answer: two beats, and a round trip. */
const HEARD_MS = 1_500;
const LOOK_MS = 50;

/** Counts the logs that are on this disk alone (SL1). */
export async function soleLogs(ports: SoleLogsPorts): Promise<number> {
  const { site } = ports, logs = [...ports.logs()];
  const homes = await living(ports, logs.map(({ head }) => head.by));
  const left = logs.filter(({ head }) => head.by === site || !homes.has(head.by));
  const rosters = await ownersOf(ports, left.map(({ name }) => name));
  const others = await living(
    ports,
    rosters.flatMap((owners) => disksOf(owners ?? []).map((one) => one.site)),
  );
  return rosters.filter((owners) => owners === null || isSole(ports, owners, others)).length;
}

function isSole(
  { site, disk }: SoleLogsPorts,
  owners: readonly Owner[],
  living: ReadonlySet<SiteId>,
): boolean {
  if (!owners.some((one) => one.site === site && one.disk === disk)) return false;
  return !hostsAreEnough(owners) && !disksOf(owners).some((one) => living.has(one.site));
}

/** Returns the owners of each session; null where nobody says who they are. None: it has ended. */
async function ownersOf(
  { owners, recorded, after }: SoleLogsPorts,
  names: readonly StatefulName[],
): Promise<readonly (readonly Owner[] | null)[]> {
  const found = names.map(owners);
  const missing = found.flatMap((one, i) => one === null ? [i] : []);
  let isLate = false;
  const late = Promise.withResolvers<void>();
  const cancel = after(ASKED_MS, () => {
    isLate = true;
    late.resolve();
  });
  const next = async () => {
    for (let i = missing.pop(); i !== undefined && !isLate; i = missing.pop()) {
      const name = names[i];
      const row = name === undefined ? null : await recorded(name);
      if (row !== null && !isLate) found[i] = row.ended ? [] : row.owners;
    }
  };
  await Promise.race([Promise.all(Array.from({ length: ASKED_AT_ONCE }, next)), late.promise]); // SL2
  cancel();
  return found;
}

/** Finds which of some other sites live. */
async function living({ site, gone, after }: SoleLogsPorts, sites: readonly SiteId[]): Promise<Set<SiteId>> {
  const others = [...new Set(sites)].filter((one) => one !== site);
  for (let leftMs = HEARD_MS;; leftMs -= LOOK_MS) {
    const standings = others.map((one) => [one, gone(one)] as const);
    if (leftMs <= 0 || standings.every(([, standing]) => standing !== "unsure")) { // SL2
      return new Set(standings.flatMap(([one, standing]) => standing === "here" ? [one] : []));
    }
    await new Promise<void>((resolve) => after(LOOK_MS, resolve));
  }
}
