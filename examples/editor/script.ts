/**
 * What runs in the browser, after `shown` was set to the document as the page was made. A ride is the page itself
 * going from edge to edge: it makes a step here, and opens the next stop with one step less to go.
 */
export const SCRIPT = `
  const { document: name, prefix, site: here } = document.body.dataset;
  const route = document.getElementById("route"), bus = document.getElementById("bus");
  const state = document.getElementById("state"), list = document.querySelector("ol");
  const picture = document.querySelector(".frame svg");
  const stops = new Map();
  let next = null;

  const hueOf = (site) => [...site].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) * 137 % 360;

  function show(view) {
    shown = view;
    picture.style.filter = view.look.filter;
    picture.style.transform = view.look.transform;
    list.replaceChildren(...view.steps.map(({ number, tool, site }) => {
      const item = document.createElement("li");
      item.style.setProperty("--hue", hueOf(site));
      for (const [tag, text] of [["span", number], ["b", tool], ["small", site]]) {
        const part = document.createElement(tag);
        part.textContent = text;
        item.append(part);
      }
      return item;
    }));
    list.scrollTop = list.scrollHeight;
    const at = stops.get(view.steps.at(-1)?.site ?? here);
    if (at) bus.style.left = at.link.style.left;
  }

  async function post(path, body) {
    const began = performance.now();
    const answer = await fetch(prefix + "/" + name + path, {
      method: "POST",
      headers: { "content-type": "application/json", "sojourn-timing": "1" },
      body: JSON.stringify(body ?? {}),
    }).catch(() => null);
    if (answer === null) { state.textContent = here + " does not answer: go on at another stop"; return false; }
    const said = await answer.json();
    const how = /handoff;desc=(\\w+)/.exec(answer.headers.get("server-timing") ?? "")?.[1] ?? "";
    if (answer.ok) {
      show(said);
      const ms = (performance.now() - began).toFixed(0);
      state.textContent = "step made at " + said.site + " in " + ms + " ms (handoff: " + how + ")";
    } else state.textContent = said.problem ?? said.detail ?? "refused";
    return answer.ok;
  }

  for (const button of document.querySelectorAll("[data-tool]")) {
    button.onclick = () => post("/steps", { tool: button.dataset.tool });
  }
  document.getElementById("undo").onclick = () => post("/undo");
  document.getElementById("ride").onclick = () => ride(8);

  const alive = (url) => fetch(new URL("/_sojourn/healthz", url), { mode: "no-cors", signal: AbortSignal.timeout(1500) })
    .then(() => true, () => false);

  /** One step here, then on to the next stop that answers. */
  async function ride(left) {
    const tools = [...document.querySelectorAll("[data-tool]")].map((button) => button.dataset.tool);
    const tool = tools[shown.steps.length % tools.length];
    if (!await post("/steps", { tool }) || left <= 1) return;
    const ids = [...stops.keys()].filter((id) => stops.get(id).tier === "edge");
    const from = Math.max(0, ids.indexOf(here));
    for (let i = 1; i <= ids.length; i++) {
      const id = ids[(from + i) % ids.length], stop = stops.get(id);
      if (id !== here && !await alive(stop.url)) { stop.link.classList.add("dead"); continue; }
      bus.style.left = stop.link.style.left;
      await new Promise((resolve) => setTimeout(resolve, 1100));
      location.replace(new URL(location.pathname + "?ride=" + (left - 1), stop.url));
      return;
    }
  }

  function watch() {
    const events = new EventSource(prefix + "/" + name + "/events");
    events.onmessage = ({ data }) => show(JSON.parse(data));
    events.onerror = () => { state.textContent = here + " does not answer: go on at another stop"; };
    events.onopen = () => { if (state.textContent.includes("not answer")) state.textContent = ""; };
  }

  show(shown);

  const arrival = performance.getEntriesByType("navigation")[0]?.serverTiming?.find(({ name }) => name === "handoff");
  if (arrival) {
    state.textContent = "the session arrived at " + here + ": " + arrival.description + ", " + arrival.duration.toFixed(1) + " ms";
  }

  fetch("/_sojourn/sites").then((answer) => answer.json()).then((all) => {
    // Cookies know no ports: sites of this host share the session, those elsewhere would begin a new one.
    const loopback = ["localhost", "127.0.0.1"];
    const mine = all.map(({ id, url: at, tier }) => {
      const url = new URL(at);
      if (loopback.includes(url.hostname) && loopback.includes(location.hostname)) url.hostname = location.hostname;
      return { id, url, tier };
    }).filter(({ url }) => url.hostname === location.hostname)
      .sort((a, b) => (a.tier === "edge") - (b.tier === "edge"));
    mine.forEach(({ id, url, tier }, i) => {
      const link = document.createElement("a");
      link.href = new URL(location.pathname, url);
      link.textContent = id;
      link.style.left = (mine.length === 1 ? 50 : 5 + 90 * i / (mine.length - 1)) + "%";
      if (id === here) link.setAttribute("aria-current", "page");
      route.append(link);
      stops.set(id, { url, tier, link });
    });
  }).finally(() => {
    show(shown); // now that the bus has stops
    watch();
    const left = Number(new URLSearchParams(location.search).get("ride"));
    if (left > 0) setTimeout(() => ride(Math.min(left, 30)), 700);
  });
`;
