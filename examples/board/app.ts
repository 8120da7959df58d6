/**
 * Board: a bulletin board after RUBBoS (stories, discussions, moderation, search), as one Sojourn app. Its rows
 * live at the sites where people read them; see README.md for a tour.
 */
import { defineApp } from "sojourn";
import { Hono } from "hono";
import { accounts } from "./accounts.ts";
import { admin } from "./admin.ts";
import { comments } from "./comments.ts";
import { withLogin } from "./login.ts";
import { moderation } from "./moderation.ts";
import { type App, refuse } from "./page.ts";
import { resources } from "./resources.ts";
import { search } from "./search.ts";
import { stories } from "./stories.ts";
import { submissions } from "./submissions.ts";

const http = new Hono<App>();
http.use(withLogin);
for (const part of [stories, comments, moderation, submissions, search, accounts, admin]) {
  http.route("/", part);
}
http.notFound((c) => refuse(c, 404, "There is no such page."));
// The site answers errors by their code (422 for a bad row, 503 for an unreachable store, …) and logs the rest.
http.onError((error) => {
  throw error;
});

export default defineApp({
  ...resources,
  fetch: http.fetch,
  routes: { "/accounts": { at: "root" }, "/logins": { at: "root" }, "/admin/*": { at: "root" } },
});
