/** Submissions: anybody who is logged in offers a story; authors accept or reject it. */
import { Hono } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { PAGE_ROWS } from "./archive.ts";
import { readForm } from "./form.ts";
import { newId } from "./ids.ts";
import { storyItem } from "./items.ts";
import { type App, done, listing, refuse, show } from "./page.ts";
import { sought, TITLE_MAX } from "./resources.ts";
import { named, Writers } from "./rows.ts";

export const submissions = new Hono<App>();

const LOG_IN = "Log in to submit a story.";
const ONLY_AUTHORS = "Only authors review submissions. Log in as one.";

submissions.get("/submit", async (c) => {
  const { rows } = await c.env.tables.categories.list();
  return show(c, {
    title: "Submit a story",
    data: { categories: rows.map((row) => named("categories", row)), as: c.var.login?.user ?? null },
    body: html`
      ${c.var.login === null ? html`<p>${LOG_IN}</p>` : ""}
            <form action="submissions" method="post">
        <label>Title <input name="title" required maxlength="${TITLE_MAX}"></label>
        <label>Category <select name="category">${rows.map(({ value }) =>
          html`<option value="${value.id}">${value.name}</option>`
        )}</select></label>
        <label>Story <textarea name="body" rows="12" required></textarea></label>
        <button>Submit</button>
      </form>
    `,
  });
});

const storyForm = z.object({
  title: z.string().trim().min(1).max(TITLE_MAX),
  body: z.string().trim().min(1).max(20_000),
  category: z.string(),
});

submissions.post("/submissions", async (c) => {
  const { login } = c.var;
  if (login === null) return refuse(c, 401, LOG_IN);
  const form = await readForm(c, storyForm);
  if (!form.ok) return refuse(c, 400, form.message);
  const { title, body, category } = form.fields;
  if (await c.env.tables.categories.get([category]) === null) {
    return refuse(c, 400, `There is no category ${category}.`);
  }
  const entry = await c.env.tables.submissions.put({
    id: newId(Date.now()),
    title,
    sought: sought(title),
    body,
    category,
    writer: login.user,
  });
  return done(c, { submission: named("submissions", entry) }, "submissions");
});

submissions.get("/submissions", async (c) => {
  const before = c.req.query("before");
  const { rows } = await c.env.tables.submissions.list({
    reverse: true,
    limit: PAGE_ROWS,
    ...before === undefined ? {} : { end: [before] },
  });
  const entries = rows.map((row) => named("submissions", row));
  const writers = await Writers.of(c, entries);
  const next = rows.length < PAGE_ROWS ? null : rows.at(-1)?.value.id ?? null;
  const author = c.var.login?.author === true;
  const items = entries.map((row) => {
    const verdict = (what: string, label: string) =>
      html`<form action="submissions/${row.value.id}/${what}" method="post"><button>${label}</button></form>`;
    const review = author
      ? html`<nav>${verdict("accept", "Accept")} ${verdict("reject", "Reject")}</nav>`
      : "";
    return html`${storyItem(row, writers)}${review}`;
  });
  return show(c, {
    title: "Submissions",
    data: { submissions: entries, next, writers: writers.entries },
    body: listing(items, next === null ? null : `submissions?before=${next}`, "Nothing waits for review."),
  });
});

for (const verdict of ["accept", "reject"] as const) {
  submissions.post(`/submissions/:submission/${verdict}`, async (c) => {
    const { login } = c.var;
    if (login === null) return refuse(c, 401, ONLY_AUTHORS);
    if (!login.author) return refuse(c, 403, ONLY_AUTHORS);
    const { stories, submissions: waiting } = c.env.tables;
    const submission = await waiting.get([c.req.param("submission")]);
    if (submission === null) return refuse(c, 404, "That submission has been reviewed already.");
    // The story keeps the submission's id: two authors who accept it at the same time publish one story.
    const story = verdict === "accept" ? named("stories", await stories.put(submission.value)) : null;
    const removed = await waiting.atomic().delete(submission.key).commit();
    return done(c, {
      story,
      removed: {
        ...named("submissions", submission),
        versionstamp: removed.ok ? removed.versionstamp : null,
      },
    }, story === null ? "submissions" : `stories/${story.value.id}`);
  });
}
