/** Search by the beginning of a story's title, a comment's subject or a nickname: ranges of an index. */
import { Hono } from "hono";
import { html } from "hono/html";
import { PAGE_ROWS } from "./archive.ts";
import { commentRef, storyItem } from "./items.ts";
import { type App, type Ctx, listing, type Markup, show } from "./page.ts";
import { sought } from "./resources.ts";
import { named, Writers } from "./rows.ts";

export const search = new Hono<App>();

/** The last of all characters: a range up to here holds every continuation. */
const LAST = "\u{10ffff}";

const WHAT = { stories: "Titles of stories", comments: "Subjects of comments", users: "Nicknames" };

search.get("/search", (c) =>
  show(c, {
    title: "Search",
    data: { in: Object.keys(WHAT) },
    body: html`${Object.keys(WHAT).map((what) => searchForm(what as keyof typeof WHAT, ""))}`,
  }));

search.get("/search/stories", async (c) => {
  const found = await Promise.all((["stories", "oldStories"] as const).map(async (table) => {
    const { rows } = await c.env.tables[table].list({ index: "title", ...beginning(c), limit: PAGE_ROWS });
    return rows.map((row) => named(table, row));
  }));
  const entries = found.flat();
  const writers = await Writers.of(c, entries);
  return results(
    c,
    "stories",
    { stories: entries, writers: writers.entries },
    entries.map((row) => storyItem(row, writers)),
  );
});

search.get("/search/comments", async (c) => {
  const found = await Promise.all((["comments", "oldComments"] as const).map(async (table) => {
    const { rows } = await c.env.tables[table].list({ index: "subject", ...beginning(c), limit: PAGE_ROWS });
    return rows.map((row) => named(table, row));
  }));
  const entries = found.flat();
  const items = entries.map(({ value }) =>
    html`
      <article>
        <h2><a href="stories/${value.story}/comments/${commentRef(value)}">${value.subject}</a></h2>
      </article>
    `
  );
  return results(c, "comments", { comments: entries }, items);
});

search.get("/search/users", async (c) => {
  const { rows } = await c.env.tables.users.list({ index: "nickname", ...beginning(c), limit: PAGE_ROWS });
  return results(
    c,
    "users",
    { users: rows.map((row) => named("users", row)) },
    rows.map(({ value }) => html`<p><a href="users/${value.id}">${value.nickname}</a></p>`),
  );
});

/** The interval of what begins with the query; an empty one finds nothing. */
function beginning(c: Ctx): { start: readonly [string]; end: readonly [string] } {
  const query = sought(c.req.query("q")?.trim() ?? "");
  return { start: [query], end: [query === "" ? "" : query + LAST] };
}

function results(
  c: Ctx,
  what: keyof typeof WHAT,
  data: Readonly<Record<string, unknown>>,
  items: readonly Markup[],
): Promise<Response> {
  const query = c.req.query("q") ?? "";
  return show(c, {
    title: "Search",
    data: { query, ...data },
    body: html`${searchForm(what, query)}${listing(items, null, query === "" ? "" : "Nothing begins so.")}`,
  });
}

const searchForm = (what: keyof typeof WHAT, query: string): Markup =>
  html`
    <form action="search/${what}" role="search">
      <label>${WHAT[what]} that begin with <input type="search" name="q" required value="${query}"></label>
      <button>Search</button>
    </form>
  `;
