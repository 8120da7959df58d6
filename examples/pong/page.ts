/** The page of a table; what it does is in public/pong.js. */
import { html } from "hono/html";

/** The whole page. `prefix` is what the site cut off the path; `site` is where it was made. */
export const page = ({ table, site, prefix }: { table: string; site: string; prefix: string }) =>
  html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Pong · ${table}</title>
        <link rel="stylesheet" href="${prefix}/pong.css">
        <link rel="icon" href="data:,">
        <script type="module" src="${prefix}/pong.js"></script>
      </head>
      <body data-table="${table}">
        <header>
          <h1>Pong <small>${table}</small></h1>
          <nav aria-label="Sites"></nav>
        </header>
        <main>
          <div class="score" aria-live="polite">
            <span class="left"><b id="name-0">free seat</b><i id="points-0">0</i></span>
            <span class="right"><i id="points-1">0</i><b id="name-1">free seat</b></span>
          </div>
          <div class="court">
            <canvas width="1280" height="800" tabindex="0"
              aria-label="The court. Arrow keys, W and S, a mouse or a finger move your paddle."></canvas>
            <div id="card" role="status"></div>
          </div>
          <form>
            <input id="name" aria-label="Your name" placeholder="Your name" required maxlength="24"
              autocomplete="off">
            <button id="sit">Sit down</button>
            <button id="again" type="button" hidden>Another match</button>
            <button id="leave" type="button" hidden>Leave</button>
          </form>
          <p class="facts"><span id="state">connecting</span><span id="lag"></span><span id="rally"></span><span
            id="watching"></span></p>
        </main>
        <footer>
          <p>Served by <b>${site}</b>. Open this table at another site, and play against yourself or a friend. Then
            kill the site where it lives: <code>deno task chaos kill edge-1</code>.</p>
        </footer>
      </body>
    </html>
  `;
