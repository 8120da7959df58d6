/** The log: lines of all sites as they come, by app, site, level and text. */
import { byId, el, say, visible } from "./show.js";

/** Lines that are shown at most. */
const LINES_MAX = 400;

export class Logs {
  #cluster;
  #filters = new AbortController();
  #signal = null;
  #waiting = [];
  #drawing = false;
  #paused = false;
  /** Whether new lines are scrolled to: until somebody scrolls up. */
  #atEnd = true;
  #list = byId("lines");

  constructor(cluster) {
    this.#cluster = cluster;
    for (const id of ["log-app", "log-site", "log-level"]) byId(id).onchange = () => this.#filters.abort();
    byId("log-text").oninput = () => {
      for (const row of this.#list.children) row.hidden = !this.#passes(row.textContent);
    };
    const list = this.#list;
    list.addEventListener("scroll", () => {
      this.#atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    });
    byId("log-clear").onclick = () => this.#list.replaceChildren();
    byId("log-pause").onclick = (event) => {
      this.#paused = !this.#paused;
      event.currentTarget.setAttribute("aria-pressed", String(this.#paused));
      say(event.currentTarget, this.#paused ? "Go on" : "Pause");
      if (!this.#paused) this.#draw();
    };
  }

  /** Follows until the signal aborts; begins again when the filters change. */
  async run(signal) {
    this.#signal = signal;
    while (!signal.aborted) {
      this.#filters = new AbortController();
      this.#waiting = [];
      this.#list.replaceChildren();
      const query = new URLSearchParams({ follow: "1", limit: "200", level: byId("log-level").value });
      for (const name of ["app", "site"]) {
        const { value } = byId(`log-${name}`);
        if (value !== "") query.set(name, value);
      }
      let recent = [];
      let again = new Map();
      await this.#cluster.follow(`/logs?${query}`, {
        value: (line) => {
          // After a stream broke off, its end comes again: each line as often as it was there. Times would not do,
          // since a site's clock may be an hour off.
          const text = JSON.stringify(line);
          const left = again.get(text) ?? 0;
          if (left > 0) return again.set(text, left - 1);
          recent.push(text);
          if (recent.length > 2 * LINES_MAX) recent = recent.slice(-LINES_MAX);
          this.#add(line);
        },
        lost: () => {
          again = new Map();
          for (const text of recent.slice(-LINES_MAX)) again.set(text, (again.get(text) ?? 0) + 1);
        },
      }, AbortSignal.any([signal, this.#filters.signal]));
    }
  }

  /** The apps and sites that there are, as choices. */
  offer(view) {
    const apps = [...new Set(view.sites.flatMap((site) => site.status?.apps.map(({ name }) => name) ?? []))]
      .sort();
    offerIn(byId("log-app"), apps);
    offerIn(byId("log-site"), view.sites.map(({ id }) => id));
  }

  #add(line) {
    this.#waiting.push(line);
    if (this.#waiting.length > LINES_MAX) this.#waiting.splice(0, this.#waiting.length - LINES_MAX);
    if (this.#drawing || this.#paused) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    });
  }

  #draw() {
    if (this.#paused) return;
    const list = this.#list;
    list.append(...this.#waiting.splice(0).map((line) => this.#row(line)));
    while (list.children.length > LINES_MAX) list.firstElementChild.remove();
    if (this.#atEnd) list.scrollTop = list.scrollHeight;
  }

  #row({ atMs, site, level, app, version, text, traceId, notice }) {
    const source = app === undefined ? "" : version === undefined ? app : `${app}@${version.slice(0, 8)}`;
    const row = el(
      "li",
      { class: notice === undefined ? level : "notice" },
      el("time", { dateTime: new Date(atMs).toISOString() }, new Date(atMs).toISOString().slice(11, 23)),
      el("span", { class: "at" }, site),
      el("span", { class: "level" }, level),
      el("span", { class: "source" }, source),
      el("span", { class: "text", title: traceId === undefined ? "" : `trace ${traceId}` }, visible(text)),
    );
    row.hidden = !this.#passes(row.textContent);
    return row;
  }

  #passes(text) {
    return text.toLowerCase().includes(byId("log-text").value.trim().toLowerCase());
  }
}

function offerIn(select, values) {
  const known = [...select.options].slice(1).map(({ value }) => value);
  if (known.join() === values.join()) return;
  const { value } = select;
  select.replaceChildren(select.options[0], ...values.map((each) => el("option", { value: each }, each)));
  select.value = values.includes(value) ? value : "";
}
