/** The page: the picture, the tools, and the bus at the site where the last step was made, live for all who watch. */
import { html, raw } from "hono/html";
import { type Look, SCENE, TOOLS } from "./picture.ts";
import { SCRIPT } from "./script.ts";

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: #8884; --accent: light-dark(#0a6b4a, #5fd0a5) }
  * { box-sizing: border-box }
  body { margin: 0 auto; max-width: 60rem; padding: 1.2rem 1rem 3rem }
  header { display: flex; align-items: baseline; gap: .8rem; flex-wrap: wrap }
  h1 { font: 2rem/1.2 Georgia, serif; margin: 0; flex: 1 } h2 { font-size: 1rem; margin: 0 0 .5rem }
  .site { font-size: .85rem; opacity: .8 }
  #route { position: relative; height: 5.2rem; margin: .6rem 0 1rem }
  #route::before { content: ""; position: absolute; left: 1rem; right: 1rem; top: 2.5rem; border-top: 4px dotted var(--line) }
  #route a { position: absolute; top: 1.95rem; transform: translateX(-50%); text-align: center; color: inherit; font-size: .85rem; white-space: nowrap; text-decoration: none }
  #route a::before { content: ""; display: block; width: 1.1rem; height: 1.1rem; margin: 0 auto .35rem; border-radius: 50%; border: 3px solid var(--accent); background: Canvas }
  #route a[aria-current]::before { background: var(--accent) }
  #route a[aria-current] { font-weight: 650 }
  #route a.dead { opacity: .45; text-decoration: line-through }
  #bus { position: absolute; top: 0; transform: translateX(-50%); transition: left .9s cubic-bezier(.5, 0, .3, 1) }
  main { display: grid; grid-template-columns: minmax(0, 2fr) minmax(13rem, 1fr); gap: 1.2rem }
  @media (max-width: 44rem) { main { grid-template-columns: 1fr } #route a { font-size: .7rem } }
  .frame { aspect-ratio: 16 / 9; overflow: hidden; border-radius: 1.1rem; border: .7rem solid light-dark(#2c3440, #59636f); box-shadow: 0 .4rem 1.2rem #0004; background: #1b2233 }
  .frame svg { display: block; width: 112%; height: 112%; margin: -6%; transition: filter .6s, transform .6s }
  .tools { display: flex; flex-wrap: wrap; gap: .45rem; margin-top: .9rem }
  button { font: inherit; padding: .4rem .8rem; border: 1px solid var(--line); border-radius: .6rem; cursor: pointer }
  button.go { background: #1a7f4b; color: #fff; border: 0 }
  ol { list-style: none; margin: 0; padding: 0; display: grid; gap: .3rem; max-height: 27rem; overflow-y: auto }
  li { display: flex; gap: .6rem; align-items: baseline; border-left: .35rem solid hsl(var(--hue, 0) 55% 50%); padding: .15rem .6rem; border-radius: .3rem; background: #8881 }
  li b { font-weight: 600; flex: 1 } li small { opacity: .75 } li span { opacity: .55; font-variant-numeric: tabular-nums }
  #state { min-height: 1.5rem; font-size: .9rem; opacity: .85 }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
  @media (prefers-reduced-motion: reduce) { * { transition: none !important } }
`;

const BUS = `<svg width="52" height="30" viewBox="0 0 52 30">
  <rect x="1" y="2" width="50" height="21" rx="5" fill="#c9473d"/>
  <g fill="#dff0ff"><rect x="6" y="6" width="8" height="7" rx="1"/><rect x="17" y="6" width="8" height="7" rx="1"/>
  <rect x="28" y="6" width="8" height="7" rx="1"/><rect x="40" y="6" width="8" height="11" rx="1"/></g>
  <g fill="#222" stroke="#999" stroke-width="2"><circle cx="13" cy="24" r="4.5"/><circle cx="39" cy="24" r="4.5"/></g>
</svg>`;

/** What the page is made of. `prefix` is what the site cut off the path; `site` is where it was made. */
export interface Shown {
  readonly document: string;
  readonly site: string;
  readonly prefix: string;
  readonly steps: readonly { readonly number: number; readonly tool: string; readonly site: string }[];
  readonly look: Look;
}

/** JSON inside a script: what could end the script is written another way. */
const embedded = (value: unknown): string => JSON.stringify(value).replaceAll("<", "\\u003c");

/** The whole page. */
export const page = ({ document, site, prefix, steps, look }: Shown) =>
  html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>${document} · Editor</title>
        <style>${raw(STYLE)}</style>
      </head>
      <body data-document="${document}" data-prefix="${prefix}" data-site="${site}">
        <header>
          <h1>${document}</h1>
          <span class="site">this page came from <strong>${site}</strong></span>
        </header>
        <nav id="route" aria-label="Stops: the sites"><span id="bus" aria-hidden="true">${raw(
          BUS,
        )}</span></nav>
        <main>
          <section aria-label="The picture">
            <div class="frame">${raw(SCENE)}</div>
            <div class="tools" role="group" aria-label="Tools">
              ${TOOLS.map((tool) => html`<button data-tool="${tool}">${tool}</button>`)}
              <button id="undo">undo</button>
              <button id="ride" class="go">Take the bus</button>
            </div>
            <p id="state" role="status"></p>
          </section>
          <section aria-label="Steps">
            <h2>Steps, and where each was made</h2>
            <ol></ol>
          </section>
        </main>
        <script>
          let shown = ${raw(embedded({ steps, look }))};
          ${raw(SCRIPT)}
        </script>
      </body>
    </html>
  `;
