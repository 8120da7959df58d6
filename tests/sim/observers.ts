/**
 * What the control plane of a site would do: watch a range and keep a copy of it, and write system rows at the
 * root, which every site must come to show.
 */
import { packKey } from "../../store/model/key.ts";
import { prefixRange } from "../../store/model/range.ts";
import { versionstamp } from "../../store/model/row.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import type { HistoryEvent } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import type { Draws } from "./random.ts";
import type { SimSite, SiteProcess } from "./site.ts";
import type { World } from "./world.ts";

/** What observers see and note down. */
export interface ObserverSurroundings {
  readonly world: World;
  readonly keyspace: Keyspace;
  readonly record: (event: HistoryEvent) => void;
}

const SYSTEM_RANGE = prefixRange(packKey(["s"]));
/** After a read that failed for want of a parent. */
const RETRY_MS = 100;
const SYSTEM_ROWS = 3;

/** Watches a group of keys at a site: reads it at once, and again whenever it is told of a change. */
export function watchGroup(
  site: SiteId,
  process: SiteProcess,
  group: number,
  around: ObserverSurroundings,
): void {
  const { keyspace, world, record } = around;
  const watched = keyspace.groups[group];
  if (watched === undefined) return;
  let reading = false;
  let changed = false;
  const read = async () => {
    changed = true;
    if (reading) return;
    reading = true;
    while (changed) {
      changed = false;
      const rows = await process.replica.system.list(watched.range).catch(() => null);
      if (!process.alive) return;
      if (rows === null) {
        changed = true;
        await world.sleep(RETRY_MS);
        continue;
      }
      const seen = rows.flatMap((row) => keyspace.seen(row) ?? []);
      record({ kind: "watched", atMs: world.nowMs, site, keys: watched.keys, rows: seen });
    }
    reading = false;
  };
  process.replica.system.watch([watched.range], () => void read());
  void read();
}

/** Writes one of a few system rows at the root. */
export async function writeSystemRow(root: SimSite, draws: Draws): Promise<void> {
  const process = root.process;
  if (process === null || !process.ready) return;
  const key = packKey(["s", "app", `app${draws.integer(1, SYSTEM_ROWS)}`]);
  const value = new Uint8Array([VALUE_TAG.json, 0x30 + draws.integer(0, 9)]);
  // A crash meanwhile is no fault of the write.
  await process.replica.system.write([
    draws.chance(0.2) ? { kind: "delete", key } : { kind: "set", key, value },
  ])
    .catch(() => {});
}

/** The system rows that a site shows, with their versions. */
export async function systemRows(process: SiteProcess): Promise<string[]> {
  const rows = await process.replica.system.list(SYSTEM_RANGE);
  return rows.map((row) => `${row.key} ${versionstamp(row)}`);
}
