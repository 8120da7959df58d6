/** The panels beside the tree: totals, one site's facts, the apps. */
import { announce, byId, bytes, counted, duration, el, millis, rate, say, sparkline } from "./show.js";

const KEPT_S = 60;

const sum = (values) => values.reduce((total, value) => total + value, 0);
const most = (values) =>
  values.reduce((top, value) => value === null ? top : Math.max(top ?? 0, value), null);

/** Terms and what they are; those that are there change their text only. */
function describe(list, rows) {
  while (list.children.length > rows.length) list.lastElementChild.remove();
  rows.forEach(([term, text, tone = ""], i) => {
    let row = list.children[i];
    if (row === undefined) list.append(row = el("div", {}, el("dt"), el("dd")));
    say(row.firstElementChild, term);
    say(row.lastElementChild, text);
    row.className = tone;
  });
}

/** One line over all sites. */
export class Totals {
  #list;

  constructor(list) {
    this.#list = list;
  }

  show(view) {
    const all = view.sites.flatMap((site) => site.reachable && site.rates !== null ? [site.rates.all] : []);
    const errors = sum(all.map(({ errorsPerS }) => errorsPerS));
    const pending = sum(view.sites.map(({ status }) => status?.pending ?? 0));
    const size = sum(view.sites.map(({ status }) => status?.pendingBytes ?? 0));
    describe(this.#list, [
      ["sites", `${all.length} of ${view.sites.length}`, all.length < view.sites.length ? "warn" : ""],
      ["requests/s", rate(sum(all.map(({ requestsPerS }) => requestsPerS)))],
      ["errors/s", rate(errors), errors > 0 ? "bad" : ""],
      ["slowest p99", millis(most(all.map(({ p99Ms }) => p99Ms)))],
      [
        "most lag",
        duration(most(view.sites.map(({ reachable, lagMs }) => reachable ? lagMs : null))),
      ],
      ["pending", pending === 0 ? "0" : `${counted(pending, "row")}, ${bytes(size)}`],
    ]);
  }
}

/** The site that is selected. */
export class SitePanel {
  #faults;
  #view = null;
  selected = null;

  constructor(_section, faults) {
    this.#faults = faults;
  }

  select(id) {
    this.selected = id;
    if (this.#view !== null) {
      this.show(this.#view);
      announce(`${id} is shown`);
    }
    for (const card of document.querySelectorAll(".card")) {
      const isMine = card.querySelector(".name")?.firstChild?.textContent === id;
      card.classList.toggle("selected", isMine);
      card.setAttribute("aria-pressed", String(isMine));
    }
  }

  show(view) {
    this.#view = view;
    const site = view.sites.find(({ id }) => id === this.selected) ?? view.sites[0];
    if (site === undefined) return;
    this.selected = site.id;
    const { status, rates, reachable, alerts } = site;
    say(byId("site-title"), site.id);
    const badge = byId("site-state");
    say(
      badge,
      !reachable ? "does not answer" : alerts.length > 0 ? counted(alerts.length, "alert") : "serves",
    );
    badge.className = `badge ${!reachable || alerts.length > 0 ? "bad" : "good"}`;
    describe(byId("facts"), facts(site, status, rates));
    this.#faults.show(site, view);
  }
}

function facts(site, status, rates) {
  const rows = [["address", site.url]];
  if (!site.reachable) {
    const { silentMs } = site;
    rows.push(["last heard of", silentMs === null ? "not known" : `${duration(silentMs)} ago`, "warn"]);
  }
  for (const { code, detail, by } of site.alerts) {
    const from = by === site.id ? "" : ` (seen from ${by})`;
    rows.push([code.replaceAll("_", " "), detail + from, "bad"]);
  }
  if (status !== null) {
    const { parent, coverage } = status;
    if (parent !== null) {
      const link = parent.connected ? `${millis(parent.rttMs)} round trip` : "cut";
      rows.push([`uplink to ${parent.id}`, link, parent.connected ? "" : "bad"]);
    }
    rows.push(["lag", `${duration(site.lagMs)} at most`]);
    rows.push(["all sites heard of", `${duration(status.stableLagMs)} ago`]);
    rows.push([
      "pending",
      status.pending === 0 ? "nothing" : `${counted(status.pending, "row")}, ${bytes(status.pendingBytes)}`,
    ]);
    const { f = 0, wards } = status;
    if (f > 0 && parent !== null && wards !== undefined) {
      const next = wards.next === null ? "" : `, to be ${wards.next.join(", ") || "nobody"}`;
      rows.push(["held for it by", (wards.owners.join(", ") || "nobody yet") + next]);
    }
    if ((wards?.heldBytes ?? 0) > 0) rows.push(["holds for others", bytes(wards.heldBytes)]);
    rows.push([
      "covers",
      `${counted(coverage.ranges, "range")}, ${bytes(coverage.bytes)} of ${bytes(coverage.capacityBytes)}`,
    ]);
    rows.push(["journal", `position ${status.position}, incarnation ${status.incarnation}`]);
  }
  if (rates !== null) {
    const { arrivals, process } = rates;
    rows.push([
      "sessions came",
      `${arrivals.new} new, ${arrivals.nothing} with nothing, ${arrivals.carry} carried, ` +
      `${arrivals.wait} after a wait`,
    ]);
    rows.push([
      "process",
      `up ${duration(process.upMs)}, ${Math.round(process.cpu * 100)} % of a core, ${
        bytes(process.rssBytes)
      }`,
    ]);
  }
  return rows;
}

/** Apps over all sites, and their versions while a part of the sessions gets another one. */
export class Apps {
  #body;
  #history = new Map();

