/**
 * Stories in two tables: those of the last days, and the older ones. Pages read both; `moveOld` takes what has
 * aged from the one to the other.
 *
 * O1  A story is copied before it is deleted, so it is always in one table at least; readers look at the newer
 *     table first, and lists show a story that is in both once.
 * O2  Comments follow their story. Somebody who does not know yet that the story moved may still comment in the
 *     newer table, so comments are read from both.
 */
import type { Ctx } from "./page.ts";
import { idAt, timeOf } from "./ids.ts";
import { type CommentEntry, named, type StoryEntry } from "./rows.ts";

/** Stories on a page. */
export const PAGE_ROWS = 20;

/** Which stories a page shows: newest first, older than `before`, not older than `from`. */
export interface StoryPage {
  readonly category?: string;
  readonly before?: string;
  readonly from?: string;
  readonly limit?: number;
}

/** After this, a story is more likely to have been moved than not; a wrong guess costs one read more. */
const OLD_MS = 3 * 86_400_000;

/** One story, wherever it lives. */
export async function findStory(c: Ctx, id: string): Promise<StoryEntry | null> {
  const isOld = Date.now() - timeOf(id) > OLD_MS;
  const tables = isOld ? ["oldStories", "stories"] as const : ["stories", "oldStories"] as const;
  for (const table of tables) {
    const entry = await c.env.tables[table].get([id]);
    if (entry !== null) return named(table, entry);
  }
  return null;
}

/** A page of stories, and where the next one begins (null at the end). */
export async function listStories(
  c: Ctx,
  page: StoryPage,
): Promise<{ rows: StoryEntry[]; next: string | null }> {
  const limit = page.limit ?? PAGE_ROWS;
  const rows: StoryEntry[] = [];
  for (const table of ["stories", "oldStories"] as const) {
    const found = await storiesOf(c, table, page, limit - rows.length);
    const shown = new Set(rows.map((row) => row.value.id));
    rows.push(...found.filter((row) => !shown.has(row.value.id)));
    if (rows.length >= limit) return { rows, next: rows.at(-1)?.value.id ?? null };
  }
  return { rows, next: null };
}

async function storiesOf(
  c: Ctx,
  table: "stories" | "oldStories",
  { category, before, from }: StoryPage,
  limit: number,
): Promise<StoryEntry[]> {
  const stories = c.env.tables[table];
  const order = { reverse: true, limit } as const;
  const page = category === undefined
    ? stories.list({
      ...order,
      ...from === undefined ? {} : { start: [from] },
      ...before === undefined ? {} : { end: [before] },
    })
    : stories.list({
      ...order,
      index: "category",
      prefix: [category],
      ...before === undefined ? {} : { end: [category, before] },
    });
  return (await page).rows.map((entry) => named(table, entry));
}

/** One comment of a story. */
export async function findComment(
  c: Ctx,
  story: string,
  at: { readonly parent: string; readonly id: string },
): Promise<CommentEntry | null> {
  const found = await Promise.all(COMMENT_TABLES.map(async (table) => {
    const entry = await c.env.tables[table].get([story, at.parent, at.id]);
    return entry === null ? [] : [named(table, entry)];
  }));
  return found.flat()[0] ?? null;
}

/** A page of one level of a story's comments, oldest first. */
export async function listComments(
  c: Ctx,
  story: string,
  level: { readonly parent: string; readonly after: string | undefined },
): Promise<{ rows: CommentEntry[]; next: string | null }> {
  const found = new Map<string, CommentEntry>();
  await Promise.all(COMMENT_TABLES.map(async (table) => {
    const { rows } = await c.env.tables[table].list({
      prefix: [story, level.parent],
      // The smallest id above: one digit longer.
      ...level.after === undefined ? {} : { start: [story, level.parent, `${level.after}0`] },
      limit: PAGE_ROWS,
    });
    for (const entry of rows) found.set(entry.value.id, named(table, entry));
  }));
  const rows = [...found.values()].sort((a, b) => a.value.id < b.value.id ? -1 : 1).slice(0, PAGE_ROWS);
  return { rows, next: found.size >= PAGE_ROWS ? rows.at(-1)?.value.id ?? null : null };
}

const COMMENT_TABLES = ["comments", "oldComments"] as const;

/** Where a new comment on a story is stored. */
export const commentTable = (story: StoryEntry): "comments" | "oldComments" =>
  story.table === "stories" ? "comments" : "oldComments";

/** Moves stories from before a time, and their comments, a few at a time; how many were moved. */
export async function moveOld(c: Ctx, beforeMs: number, limit: number): Promise<number> {
  const { stories, oldStories, comments, oldComments } = c.env.tables;
  const { rows } = await stories.list({ end: [idAt(beforeMs)], limit });
  for (const { key, value } of rows) {
    await oldStories.put(value);
    await stories.delete(key);
    for await (const comment of comments.list({ prefix: [value.id] })) {
      await oldComments.put(comment.value);
      await comments.delete(comment.key);
    }
  }
  return rows.length;
}
