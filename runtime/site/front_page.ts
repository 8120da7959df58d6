/** What a site answers at `/`: in dev the apps that one can try, elsewhere a problem. */
import type { LiveApp } from "../deploy/mod.ts";
import { problemResponse } from "../gateway/problem.ts";

/** The front page. */
export function frontPage(dev: boolean, apps: readonly LiveApp[]): Response {
  if (!dev) return problemResponse("not_found", "a site serves apps at /APP/ and at the host APP.localhost");
  const items = apps.map(({ name }) => `<li><a href="/${name}/">${name}</a></li>`).join("");
  const list = items === ""
    ? "<p>No app is deployed. Try <code>deno task deploy MODULE</code>.</p>"
    : `<ul>${items}</ul>`;
  return new Response(`<!doctype html><meta charset="utf-8"><title>Sojourn</title><h1>Apps</h1>${list}\n`, {
    headers: { "content-type": "text/html; charset=utf-8" },
  });
}
