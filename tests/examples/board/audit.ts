/**
 * After the clients have stopped and the tree has come to rest: does the root have everything that was
 * acknowledged?
 *
 * L1  A row is lost when the root has neither its last acknowledged version nor a later one. One that was deleted
 *     at a later version, or may have been, is not lost.
 * L2  A deletion is lost when the root still has a version from before it.
 * L3  A counter is wrong when it is not what was loaded, plus all acknowledged additions, plus some of those that
 *     got no answer.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { History, RowName } from "./history.ts";
import { postJson, type Send } from "./loader.ts";

/** What the audit found. */
export interface Audit {
  readonly rows: number;
  readonly counters: number;
  /** One line for each lost row, lost deletion or wrong counter. */
  readonly findings: readonly string[];
}

interface Expected {
  version: string;
  /** null: deleted. */
  hash: string | null;
  /** Somebody may have deleted it, or did at a version that no answer named. */
  perhapsDeleted: boolean;
}

interface Sum {
  acknowledged: number;
  /** Additions without an answer, by sign. */
  perhapsMore: number;
  perhapsLess: number;
}

const READ_AT_ONCE = 200;

const answerSchema = z.object({
  rows: z.array(z.object({ versionstamp: z.string(), value: z.unknown() }).nullable()),
  sums: z.array(z.number().nullable()),
});

/** Reads all that was written, through the app at the root. */
export async function audit(
  history: History,
  loaded: ReadonlyMap<string, number>,
  root: Send,
  adminToken: string,
): Promise<Audit> {
  const rows = expectedRows(history);
  const sums = expectedSums(history);
  const born = new Set([...rows.keys()].map((row) => row.split("/").at(-1)));
  const findings: string[] = [];
  const read = async (asked: unknown) =>
    answerSchema.parse(await postJson(root, "/admin/read", JSON.stringify(asked), adminToken));
  for (const chunk of chunks([...rows])) {
    const answer = await read({ rows: chunk.map(([row]) => parseName(row)) });
    for (const [i, [row, expected]] of chunk.entries()) {
      const finding = judgeRow(row, expected, answer.rows[i] ?? null);
      if (finding !== null) findings.push(finding);
    }
  }
  for (const chunk of chunks([...sums])) {
    const answer = await read({ sums: chunk.map(([counter]) => JSON.parse(counter)) });
    for (const [i, [counter, sum]] of chunk.entries()) {
      const base = loaded.get(counter);
      const [, , comment, what] = JSON.parse(counter);
      // A comment whose posting got no answer starts with a rating that nobody was told.
      const start = what === "rating" && base === undefined && !born.has(comment) ? 1 : 0;
      const bounds = { ...sum, perhapsMore: sum.perhapsMore + start };
      const finding = judgeSum(counter, bounds, base ?? 0, answer.sums[i] ?? 0);
      if (finding !== null) findings.push(finding);
    }
  }
  return { rows: rows.size, counters: sums.size, findings };
}

/** The newest acknowledged version of every row that anybody wrote. */
export function expectedRows(history: History): Map<RowName, Expected> {
  const rows = new Map<RowName, Expected>();
  for (const operation of history.sessions.flat()) {
    if (operation.outcome === "refused") continue;
    for (const { row, version, hash } of operation.written) {
      // The row that stands for a login has no counterpart that an operator could read.
      if (row.startsWith("login/")) continue;
      const before = rows.get(row) ?? { version: "", hash: null, perhapsDeleted: false };
      if (version === null) rows.set(row, { ...before, perhapsDeleted: true });
      else if (version > before.version) {
        rows.set(row, { version, hash, perhapsDeleted: before.perhapsDeleted });
      }
    }
  }
  for (const [row, expected] of rows) if (expected.version === "") rows.delete(row);
  return rows;
}

/** Says what is wrong with a row, if anything is. */
export function judgeRow(
  row: RowName,
  expected: Expected,
  found: { readonly versionstamp: string; readonly value: unknown } | null,
): string | null {
  if (found === null) {
    const fine = expected.hash === null || expected.perhapsDeleted;
    return fine ? null : `${row} is absent at the root; ${expected.version} was acknowledged`;
  }
  if (found.versionstamp < expected.version) {
    const what = expected.hash === null ? "its deletion" : "a version";
    return `${row} is ${found.versionstamp} at the root; ${what} ${expected.version} was acknowledged`;
  }
  const hash = createHash("sha1").update(JSON.stringify(found.value)).digest("base64");
  const same = found.versionstamp !== expected.version || hash === expected.hash;
  return same ? null : `${row}@${expected.version} has another content at the root than was acknowledged`;
}

function expectedSums(history: History): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const operation of history.sessions.flat()) {
    if (operation.outcome === "refused") continue;
    for (const { counter, by } of operation.added) {
      const sum = sums.get(counter) ?? { acknowledged: 0, perhapsMore: 0, perhapsLess: 0 };
      if (operation.outcome === "acknowledged") sum.acknowledged += by;
      else if (by > 0) sum.perhapsMore += by;
      else sum.perhapsLess += by;
      sums.set(counter, sum);
    }
  }
  return sums;
}

/** Says what is wrong with a counter, if anything is. */
export function judgeSum(counter: string, sum: Sum, loaded: number, found: number): string | null {
  const least = loaded + sum.acknowledged + sum.perhapsLess;
  const most = loaded + sum.acknowledged + sum.perhapsMore;
  if (found >= least && found <= most) return null;
  return `${counter} is ${found} at the root, not ${least === most ? least : `${least} to ${most}`}`;
}

const parseName = (row: RowName): { table: string; key: string[] } => {
  const [table = "", ...key] = row.split("/");
  return { table, key };
};

function* chunks<T>(items: readonly T[]): Iterable<T[]> {
  for (let i = 0; i < items.length; i += READ_AT_ONCE) yield items.slice(i, i + READ_AT_ONCE);
}
