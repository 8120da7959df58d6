/**
 * Stories in two tables: those of the last days, and the older ones. Pages read both; `moveOld` takes what has
 * aged from the one to the other.
 *
 * O1  A story is copied before it is deleted, so it is always in one table at least; readers look at the newer
 *     table first, and lists show a story that is in both once.
 * O2  Comments follow their story. Somebody who does not know yet that the story moved may still comment in the
 *     newer table, so a level of an old story is read from both.
 */
import type { Ctx } from "./page.ts";
import { idAt } from "./ids.ts";
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

/** One story, wherever it lives. */
export async function findStory(c: Ctx, id: string): Promise<StoryEntry | null> {
  for (const table of ["stories", "oldStories"] as const) {
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
  story: StoryEntry,
  at: { readonly parent: string; readonly id: string },
): Promise<CommentEntry | null> {
  for (const table of commentTables(story)) {
    const entry = await c.env.tables[table].get([story.value.id, at.parent, at.id]);
    if (entry !== null) return named(table, entry);
  }
  return null;
}

/** A page of one level of a story's comments, oldest first. */
export async function listComments(
  c: Ctx,
  story: StoryEntry,
  level: { readonly parent: string; readonly after?: string },
): Promise<{ rows: CommentEntry[]; next: string | null }> {
  const { id } = story.value;
  const found = new Map<string, CommentEntry>();
  for (const table of commentTables(story)) {
    const { rows } = await c.env.tables[table].list({
      prefix: [id, level.parent],
      // The smallest id above: one digit longer.
      ...level.after === undefined ? {} : { start: [id, level.parent, `${level.after}0`] },
      limit: PAGE_ROWS,
    });
    for (const entry of rows) found.set(entry.value.id, named(table, entry));
  }
  const rows = [...found.values()].sort((a, b) => a.value.id < b.value.id ? -1 : 1).slice(0, PAGE_ROWS);
  return { rows, next: found.size >= PAGE_ROWS ? rows.at(-1)?.value.id ?? null : null };
}

/** Where comments on a story are stored, then where else they may be. */
export const commentTables = (story: StoryEntry): readonly ("comments" | "oldComments")[] =>
  story.table === "stories" ? ["comments"] : ["oldComments", "comments"];

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
