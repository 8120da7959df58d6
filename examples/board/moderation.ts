/** Moderation: authors rate comments up or down, which counts for their writers too, and is written down. */
import { Hono } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { lookUp } from "./comments.ts";
import { countKey, karmaKey, StoryCounts } from "./counters.ts";
import { readForm } from "./form.ts";
import { newId } from "./ids.ts";
import { commentItem, commentRef } from "./items.ts";
import { type App, done, listing, refuse, show } from "./page.ts";
import { PAGE_ROWS } from "./archive.ts";
import { named, Writers } from "./rows.ts";

export const moderation = new Hono<App>();

const ONLY_AUTHORS = "Only authors moderate. Log in as one.";

moderation.get("/stories/:story/comments/:comment/moderate", async (c) => {
  const { story: name, comment: ref } = c.req.param();
  const [found, counts] = await Promise.all([lookUp(c, name, ref), StoryCounts.read(c.env.kv, name)]);
  if (found === null) return refuse(c, 404, "There is no such comment.");
  const { story, comment } = found;
  const writers = await Writers.of(c, [comment]);
  const author = c.var.login?.author === true;
  return show(c, {
    title: `Moderate ${comment.value.subject}`,
    data: { comment, rating: counts.of(comment.value.id).rating, allowed: author, writers: writers.entries },
    body: html`${commentItem(comment, counts, writers)}
      ${
      author
        ? html`
          <form action="stories/${story.value.id}/comments/${commentRef(
            comment.value,
          )}/moderate" method="post">
            <label>Rating
                      <select name="rating"><option value="1">up</option><option value="0">as it is</option>
                        <option value="-1">down</option></select></label>
            <button>Rate</button>
          </form>
        `
        : html`<p>${ONLY_AUTHORS}</p>`
    }`,
  });
});

const ratingForm = z.object({ rating: z.coerce.number().int().min(-1).max(1) });

moderation.post("/stories/:story/comments/:comment/moderate", async (c) => {
  const { login } = c.var;
  if (login === null) return refuse(c, 401, ONLY_AUTHORS);
  if (!login.author) return refuse(c, 403, ONLY_AUTHORS);
  const form = await readForm(c, ratingForm);
  if (!form.ok) return refuse(c, 400, form.message);
  const found = await lookUp(c, c.req.param("story"), c.req.param("comment"));
  if (found === null) return refuse(c, 404, "There is no such comment.");
  const { story, comment } = found;
  const { rating } = form.fields;
  const changes = c.env.kv.atomic().sum(countKey(story.value.id, comment.value.id, "rating"), rating);
  if (comment.value.writer !== "") changes.sum(karmaKey(comment.value.writer), rating);
  await changes.commit();
  const entry = await c.env.tables.moderations.put({
    id: newId(Date.now()),
    moderator: login.user,
    story: story.value.id,
    comment: commentRef(comment.value),
    rating,
  });
  const path = `stories/${story.value.id}/comments/${commentRef(comment.value)}`;
  return done(c, { moderation: named("moderations", entry) }, path);
});

moderation.get("/moderations", async (c) => {
  if (c.var.login?.author !== true) return refuse(c, 403, "Only authors read the moderators' log.");
  const before = c.req.query("before");
  const { rows } = await c.env.tables.moderations.list({
    reverse: true,
    limit: PAGE_ROWS,
    ...before === undefined ? {} : { end: [before] },
  });
  const next = rows.length < PAGE_ROWS ? null : `moderations?before=${rows.at(-1)?.value.id}`;
  const items = rows.map(({ value }) =>
    html`<p><a href="users/${value.moderator}">A moderator</a> rated
      <a href="stories/${value.story}/comments/${value.comment}">a comment</a> ${value.rating}.</p>`
  );
  return show(c, {
    title: "Moderators' log",
    data: { moderations: rows.map((row) => named("moderations", row)) },
    body: listing(items, next, "Nobody has moderated yet."),
  });
});
