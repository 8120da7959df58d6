/** Pages that list and show stories: of the day, by category, by date, one with its discussion. */
import { Hono } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { findStory, listComments, listStories } from "./archive.ts";
import { RATING_MIN, StoryCounts } from "./counters.ts";
import { readForm } from "./form.ts";
import { idAt } from "./ids.ts";
import { byline, commentItem, storyItem } from "./items.ts";
import { type App, type Ctx, done, listing, type Markup, refuse, show } from "./page.ts";
import { named, Writers } from "./rows.ts";

/** Stories on the first page. */
const OF_THE_DAY = 10;

export const stories = new Hono<App>();

stories.get("/", async (c) => {
  const { rows } = await listStories(c, { limit: OF_THE_DAY });
  const writers = await Writers.of(c, rows);
  return show(c, {
    title: "Stories of the day",
    data: { stories: rows, writers: writers.entries },
    body: listing(rows.map((row) => storyItem(row, writers)), null, "There are no stories yet."),
  });
});

stories.get("/browse", (c) =>
  show(c, {
    title: "Browse",
    data: { pages: ["categories", "older"] },
    body: html`
      <ul>
        <li><a href="categories">By category</a></li>
        <li><a href="older">By date</a></li>
      </ul>
    `,
  }));

stories.get("/categories", async (c) => {
  const { rows } = await c.env.tables.categories.list();
  const form = html`<form action="categories" method="post">
    <label>New category <input name="name" required maxlength="60"></label><button>Add</button>
  </form>`;
  return show(c, {
    title: "Categories",
    data: { categories: rows.map((row) => named("categories", row)) },
    body: html`<ul>${
      rows.map(({ value }) => html`<li><a href="categories/${value.id}">${value.name}</a></li>`)
    }</ul>${c.var.login?.author === true ? form : ""}`,
  });
});

const categoryForm = z.object({ name: z.string().trim().regex(/[\p{L}\p{N}]/u, "needs a letter").max(60) });

stories.post("/categories", async (c) => {
  if (c.var.login?.author !== true) return refuse(c, 403, "Only authors add categories. Log in as one.");
  const form = await readForm(c, categoryForm);
  if (!form.ok) return refuse(c, 400, form.message);
  const { name } = form.fields;
  const id = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
  const entry = await c.env.tables.categories.put({ id, name });
  return done(c, { category: named("categories", entry) }, "categories");
});

stories.get("/categories/:category", async (c) => {
  const id = c.req.param("category");
  const category = await c.env.tables.categories.get([id]);
  if (category === null) return refuse(c, 404, `There is no category ${id}.`);
  const before = c.req.query("before");
  const { rows, next } = await listStories(c, { category: id, ...before === undefined ? {} : { before } });
  const writers = await Writers.of(c, rows);
  const more = next === null ? null : `categories/${id}?before=${next}`;
  return show(c, {
    title: category.value.name,
    data: { category: named("categories", category), stories: rows, next, writers: writers.entries },
    body: listing(rows.map((row) => storyItem(row, writers)), more, "There are no stories here."),
  });
});

stories.get("/older", async (c) => {
  const from = dayOf(c, "from");
  const to = dayOf(c, "to");
  if (from === "bad" || to === "bad") return refuse(c, 400, "A date is written as 2026-01-31.");
  const before = c.req.query("before") ?? (to === undefined ? undefined : idAt(to + DAY_MS));
  const { rows, next } = await listStories(c, {
    ...from === undefined ? {} : { from: idAt(from) },
    ...before === undefined ? {} : { before },
  });
  const writers = await Writers.of(c, rows);
  const days = new URLSearchParams(c.req.query());
  if (next !== null) days.set("before", next);
  return show(c, {
    title: "Stories by date",
    data: { stories: rows, next, writers: writers.entries },
    body: html`
      <form action="older">
        <label>From <input type="date" name="from" value="${c.req.query("from") ?? ""}"></label>
        <label>To <input type="date" name="to" value="${c.req.query("to") ?? ""}"></label>
        <button>Show</button>
      </form>
            ${listing(
              rows.map((row) => storyItem(row, writers)),
              next === null ? null : `older?${days}`,
              "None.",
            )}
    `,
  });
});

stories.get("/stories/:story", async (c) => {
  const name = c.req.param("story");
  const threshold = Number(c.req.query("filter") ?? RATING_MIN);
  // At once: a site that has none of it asks its parent once for all.
  const [story, counts, comments] = await Promise.all([
    findStory(c, name),
    StoryCounts.read(c.env.kv, name),
    listComments(c, name, { parent: "", after: c.req.query("after") }),
  ]);
  if (story === null) return refuse(c, 404, "There is no such story.");
  const writers = await Writers.of(c, [story, ...comments.rows]);
  const shown = comments.rows.filter((row) => counts.of(row.value.id).rating >= threshold);
  const { id, title, body } = story.value;
  const more = comments.next === null ? null : `stories/${id}?after=${comments.next}&filter=${threshold}`;
  return show(c, {
    title,
    data: {
      story,
      comments: comments.rows,
      shown: shown.map((row) => row.value.id),
      counts: counts.toJSON(),
      ratings: counts.byRating(),
      next: comments.next,
      writers: writers.entries,
    },
    body: html`
      <article>
        <p>${byline(story, writers)}</p>
        <pre>${body}</pre>
      </article>
            <p><a href="stories/${id}/reply">Comment on this story</a></p>
            ${ratingFilter(id, threshold, counts)}
            ${listing(shown.map((row) => commentItem(row, counts, writers)), more, "No comments to show.")}
    `,
  });
});

function ratingFilter(story: string, threshold: number, counts: StoryCounts): Markup {
  const options = counts.byRating().map(({ rating, count }) =>
    html`<option value="${rating}" ${rating === threshold ? "selected" : ""}>${rating} (${count})</option>`
  );
  return html`<form action="stories/${story}">
    <label>Show comments rated at least <select name="filter">${options}</select></label><button>Show</button>
  </form>`;
}

const DAY_MS = 86_400_000;

function dayOf(c: Ctx, name: string): number | undefined | "bad" {
  const text = c.req.query(name);
  if (text === undefined || text === "") return undefined;
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(day) ? "bad" : day;
}
