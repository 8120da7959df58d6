/**
 * The replica's own state on disk: one record, written with every commit, so that positions, cursors and rows
 * are always of one moment.
 */
import { Reader, Writer } from "../model/codec.ts";
import { type Core, GAPS_RECORD } from "./core.ts";
import { Gaps } from "../model/gaps.ts";
import { CLOCK_TICKS_PER_MS, unixMs } from "../model/row.ts";
import { decodeJson, SYSTEM_RANGE } from "../members/topology.ts";
import { JOURNAL_BYTES } from "../model/limits.ts";

const RECORD = "state";
/** Number of rows read at once while the part of the journal not known at the root is put back into memory. */
const LOAD_ROWS = 2_000;

/** Puts the state into the next commit. */
export function saveState(core: Core): void {
  const writer = new Writer(128);
  writer.uint(core.replica).uint(core.parentReplica).uint(core.rows.head).uint(core.clockBound);
  writer.uint(core.watermark).uint(core.collectedTo);
  writer.list(core.path, (site) => writer.text(site));
  core.path.forEach((_, j) => {
    const [own, theirs] = core.reach[j]?.last ?? [0, 0];
    writer.uint(core.down[j] ?? 0).uint(core.stable[j] ?? 0).uint(own).uint(theirs).uint(
      core.collected[j] ?? 0,
    );
  });
  core.rows.record(RECORD, writer.uint(core.rootFloor).uint(core.rootedTo).done());
}

/**
 * Restores everything from the disk's records; returns the next replica number to give (the root's count).
 *
 * @throws CodecError where a record is damaged.
 */
export async function loadState(
  core: Core,
  records: ReadonlyMap<string, Uint8Array>,
  other: (name: string, value: Uint8Array) => boolean,
): Promise<number> {
  const state = records.get(RECORD), gaps = records.get(GAPS_RECORD);
  if (gaps !== undefined) core.gaps = Gaps.decode(gaps);
  core.seenClock = core.clock.last;
  if (state === undefined) {
    // A blank site learns what time it is as it joins; the root has nobody to learn it from.
    if (!core.isRoot) core.wall.resume(0);
    return 0;
  }
  const reader = new Reader(state);
  core.replica = reader.uint();
  core.parentReplica = reader.uint();
  core.rows.resumeAt(reader.uint());
  core.clockBound = reader.uint();
  core.clock.merge(core.clockBound);
  // A site that has not joined yet has no time of its own to go on from.
  core.wall.resume(core.replica === 0 && !core.isRoot ? 0 : unixMs(core.clockBound));
  core.headClock = core.clockBound;
  core.floorSaid = Math.max(0, core.clockBound - core.horizonMs * CLOCK_TICKS_PER_MS);
  core.watermark = reader.uint();
  core.collectedTo = reader.uint();
  core.setPath(reader.list(() => reader.text()));
  const down: number[] = [], stable: number[] = [];
  core.path.forEach((_, j) => {
    down.push(reader.uint());
    stable.push(reader.uint());
    core.reach[j]?.add(reader.uint(), reader.uint());
    core.collected[j] = reader.uint();
    core.fed[j]?.add(core.rows.head, down[j] ?? 0);
  });
  if (!reader.isAtEnd) core.rootFloor = reader.uint();
  if (!reader.isAtEnd) core.rootedTo = reader.uint();
  reader.end();
  core.down = down;
  // Nobody remembers what of these journals was taken before this process.
  core.path.forEach((_, depth) => core.takes(depth));
  core.stable = stable;
  for (const [name, value] of records) {
    if (core.coverage.restore(name, value) || core.stale.restore(name, value)) continue;
    if (!core.damage.restore(name, value)) other(name, value);
  }
  await core.damage.loaded((key) => core.ports.storage.get(key));
  core.seenClock = core.clock.last;
  await loadRows(core);
  const next = decodeJson(records.get("numbers") ?? null);
  return typeof next === "number" ? next : 0;
}

async function loadRows(core: Core): Promise<void> {
  if (!core.isRoot) await loadPending(core);
  for (const row of await core.ports.storage.scan(SYSTEM_RANGE)) core.topology.apply(row);
}

async function loadPending(core: Core): Promise<void> {
  const { storage } = core.ports, head = core.rows.head;
  core.damage.isUnread = true;
  for (let after = Math.max(core.reach[0]?.top ?? 0, core.rootedTo);;) {
    const page = await storage.journal(after, head, LOAD_ROWS, JOURNAL_BYTES);
    for (const row of page) {
      if (row.known > 0) core.pending.add(row);
      if (row.known > 0 && !core.coverage.covers(row.key)) core.leavesLater(row);
    }
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.position;
  }
  core.damage.isUnread = false;
}
