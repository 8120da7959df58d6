/**
 * Pages: one answer in two forms. A handler says what the page shows as data and as HTML; whoever asks for JSON
 * (`Accept: application/json` or `?format=json`) gets the data, everybody else the page.
 */
import type { Context } from "hono";
import { html, raw } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import type { Env } from "./resources.ts";

/** What a page needs of the user who asks for it (login.ts). */
export interface Login {
  readonly user: string;
  readonly nickname: string;
  readonly author: boolean;
}

/** What Hono is told about this app. */
export interface App {
  Bindings: Env;
  Variables: { login: Login | null };
}

export type Ctx = Context<App>;
export type Markup = HtmlEscapedString | Promise<HtmlEscapedString>;
type Refusal = 400 | 401 | 403 | 404 | 409;

/** One page. */
export interface Page {
  readonly title: string;
  /** What the JSON form says. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly body: Markup;
  readonly status?: Refusal;
}

/** Whether the client asks for JSON. */
const wantsJson = (c: Ctx): boolean =>
  c.req.query("format") === "json" || (c.req.header("accept") ?? "").includes("application/json");

/** Answers with a page. */
export async function show(c: Ctx, page: Page): Promise<Response> {
  const status = page.status ?? 200;
  if (wantsJson(c)) return c.json(page.data, status);
  return c.html(await layout(c, page), status);
}

/** Answers a form: JSON gets what was written, a browser goes on to a page that shows it. */
export function done(c: Ctx, data: Readonly<Record<string, unknown>>, next: string): Response {
  return wantsJson(c) ? c.json(data, 201) : c.redirect(`${base(c)}${next}`, 303);
}

/** Refuses a request, saying why and what would be accepted. */
export function refuse(c: Ctx, status: Refusal, message: string): Promise<Response> {
  const way = status === 401 ? html`<p><a href="login">Log in</a></p>` : "";
  return show(c, { title: "Sorry", status, data: { error: message }, body: html`<p>${message}</p>${way}` });
}

/** Where the app is mounted, with a slash at the end; all links are relative to it. */
export const base = (c: Ctx): string => `${c.req.header("x-forwarded-prefix") ?? ""}/`;

/** A list with a link to its next page. */
export function listing(items: readonly Markup[], next: string | null, none: string): Markup {
  if (items.length === 0) return html`<p>${none}</p>`;
  return html`${items}${next === null ? "" : html`<p><a rel="next" href="${next}">More</a></p>`}`;
}

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --accent: light-dark(#075, #5db); }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 0 auto; padding: 0 1rem 3rem; }
header, article { border-bottom: 1px solid var(--line); padding: .75rem 0; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 0; }
a { color: var(--accent); } :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
label { display: block; margin: .75rem 0; } img { max-width: 100%; }
input, textarea, select { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: .4rem; }
button { font: inherit; padding: .3rem 1rem; } pre { white-space: pre-wrap; font: inherit; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; }`;

function layout(c: Ctx, page: Page): Markup {
  const login = c.get("login");
  const who = login === null ? html`<a href="login">Log in</a> <a href="register">Register</a>` : html`
    <a href="users/${login.user}">${login.nickname}</a>
    <form action="logout" method="post"><button>Log out</button></form>
  `;
  return html`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <base href="${base(c)}">
        <title>${page.title} · Board</title>
        <style>${raw(STYLE)}</style>
      </head>
      <body>
        <a class="skip" href="${c.req.path.slice(1)}#main">Skip to the content</a>
        <header>
          <nav aria-label="Board">
          <a href="./">Stories of the day</a> <a href="browse">Browse</a> <a href="search">Search</a>
          <a href="submit">Submit a story</a> <a href="submissions">Submissions</a> ${who}
        </nav>
        </header>
        <main id="main"><h1>${page.title}</h1>${page.body}</main>
      </body>
    </html>
  `;
}
