/** Discussions: one comment with its answers, the form to write one, and storing it. */
import { Hono } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { commentTable, findComment, findStory, listComments } from "./archive.ts";
import { countKey, StoryCounts } from "./counters.ts";
import { readForm } from "./form.ts";
import { newId } from "./ids.ts";
import { commentItem, commentRef, parseCommentRef } from "./items.ts";
import { type App, type Ctx, done, listing, refuse, show } from "./page.ts";
import { sought, TITLE_MAX } from "./resources.ts";
import { type CommentEntry, named, type StoryEntry, Writers } from "./rows.ts";

export const comments = new Hono<App>();

/** What a comment starts with: one's name counts for something. */
const RATING_OF_USER = 1;
const RATING_OF_ANYBODY = 0;

comments.get("/stories/:story/comments/:comment", async (c) => {
  const { story: name, comment: ref } = c.req.param();
  const [found, counts, answers] = await Promise.all([
    lookUp(c, name, ref),
    StoryCounts.read(c.env.kv, name),
    listComments(c, name, { parent: parseCommentRef(ref).id, after: c.req.query("after") }),
  ]);
  if (found === null) return refuse(c, 404, "There is no such comment.");
  const { story, comment } = found;
  const writers = await Writers.of(c, [comment, ...answers.rows]);
  const path = `stories/${story.value.id}/comments/${commentRef(comment.value)}`;
  const more = answers.next === null ? null : `${path}?after=${answers.next}`;
  return show(c, {
    title: comment.value.subject,
    data: {
      story: story.key[0],
      comment,
      comments: answers.rows,
      counts: counts.toJSON(),
      next: answers.next,
      writers: writers.entries,
    },
    body: html`<p>On <a href="stories/${story.value.id}">${story.value.title}</a></p>
      ${commentItem(comment, counts, writers)}
      <h2>Answers</h2>
      ${listing(answers.rows.map((row) => commentItem(row, counts, writers)), more, "None yet.")}`,
  });
});

comments.get("/stories/:story/reply", async (c) => {
  const story = await findStory(c, c.req.param("story"));
  if (story === null) return refuse(c, 404, "There is no such story.");
  const to = c.req.query("to") ?? "";
  const answered = to === "" ? null : await findComment(c, story.value.id, parseCommentRef(to));
  const subject = answered === null ? "" : `Re: ${answered.value.subject}`.slice(0, TITLE_MAX);
  const { login } = c.var;
  return show(c, {
    title: answered === null ? `Comment on ${story.value.title}` : `Answer ${answered.value.subject}`,
    data: { story, comment: answered, as: login?.user ?? null },
    body: html`
      <p>${login === null ? "You write as nobody in particular." : html`You write as ${login.nickname}.`}</p>
      <form action="stories/${story.value.id}/comments" method="post" enctype="multipart/form-data">
        <input type="hidden" name="to" value="${to}">
        <label>Subject <input name="subject" required maxlength="${TITLE_MAX}" value="${subject}"></label>
        <label>Comment <textarea name="text" rows="8" required></textarea></label>
        <label>Picture <input type="file" name="attachment" accept="image/*"></label>
        <button>Post</button>
      </form>
    `,
  });
});

const commentForm = z.object({
  to: z.string().max(100).default(""),
  subject: z.string().trim().min(1).max(TITLE_MAX),
  text: z.string().trim().min(1).max(20_000),
  attachment: z.string().optional(),
});

comments.post("/stories/:story/comments", async (c) => {
  const form = await readForm(c, commentForm);
  if (!form.ok) return refuse(c, 400, form.message);
  const story = await findStory(c, c.req.param("story"));
  if (story === null) return refuse(c, 404, "There is no such story.");
  const { to, subject, text, attachment } = form.fields;
  const answered = to === "" ? null : await findComment(c, story.value.id, parseCommentRef(to));
  if (to !== "" && answered === null) return refuse(c, 404, "The comment that you answer is gone.");
  const table = commentTable(story);
  const { login } = c.var;
  const entry = await c.env.tables[table].put({
    story: story.value.id,
    parent: answered?.value.id ?? "",
    id: newId(Date.now()),
    writer: login?.user ?? "",
    subject,
    sought: sought(subject),
    text,
    ...attachment === undefined ? {} : { attachment },
  });
  const { id, parent } = entry.value;
  await c.env.kv.atomic()
    .sum(countKey(story.value.id, parent, "children"), 1)
    .sum(countKey(story.value.id, id, "rating"), login === null ? RATING_OF_ANYBODY : RATING_OF_USER)
    .commit();
  const path = `stories/${story.value.id}/comments/${commentRef(entry.value)}`;
  return done(c, { comment: named(table, entry) }, path);
});

/** The story and the comment that a path names. */
export async function lookUp(
  c: Ctx,
  story: string,
  ref: string,
): Promise<{ story: StoryEntry; comment: CommentEntry } | null> {
  const [found, comment] = await Promise.all([
    findStory(c, story),
    findComment(c, story, parseCommentRef(ref)),
  ]);
  return found === null || comment === null ? null : { story: found, comment };
}
