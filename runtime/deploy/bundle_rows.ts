/**
 * The rows of versions and their bundles at the root: writing them, and removing those that nothing refers to.
 *
 * Life of a version's rows: chunks → version row, in one write with the app row that names the version (records.ts,
 * REC1) → given up by its app (as the 51st, or when the app is deleted): a row in "retired" says since when → removed
 * when every site has followed, or after a day: a site that is behind may still fetch the bundle that its table points
 * to.
 *
 * BUR1  Rows of a version that any app's row names are never removed.
 * BUR2  Chunks without a version row were left by a deploy that did not come to its end. Removing takes a turn with
 *       deploys, and a deploy that works aside then has written its version's row, and the app row that names it
 *       (turns.ts).
 */
import { z } from "zod";
import type { StoreMutation } from "../../store/api/api.ts";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import type { SystemStore } from "./system_store.ts";
import {
  type AppRecord,
  APPS,
  bundleChunks,
  BUNDLES,
  chunkKey,
  decodeApp,
  RETIRED,
  retiredKey,
  VERSION,
  versionKey,
  type VersionRecord,
  VERSIONS,
} from "./records.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";

/** Chunks in one write: about 2 MB, half of what an app may put in an atomic. */
const CHUNKS_A_WRITE = 32;
/** Deletions in one write: each is a key and a tombstone. */
const KEYS_A_WRITE = 500;
/**
 * Milliseconds after which a retired version is removed anyway: a site that has not followed for so long has other
 * troubles than a version it can't fetch.
 */
const RETIRED_MS_MAX = 24 * 60 * 60_000;

/** Writes a bundle's chunks unless its version is known, and returns the mutation that makes it known (REC1). */
export async function writeBundle(
  system: SystemStore,
  record: VersionRecord,
  bundle: Uint8Array,
): Promise<StoreMutation[]> {
  const key = versionKey(record.version);
  const [known] = await system.get([key]);
  if (known?.value) return [];
  const chunks = bundleChunks(bundle).map((value, index): StoreMutation => ({
    kind: "set",
    key: chunkKey(record.version, index),
    value,
  }));
  for (let at = 0; at < chunks.length; at += CHUNKS_A_WRITE) {
    await system.write(chunks.slice(at, at + CHUNKS_A_WRITE));
  }
  await system.durable();
  return [{ kind: "set", key, value: encodeSystem(record) }];
}

/** Returns the mutations that retire versions, for the write in which their app gives them up. */
export const retire = (app: string, versions: readonly string[], nowMs: number): StoreMutation[] =>
  versions.map((version) => ({
    kind: "set",
    key: retiredKey(version),
    value: encodeSystem({ app, atMs: nowMs } satisfies Retired),
  }));

/**
 * Removes the rows of versions that no app names (BUR1). Call in a turn with deploys (BUR2).
 *
 * @param followed an app whose row every site has followed: versions that it gave up need not wait any more.
 * @returns the versions that were removed.
 */
export async function removeUnused(
  system: SystemStore,
  options: { readonly followed: string | null; readonly nowMs: number },
): Promise<string[]> {
  const used = new Set<string>();
  for (const row of await system.list(APPS)) {
    if (row.value) { for (const version of named(decodeApp(row.value))) used.add(version); }
  }
  const waiting = new Set<string>();
  const gone = new Set<string>();
  const stale: Key[] = [];
  for (const row of await system.list(RETIRED)) {
    const version = String(unpackKey(row.key)[2]);
    if (used.has(version)) stale.push(row.key);
    else if (waits(row.value, options)) waiting.add(version);
    else gone.add(version);
  }
  for (const version of [...await versionsIn(system, VERSIONS, 2), ...await versionsIn(system, BUNDLES, 1)]) {
    if (!used.has(version) && !waiting.has(version)) gone.add(version);
  }
  await removeKeys(system, stale);
  for (const version of gone) await removeVersion(system, version);
  return [...gone];
}

/** Returns the versions that an app's row keeps alive. */
export const named = (record: AppRecord): string[] => [
  ...record.versions.map((entry) => entry.version),
  ...record.preparing === undefined ? [] : [record.preparing.version],
];

/** Removes a version, its row first: nobody finds a version whose chunks are half gone. */
async function removeVersion(system: SystemStore, version: string): Promise<void> {
  await system.write([{ kind: "delete", key: versionKey(version) }]);
  await removeRange(system, prefixRange(packKey(["b", version])));
  await system.write([{ kind: "delete", key: retiredKey(version) }]);
  await system.durable();
}

/** Removes the rows of a range in bounded steps; returns how many, and calls back after each step. */
export async function removeRange(
  system: SystemStore,
  range: Range,
  removed: (rows: number) => void = () => {},
): Promise<number> {
  let total = 0;
  for (;;) {
    const rows = await removeStep(system, range);
    if (rows === 0) return total;
    total += rows;
    removed(rows);
  }
}

/** Removes the first rows of a range, in one step; returns how many, 0 where there are none. */
export async function removeStep(system: SystemStore, range: Range): Promise<number> {
  const rows = await system.list(range, { limit: KEYS_A_WRITE, bytesMax: LIST_BYTES_MAX });
  if (rows.length === 0) return 0;
  await system.write(rows.map((row) => ({ kind: "delete", key: row.key })));
  await system.durable();
  return rows.length;
}

/** Bytes of one list of rows to be removed, as they come with their values. */
const LIST_BYTES_MAX = 4 * 1024 * 1024;

async function removeKeys(system: SystemStore, keys: readonly Key[]): Promise<void> {
  for (let at = 0; at < keys.length; at += KEYS_A_WRITE) {
    await system.write(keys.slice(at, at + KEYS_A_WRITE).map((key) => ({ kind: "delete", key })));
  }
}

/** Returns the versions that have rows in a range, by one read for each: the version is a part of their keys. */
async function versionsIn(system: SystemStore, range: Range, part: number): Promise<string[]> {
  const found: string[] = [];
  let start = range.start;
  for (;;) {
    const [row] = await system.list({ start, end: range.end }, { limit: 1 });
    if (row === undefined) return found;
    const parts = unpackKey(row.key).slice(0, part + 1);
    const version = String(parts[part]);
    if (VERSION.test(version)) found.push(version); // beside bundles, "b" has blobs
    start = prefixRange(packKey(parts)).end;
  }
}

/** Schema of a retired version's row: since when no app names the version, and which app was the last to name it. */
const retiredSchema = z.object({ app: z.string(), atMs: z.number() });
type Retired = z.infer<typeof retiredSchema>;

function waits(
  value: Uint8Array | null,
  { followed, nowMs }: { followed: string | null; nowMs: number },
): boolean {
  const retired = retiredSchema.safeParse(value === null ? null : decodeSystem(value)).data;
  return retired !== undefined && retired.app !== followed && nowMs - retired.atMs <= RETIRED_MS_MAX;
}
