/** What the board's JSON answers say, as the clients' records have it. */
import { createHash } from "node:crypto";
import type { Counted, History, Placement, Seen, Written } from "./history.ts";

/** A row in an answer: the app puts its table, key and version beside the value. */
export interface AnsweredRow {
  readonly table: string;
  readonly key: readonly string[];
  readonly versionstamp: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The name of a row in the records. */
export const nameOf = (row: { readonly table: string; readonly key: readonly string[] }): string =>
  `${row.table}/${row.key.join("/")}`;

/** A field of a row as text. */
export const textOf = (row: AnsweredRow, field: string): string => String(row.value[field] ?? "");

const isRow = (value: object): value is AnsweredRow =>
  "table" in value && typeof value.table === "string" && "key" in value && Array.isArray(value.key) &&
  "versionstamp" in value && typeof value.versionstamp === "string" && "value" in value;

/** All rows anywhere in an answer. */
export function rowsIn(answer: unknown): AnsweredRow[] {
  if (typeof answer !== "object" || answer === null) return [];
  if (!Array.isArray(answer) && isRow(answer)) return [answer];
  return Object.values(answer).flatMap(rowsIn);
}

/** The rows under one name of an answer. */
export const rowsAt = (answer: unknown, name: string): AnsweredRow[] => rowsIn(at(answer, name));

/** The text under one name of an answer; null where there is none. */
export function textAt(answer: unknown, name: string): string | null {
  const value = at(answer, name);
  return typeof value === "string" ? value : null;
}

function at(answer: unknown, name: string): unknown {
  return typeof answer === "object" && answer !== null
    ? (answer as Record<string, unknown>)[name]
    : undefined;
}

const hashOf = (row: AnsweredRow): string =>
  createHash("sha1").update(JSON.stringify(row.value)).digest("base64");

/** A row as read; where it is listed is noted in the history. */
export function seen(history: History, row: AnsweredRow): Seen {
  const name = nameOf(row);
  history.place(name, placementsOf(row));
  return { row: name, version: row.versionstamp, hash: hashOf(row) };
}

/** A row as written. */
export function written(history: History, row: AnsweredRow): Written {
  const name = nameOf(row);
  history.place(name, placementsOf(row));
  return { row: name, version: row.versionstamp, hash: hashOf(row) };
}

/** The groups that list a row: levels of discussions, stories of all ages, of a category, and submissions. */
function placementsOf(row: AnsweredRow): Placement[] {
  const place = row.key.at(-1) ?? "";
  switch (row.table) {
    case "stories":
    case "oldStories":
      return [{ group: "stories", place }, { group: categoryGroup(textOf(row, "category")), place }];
    case "submissions":
      return [{ group: "submissions", place }];
    case "comments":
    case "oldComments":
      return [{ group: levelGroup(row.key[0] ?? "", row.key[1] ?? ""), place }];
    default:
      return [];
  }
}

export const categoryGroup = (category: string): string => `category/${category}`;
export const levelGroup = (story: string, parent: string): string => `level/${story}/${parent}`;
/** The counter behind one of the app's kv sums. */
export const counterOf = (key: readonly string[]): string => JSON.stringify(key);

/** The numbers of answers that an answer shows: they only grow. */
export function childrenIn(answer: unknown, story: string): Counted[] {
  const counts = at(answer, "counts");
  if (typeof counts !== "object" || counts === null) return [];
  return Object.entries(counts).flatMap(([comment, count]) => {
    const value = at(count, "children");
    return typeof value === "number"
      ? [{ counter: counterOf(["counts", story, comment, "children"]), value }]
      : [];
  });
}
