/** A room as a page. Messages are put in as text, never as HTML. */
import { html, raw } from "hono/html";

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: #8884; --mine: #2b57 }
  * { box-sizing: border-box }
  body { margin: 0 auto; max-width: 46rem; height: 100dvh; padding: 1rem; display: flex; flex-direction: column; gap: .8rem }
  header { display: flex; align-items: baseline; gap: .8rem; flex-wrap: wrap }
  h1 { font: 1.7rem/1.2 Georgia, serif; margin: 0; flex: 1 }
  nav a, .site { font-size: .8rem; padding: .15rem .6rem; border: 1px solid var(--line); border-radius: 1rem; color: inherit; text-decoration: none }
  nav { display: flex; gap: .3rem; flex-wrap: wrap }
  nav a[aria-current] { background: var(--mine) }
  #state { font-size: .8rem; opacity: .75; min-height: 1.2rem; margin: 0 }
  ol { flex: 1; overflow-y: auto; list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; gap: .45rem }
  li { border: 1px solid var(--line); border-radius: .8rem; padding: .4rem .8rem; align-self: start; max-width: 85% }
  li.mine { align-self: end; background: var(--mine) }
  li p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere }
  li small { opacity: .65; font-size: .75rem }
  form { display: flex; gap: .5rem }
  input, button { font: inherit; padding: .5rem .8rem; border: 1px solid var(--line); border-radius: .6rem; min-width: 0 }
  #name { width: 8rem } #text { flex: 1 }
  button { background: #1a7f4b; color: #fff; border: 0; cursor: pointer }
`;

/** In the browser: one socket, to this site or to another when this one is gone. */
const SCRIPT = `
  const { room, prefix } = document.body.dataset;
  const list = document.querySelector("ol"), state = document.getElementById("state");
  const name = document.getElementById("name"), text = document.getElementById("text");
  const shown = new Map();
  let socket, tries = 0, sites = [location.origin];
  name.value = localStorage.getItem("name") ?? "";

  function show(message) {
    if (shown.has(message.id)) return;
    const item = document.createElement("li"), words = document.createElement("p"), by = document.createElement("small");
    words.textContent = message.text;
    by.textContent = message.name + " · " + new Date(message.at).toLocaleTimeString() + " · " + message.site;
    item.classList.toggle("mine", message.name === name.value);
    item.append(by, words);
    const below = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
    const after = [...shown.values()].findLast((other) => other.at <= message.at);
    if (after === undefined) list.prepend(item); else after.item.after(item);
    shown.set(message.id, { at: message.at, item });
    if (below) list.scrollTop = list.scrollHeight;
  }

  function open() {
    const site = sites[tries % sites.length];
    const url = new URL(prefix + "/" + room + "/socket", site);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(url);
    socket.onopen = () => { tries = sites.indexOf(site); state.textContent = "connected to " + new URL(site).host; };
    socket.onmessage = ({ data }) => {
      const { messages, problem } = JSON.parse(data);
      messages?.forEach(show);
      if (problem) state.textContent = problem;
    };
    socket.onclose = () => {
      tries++;
      state.textContent = "no connection to " + new URL(site).host + "; trying the next site";
      setTimeout(open, Math.min(4000, 200 * 2 ** Math.floor(tries / sites.length)));
    };
  }

  document.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    if (socket.readyState !== WebSocket.OPEN) { state.textContent = "not sent: no connection"; return; }
    localStorage.setItem("name", name.value);
    socket.send(JSON.stringify({ name: name.value, text: text.value }));
    text.value = "";
  };

  fetch("/_sojourn/sites").then((answer) => answer.json()).then((all) => {
    // Cookies know no ports: sites of this host share the session, those elsewhere would begin a new one.
    const loopback = ["localhost", "127.0.0.1"];
    const here = all.map(({ id, url: at }) => {
      const url = new URL(at);
      if (loopback.includes(url.hostname) && loopback.includes(location.hostname)) url.hostname = location.hostname;
      return { id, url };
    }).filter(({ url }) => url.hostname === location.hostname);
    sites = [location.origin, ...here.map(({ url }) => url.origin).filter((o) => o !== location.origin)];
    document.querySelector("nav").append(...here.map(({ id, url }) => {
      const link = document.createElement("a");
      link.href = new URL(location.pathname, url);
      link.textContent = id;
      if (url.origin === location.origin) link.setAttribute("aria-current", "page");
      return link;
    }));
  }).finally(open);
`;

/** The whole page. `prefix` is what the site cut off the path; `site` is where it was made. */
export const page = ({ room, site, prefix }: { room: string; site: string; prefix: string }) =>
  html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>#${room}</title>
        <style>${raw(STYLE)}</style>
      </head>
      <body data-room="${room}" data-prefix="${prefix}">
        <header>
          <h1>#${room}</h1>
          <span class="site">served by ${site}</span>
          <nav aria-label="Sites"></nav>
        </header>
        <ol aria-live="polite" aria-label="Messages"></ol>
        <p id="state" role="status">connecting</p>
        <form>
          <input id="name" aria-label="Your name" placeholder="Your name" required maxlength="40">
          <input id="text" aria-label="Message" placeholder="Message" required maxlength="2000"
            autocomplete="off">
          <button>Send</button>
        </form>
        <script>${raw(SCRIPT)}</script>
      </body>
    </html>
  `;
