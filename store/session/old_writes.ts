/**
 * Judgement of writes as old as the watermark that one writer, and nobody else, may have made before (`writeOld`).
 *
 * Rows up to the watermark that were ever applied, and not lost with all disks that had them, are in the root's
 * journal, or what came after them is (PROTOCOL I9); this site has the same of what it covers. A writer applies its
 * writes one after the other, each as a whole. So of each key one of these holds:
 *
 * OL1  Its row is as new as the last write of it, or newer: that was applied, or it makes no difference.
 * OL2  Its row is older: that write was never applied, nor is it anywhere. It is written anew.
 * OL3  There is no row: it was never written, or it was, and has been deleted and collected since. Where a row of a
 *     later write, or of the same one, is as that wrote it, all before it was applied; where one of an earlier write,
 *     or of the same one, is older than that, nothing after it was. Else nobody can tell, and it is not written: what
 *     was deleted would live again, and nobody would know why.
 * OL4  What is written anew has the version right after the watermark, which stands still meanwhile: whatever was
 *     written since, and has not come here, is newer. So it is the same wherever two homes of one session do this, one
 *     of which is no home any more: neither undoes what the other, or anybody after it, has written.
 * OL5  What is written, and what its writer has merged before, in between or after it, stand in the journal next to each
 *     other, with nothing awaited in between (store/rows/rows.ts W2): no site shows a part of that. One row that is
 *     written anew may stand for writes on both sides of a merge, so in no order would each show all that its writer
 *     had done before it.
 */
import type { DatedWrite, PlainMutation } from "../api/api.ts";
import type { Key } from "../model/key.ts";
import { type ClockValue, compareVersions, type Row } from "../model/row.ts";

/** Rows that stand for the keys of old writes, and the watermark that bounds what may be missing. */
export interface OldRows {
  readonly watermark: ClockValue;
  readonly nowMs: number;
  readonly stands: ReadonlyMap<Key, Row | undefined>;
}

/**
 * Judges those of a writer's writes, given in their order, that are not above the watermark.
 *
 * @returns `open`: mutations to be written anew; `left`: keys of which nobody can tell (OL3).
 */
export function judgeOld(
  writes: readonly DatedWrite[],
  { watermark, nowMs, stands }: OldRows,
): { readonly open: readonly PlainMutation[]; readonly left: readonly Key[] } {
  /**
   * Index of the last write of which a row is as it wrote it (`applied`), and of the first of which a row is older
   * (`never`).
   */
  let applied = -1, never = Infinity;
  const last = new Map<
    Key,
    { readonly mutation: PlainMutation; readonly order: number | null; at: number }
  >();
  writes.forEach(({ mutations, version }, at) => {
    if (version.clock > watermark) {
      // The key is written after these, under its own version.
      for (const { key } of mutations) last.delete(key);
      return;
    }
    for (const mutation of mutations) {
      const row = stands.get(mutation.key);
      const order = row === undefined ? null : compareVersions(row, version);
      if (order === 0) applied = at;
      if (order !== null && order < 0) never = Math.min(never, at);
      last.set(mutation.key, { mutation, order, at });
    }
  });
  const open: PlainMutation[] = [], left: Key[] = [];
  for (const { mutation, order, at } of last.values()) {
    if (order !== null && order >= 0) continue; // OL1
    if (isMoot(mutation, order === null, nowMs)) continue;
    if (order !== null || (at >= never && at > applied)) open.push(mutation); // OL2
    else if (at > applied) left.push(mutation.key); // OL3
  }
  return { open, left };
}

/**
 * Reports whether a mutation would make no difference: its row would have expired by now, or what it deletes is not
 * there.
 */
function isMoot(mutation: PlainMutation, isAbsent: boolean, nowMs: number): boolean {
  if (mutation.kind === "delete") return isAbsent;
  const { expiresAtMs = 0 } = mutation;
  return expiresAtMs !== 0 && expiresAtMs <= nowMs;
}
