/** Stories and comments as lists show them. */
import { html } from "hono/html";
import type { StoryCounts } from "./counters.ts";
import { timeOf } from "./ids.ts";
import type { Markup } from "./page.ts";
import type { CommentEntry, StoryEntry, Writers } from "./rows.ts";

/** As much of a story as a list shows. */
const EXCERPT = 200;

/** A story as lists show it. */
export function storyItem(row: StoryEntry, writers: Writers): Markup {
  const { id, title, body } = row.value;
  const excerpt = body.length > EXCERPT ? `${body.slice(0, EXCERPT)}…` : body;
  return html`
    <article>
      <h2><a href="stories/${id}">${title}</a></h2>
      <p>${byline(row, writers)}</p>
      <p>${excerpt}</p>
    </article>
  `;
}

/** Who wrote it and when. */
export function byline(row: { readonly value: { id: string; writer: string } }, writers: Writers): Markup {
  const when = new Date(timeOf(row.value.id)).toISOString();
  const who = row.value.writer === ""
    ? writers.nameOf(row.value)
    : html`<a href="users/${row.value.writer}">${writers.nameOf(row.value)}</a>`;
  return html`${who}, <time datetime="${when}">${when.slice(0, 16).replace("T", " ")}</time>`;
}

/** A comment, with ways to its answers and its form. */
export function commentItem(row: CommentEntry, counts: StoryCounts, writers: Writers): Markup {
  const { id, story, subject, text, attachment } = row.value;
  const { children, rating } = counts.of(id);
  const path = `stories/${story}/comments/${commentRef(row.value)}`;
  const answers = children === 1 ? "1 answer" : `${children} answers`;
  const image = attachment?.startsWith("data:image/") ? html`<img src="${attachment}" alt="Attachment">` : "";
  return html`<article>
    <h2><a href="${path}">${subject}</a></h2>
    <p>${byline(row, writers)}, rated ${rating}</p><pre>${text}</pre>${image}
    <p><a href="${path}">${answers}</a> <a href="stories/${story}/reply?to=${
    commentRef(row.value)
  }">Answer</a>
      <a href="${path}/moderate">Moderate</a></p>
  </article>`;
}

/** How a comment is named within its story: `ID`, or `PARENT.ID` for an answer. */
export const commentRef = ({ parent, id }: { readonly parent: string; readonly id: string }): string =>
  parent === "" ? id : `${parent}.${id}`;

/** The comment that a name means. */
export function parseCommentRef(ref: string): { readonly parent: string; readonly id: string } {
  const dot = ref.indexOf(".");
  return dot < 0 ? { parent: "", id: ref } : { parent: ref.slice(0, dot), id: ref.slice(dot + 1) };
}
