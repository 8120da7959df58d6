/** Reading of a bundle's bytes from the rows that the root wrote (bundle_rows.ts). */
import type { Range } from "../../store/model/range.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import { bundleDigest, bundleRange, type VersionRecord } from "./records.ts";
import type { SystemStore } from "./system_store.ts";

/** Chunks in one read, to stay within what one read should hold in memory. */
const CHUNKS_A_READ = 32;

/**
 * Returns a version's bundle, read through the replica (which fetches it from the parent where it is not here).
 *
 * @throws Error where a chunk is missing or the bytes are not the version's.
 */
export async function fetchBundle(system: SystemStore, record: VersionRecord): Promise<Uint8Array> {
  const bundle = new Uint8Array(record.bundleBytes);
  let at = 0;
  let range: Range = bundleRange(record.version);
  for (let left = record.bundleChunks; left > 0;) {
    const rows = await system.list(range, { limit: Math.min(left, CHUNKS_A_READ) });
    for (const row of rows) {
      const chunk = untagged(row.value ?? new Uint8Array());
      if (row.value === null || at + chunk.length > bundle.length) break;
      bundle.set(chunk, at);
      at += chunk.length;
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    range = { start: last.key + "\x00" as Range["start"], end: range.end };
    left -= rows.length;
  }
  if (at !== bundle.length || bundleDigest(bundle) !== record.bundleSha256) {
    throw new Error(
      `the bundle of version ${record.version} is not whole here: ${at} of ${bundle.length} bytes`,
    );
  }
  return bundle;
}

/**
 * Returns a chunk's bytes. A bundle that was deployed before chunks had tags is text, which does not begin with the
 * tag.
 */
const untagged = (value: Uint8Array): Uint8Array => value[0] === VALUE_TAG.bytes ? value.subarray(1) : value;
