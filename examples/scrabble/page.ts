/** The page of a table; what it does is in public/scrabble.js. */
import { html, raw } from "hono/html";
import { PREMIUM, SIZE } from "./board.ts";

const SAYS: Readonly<Record<string, [kind: string, short: string, long: string]>> = {
  T: ["tw", "TW", "three times the word"],
  D: ["dw", "DW", "two times the word"],
  t: ["tl", "TL", "three times the letter"],
  d: ["dl", "DL", "two times the letter"],
};

const squares = (): string =>
  PREMIUM.flatMap((row, y) =>
    [...row].map((premium, x) => {
      const isMiddle = x === (SIZE - 1) / 2 && y === x;
      const [kind = "", short = "", long = ""] = SAYS[premium] ?? [];
      const where = `${String.fromCharCode(65 + x)}${y + 1}${long === "" ? "" : `, ${long}`}`;
      const first = isMiddle ? "0" : "-1";
      return `<button type="button" class="square ${kind}" data-x="${x}" data-y="${y}" tabindex="${first}" ` +
        `data-where="${where}" aria-label="${where}"><i>${isMiddle ? "★" : short}</i></button>`;
    })
  ).join("");

/** The whole page. `prefix` is what the site cut off the path; `site` is where it was made. */
export const page = ({ table, site, prefix }: { table: string; site: string; prefix: string }) =>
  html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Scrabble · ${table}</title>
        <link rel="stylesheet" href="${prefix}/scrabble.css">
        <link rel="icon" href="data:,">
        <script type="module" src="${prefix}/scrabble.js"></script>
      </head>
      <body data-table="${table}">
        <header>
          <h1>Scrabble <small>${table}</small></h1>
          <nav aria-label="Sites"></nav>
        </header>
        <main>
          <section class="table">
            <div id="board" role="group" aria-label="Board">${raw(squares())}</div>
            <div id="rack" role="group" aria-label="Your rack"></div>
            <div class="actions">
              <button id="play" class="main" disabled>Play</button>
              <button id="recall" disabled>Recall</button>
              <button id="shuffle" disabled>Shuffle</button>
              <button id="exchange" disabled>Exchange</button>
              <button id="pass" disabled>Pass</button>
              <button id="resign" disabled>Resign</button>
            </div>
          </section>
          <aside>
            <p id="says" role="status">connecting</p>
            <ol id="players" aria-label="Players"></ol>
            <form>
              <input id="name" aria-label="Your name" placeholder="Your name" required maxlength="24"
                autocomplete="off">
              <button id="sit" class="main">Sit down</button>
              <button id="start" type="button" class="main" hidden>Start</button>
              <button id="leave" type="button" hidden>Leave</button>
            </form>
            <p class="facts"><span id="bag"></span><span id="watching"></span></p>
            <h2>Moves</h2>
            <ol id="moves" aria-live="polite"></ol>
          </aside>
        </main>
        <footer>
          <p><span id="state">Connecting</span>. Served by <b>${site}</b>; the table lives where it was first
            opened. Kill that site in the middle of a game: <code>deno task chaos kill edge-1</code>.</p>
        </footer>
        <dialog id="blank" aria-label="Which letter is the blank?">
          <form method="dialog"></form>
        </dialog>
      </body>
    </html>
  `;
