/**
 * Entries in the key space: ["entry", time, id] → entry, and ["count"] → how many, kept by `sum` so that entries
 * signed at several sites at once all count.
 */
import type { Kv } from "sojourn";
import * as z from "zod";

const entrySchema = z.object({
  name: z.string().trim().min(1, "tell us your name").max(40, "a name has at most 40 characters"),
  text: z.string().trim().min(1, "write something").max(500, "an entry has at most 500 characters"),
});

/** One entry. */
export interface Entry {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Entries of one page, newest first. */
export interface Book {
  readonly entries: readonly Entry[];
  /** Where older entries begin; null when there are none. */
  readonly cursor: string | null;
  readonly count: number;
}

const PAGE_ROWS = 20;

/** The entries behind a cursor, newest first. */
export async function listEntries(kv: Kv, cursor = ""): Promise<Book> {
  const list = kv.list<Entry>({ prefix: ["entry"] }, { reverse: true, limit: PAGE_ROWS, cursor });
  const [entries, count] = await Promise.all([
    Array.fromAsync(list, (row) => row.value),
    kv.get<number>(["count"]),
  ]);
  return {
    entries,
    cursor: entries.length < PAGE_ROWS ? null : list.cursor,
    count: count.value ?? 0,
  };
}

/** Adds an entry, or says what is wrong with it. */
export async function sign(
  kv: Kv,
  fields: Record<string, unknown>,
): Promise<{ ok: true; entry: Entry } | { ok: false; problem: string }> {
  const parsed = entrySchema.safeParse(fields);
  if (!parsed.success) return { ok: false, problem: parsed.error.issues.map((i) => i.message).join(", ") };
  const entry: Entry = { id: crypto.randomUUID(), at: Date.now(), ...parsed.data };
  await kv.atomic().set(["entry", entry.at, entry.id], entry).sum(["count"], 1).commit();
  return { ok: true, entry };
}
