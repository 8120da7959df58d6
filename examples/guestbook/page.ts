/** The guestbook as a page. Everything interpolated by `html` is escaped. */
import { html } from "hono/html";
import type { Book, Entry } from "./entries.ts";

const STYLE = `
  :root { color-scheme: light dark; font: 17px/1.5 system-ui, sans-serif }
  body { max-width: 38rem; margin: 3rem auto; padding: 0 1rem }
  header { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem }
  h1 { font: 2.2rem/1.2 Georgia, serif; margin: 0 }
  .site { font-size: .8rem; padding: .15rem .6rem; border: 1px solid; border-radius: 1rem; opacity: .75 }
  form { display: grid; gap: .6rem; margin: 1.5rem 0 2.5rem }
  input, textarea, button { font: inherit; padding: .5rem .7rem; border: 1px solid #8886; border-radius: .5rem }
  button { justify-self: start; background: #2b5; color: #fff; border: 0; cursor: pointer }
  article { border-top: 1px solid #8884; padding: .9rem 0 }
  article p { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere }
  small, time { opacity: .65; font-size: .8rem }
`;

const article = (entry: Entry) =>
  html`
    <article>
      <strong>${entry.name}</strong>
      <time>${new Date(entry.at).toISOString().slice(0, 16).replace("T", " ")}</time>
      <p>${entry.text}</p>
    </article>
  `;

/** The whole page. `prefix` is what the site cut off the path; `site` is where it was made. */
export const page = ({ site, prefix, entries, cursor, count }: Book & { site: string; prefix: string }) =>
  html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Guestbook</title>
        <style>${STYLE}</style>
      </head>
      <body>
        <header>
          <h1>Guestbook</h1>
          <span class="site">served by ${site}</span>
        </header>
        <form method="post" action="${prefix}/">
          <input name="name" placeholder="Your name" required maxlength="40">
          <textarea name="text" placeholder="Say hello" required maxlength="500" rows="3"></textarea>
          <button>Sign</button>
        </form>
        <small>${count} ${count === 1 ? "entry" : "entries"}<span id="news"></span></small>
        ${entries.map(article)}
        ${cursor === null ? "" : html`<a href="${prefix}/?cursor=${cursor}">Older</a>`}
        <script>
          const news = document.getElementById("news"), shown = ${count};
          new EventSource("${prefix}/changes").onmessage = ({ data }) => {
            if (Number(data) > shown) news.innerHTML = ' · <a href="">' + (data - shown) + " new</a>";
          };
        </script>
      </body>
    </html>
  `;
