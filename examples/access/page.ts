/** One page to try it on: forms, and a record of what ran where and how the session got there. */
import { html, raw } from "hono/html";

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: #8884; --accent: light-dark(#075, #5db) }
  * { box-sizing: border-box }
  body { margin: 0 auto; max-width: 56rem; padding: 1.5rem 1rem }
  header { display: flex; align-items: baseline; gap: .8rem; flex-wrap: wrap }
  h1 { font: 2rem/1.2 Georgia, serif; margin: 0; flex: 1 } h2 { font-size: 1.05rem; margin: 0 0 .5rem }
  nav { display: flex; gap: .3rem; flex-wrap: wrap }
  nav a { font-size: .8rem; padding: .15rem .6rem; border: 1px solid var(--line); border-radius: 1rem; color: inherit; text-decoration: none }
  nav a[aria-current] { background: #2b57 }
  main { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; margin: 1.2rem 0 }
  section { border: 1px solid var(--line); border-radius: .8rem; padding: .9rem 1rem }
  form { display: grid; gap: .5rem } form:not(:first-of-type), .row + form { margin-top: 1.2rem } .row { display: flex; gap: .5rem; flex-wrap: wrap }
  input, button { font: inherit; padding: .45rem .7rem; border: 1px solid var(--line); border-radius: .5rem; min-width: 0 }
  button { cursor: pointer } button.main { background: #1a7f4b; color: #fff; border: 0 }
  table { width: 100%; border-collapse: collapse; font-size: .85rem } .scroll { overflow-x: auto }
  th, td { text-align: left; padding: .3rem .5rem; border-top: 1px solid var(--line); white-space: nowrap }
  td:last-child { white-space: normal; overflow-wrap: anywhere } th { font-weight: 600; border: 0 }
  .ok { color: var(--accent) } .no { color: light-dark(#b30, #f96) }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
`;

/** In the browser: forms as JSON, each answer as a line of the record. */
const SCRIPT = `
  const { prefix } = document.body.dataset;
  const record = document.querySelector("tbody");

  async function ask(method, path, body) {
    const answer = await fetch(prefix + path, {
      method,
      headers: { "sojourn-timing": "1", ...body && { "content-type": "application/json" } },
      body: body ? JSON.stringify(body) : null,
    });
    const text = await answer.text();
    const how = /handoff;desc=(\\w+)/.exec(answer.headers.get("server-timing") ?? "")?.[1] ?? "";
    const row = document.createElement("tr");
    for (const cell of [method + " " + path, answer.headers.get("sojourn-site") ?? "", how, answer.status, text]) {
      const td = document.createElement("td");
      td.textContent = cell;
      row.append(td);
    }
    row.children[3].className = answer.ok ? "ok" : "no";
    record.prepend(row);
  }

  const fieldsOf = (form) => Object.fromEntries(new FormData(form));
  for (const form of document.forms) {
    form.onsubmit = (event) => {
      event.preventDefault();
      const path = event.submitter?.value || form.dataset.path;
      ask("POST", path, fieldsOf(form));
    };
  }
  for (const button of document.querySelectorAll("[data-get]")) button.onclick = () => ask("GET", button.dataset.get);
  document.getElementById("logout").onclick = () => ask("POST", "/logout");
  document.getElementById("both").onclick = async () => {
    await ask("POST", "/logout");
    await ask("GET", "/authorize");
  };

  fetch("/_sojourn/sites").then((answer) => answer.json()).then((all) => {
    // Cookies know no ports: sites of this host share the session, those elsewhere would begin a new one.
    const loopback = ["localhost", "127.0.0.1"];
    for (const { id, url: at } of all) {
      const url = new URL(at);
      if (loopback.includes(url.hostname) && loopback.includes(location.hostname)) url.hostname = location.hostname;
      if (url.hostname !== location.hostname) continue;
      const link = document.createElement("a");
      link.href = new URL(location.pathname, url);
      link.textContent = id;
      if (url.origin === location.origin) link.setAttribute("aria-current", "page");
      document.querySelector("nav").append(link);
    }
  });
`;

/** The whole page. `prefix` is what the site cut off the path; `site` is where it was made. */
export const page = ({ site, prefix }: { site: string; prefix: string }) =>
  html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Access</title>
        <style>${raw(STYLE)}</style>
      </head>
      <body data-prefix="${prefix}">
        <header>
          <h1>Access</h1>
          <nav aria-label="Sites"></nav>
        </header>
        <p>You are at <strong>${site}</strong>. No password is kept or checked here: the root does that.</p>
        <main>
          <section>
            <h2>At the root</h2>
            <form>
              <input name="name" aria-label="Name" placeholder="Name" required autocomplete="username">
              <input name="password" type="password" aria-label="Password" placeholder="Password, 8 or more"
                required minlength="8" autocomplete="current-password">
              <div class="row">
                <button class="main" value="/login">Log in</button>
                <button value="/register">Register</button>
                <button type="button" id="logout">Log out</button>
              </div>
            </form>
          </section>
          <section>
            <h2>At this edge</h2>
            <div class="row">
              <button data-get="/authorize">May I read?</button>
              <button data-get="/authorize?permission=delete">May I delete?</button>
              <button data-get="/mail">Read mail</button>
              <button id="both">Log out, then ask at once</button>
            </div>
            <form data-path="/mail">
              <h2>Send mail</h2>
              <input name="to" aria-label="To" placeholder="To" required maxlength="40">
              <input name="text" aria-label="Text" placeholder="Text" required maxlength="2000">
              <button>Send</button>
            </form>
          </section>
        </main>
        <section class="scroll" aria-live="polite">
          <h2>What ran where</h2>
          <table>
            <thead>
              <tr>
                <th>request</th>
                <th>ran at</th>
                <th>handoff</th>
                <th>status</th>
                <th>answer</th>
              </tr>
            </thead>
            <tbody></tbody>
          </table>
        </section>
        <script>${raw(SCRIPT)}</script>
      </body>
    </html>
  `;