  constructor(body) {
    this.#body = body;
  }

  show(view) {
    const live = view.sites.filter((site) => site.reachable && site.status !== null && site.rates !== null);
    const names = [...new Set(view.sites.flatMap((site) => site.status?.apps.map(({ name }) => name) ?? []))]
      .sort();
    this.#body.replaceChildren(
      ...names.flatMap((name) => this.#rows(name, live)),
      ...names.length > 0
        ? []
        : [el("tr", {}, el("td", { colSpan: 9, class: "none" }, "no app is deployed"))],
    );
  }

  #rows(name, live) {
    const deployed = live.flatMap((site) => site.status.apps.filter((app) => app.name === name));
    const asked = live.flatMap((site) => site.rates.apps.filter(({ app }) => app === name));
    const history = this.#history.get(name) ?? new Array(KEPT_S).fill(0);
    history.push(sum(asked.map(({ requestsPerS }) => requestsPerS)));
    history.shift();
    this.#history.set(name, history);
    const versions = [...new Set(deployed.map(({ version }) => version))];
    const shares = new Map(
      deployed.flatMap(({ next }) => next === undefined ? [] : [[next.version, next.weight]]),
    );
    const isolates = sum(deployed.map((app) => app.isolates + (app.next?.isolates ?? 0)));
    const whole = el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", { class: "code" }, versions.map((version) => version.slice(0, 8)).join(" ")),
      n(String(deployed.length)),
      n(String(isolates)),
      ...cells(asked, sparkline(history)),
    );
    if (shares.size === 0) return [whole];
    return [
      whole,
      ...[...new Set([...versions, ...shares.keys()])].map((version) => {
        const weight = shares.get(version);
        const running = deployed.map((app) =>
          app.version === version ? app.isolates : app.next?.version === version ? app.next.isolates : 0
        );
        return el(
          "tr",
          { class: "version" },
          el(
            "th",
            { scope: "row" },
            el("span", { class: "unseen" }, `${name}, `),
            weight === undefined ? "current" : `${weight} %`,
          ),
          el("td", { class: "code" }, version.slice(0, 8)),
          n(""),
          n(String(sum(running))),
          ...cells(asked.flatMap((app) => app.versions.filter((each) => each.version === version)), ""),
        );
      }),
    ];
  }
}

const n = (text, tone = "") => el("td", { class: `n ${tone}` }, text);

/** Rates of several sites: added; latencies of the slowest. */
function cells(asked, line) {
  const errorsPerS = sum(asked.map((each) => each.errorsPerS));
  return [
    n(rate(sum(asked.map(({ requestsPerS }) => requestsPerS)))),
    el("td", {}, line),
    n(rate(errorsPerS), errorsPerS > 0 ? "bad" : ""),
    n(millis(most(asked.map(({ p50Ms }) => p50Ms)))),
    n(millis(most(asked.map(({ p99Ms }) => p99Ms)))),
  ];
}
