/** Front page of a site, at `/`: in dev a list of the apps that one can try, elsewhere a problem. */
import type { LiveApp } from "../deploy/mod.ts";
import { problemResponse } from "../gateway/problem.ts";

/** Returns the front page. */
export function frontPage(dev: boolean, apps: readonly LiveApp[]): Response {
  if (!dev) return problemResponse("not_found", "a site serves apps at /APP/ and at the host APP.localhost");
  const items = apps.map(({ name }) => `<li><a href="/${name}/">${name}</a></li>`).join("");
  const list = items === ""
    ? "<p>No app is deployed. Try <code>deno task deploy MODULE</code>.</p>"
    : `<ul>${items}</ul>`;
  return new Response(page(list), { headers: { "content-type": "text/html; charset=utf-8" } });
}

const page = (list: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sojourn</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif } body { margin: 2rem auto; max-width: 40rem; padding: 0 1rem }</style>
<h1>Apps</h1>${list}
<p><a href="/_sojourn/dashboard">Dashboard</a></p>
`;
