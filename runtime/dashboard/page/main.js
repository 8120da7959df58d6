/**
 * The dashboard: opens the streams, keeps what came last, and gives it to the parts of the page.
 *
 * The token comes from the address's fragment, which `deno task dev` prints and which no server sees, or is asked
 * for; it is kept in this page's memory only.
 */
import { Faults } from "./faults.js";
import { Cluster, Refused } from "./live.js";
import { Logs } from "./logs.js";
import { Moves } from "./moves.js";
import { Apps, SitePanel, Totals } from "./panels.js";
import { announce, byId, say } from "./show.js";
import { Tree } from "./tree.js";

const cluster = new Cluster(new URLSearchParams(location.hash.slice(1)).get("token"));
const faults = new Faults(cluster);
const panel = new SitePanel(byId("site"), faults);
const tree = new Tree(
  { stage: byId("stage"), wires: byId("wires"), list: byId("tree") },
  (id) => panel.select(id),
);
const moves = new Moves(tree, byId("moves"));
const apps = new Apps(byId("apps"));
const totals = new Totals(byId("totals"));
const logs = new Logs(cluster);

/** Which sites answered the last time. */
let reachable = null;

function show(view) {
  cluster.knows(view.sites.map((site) => site.url));
  if (byId("main").hidden) {
    byId("ask").hidden = true;
    byId("main").hidden = false;
    panel.select(view.by);
  }
  const away = view.sites.filter((site) => !site.reachable).length;
  say(byId("connection"), `live, seen from ${view.by}${away === 0 ? "" : ` · ${away} away`}`);
  byId("connection").className = away === 0 ? "connection ok" : "connection warn";
  document.title = away === 0 ? "Sojourn" : `(${away} away) Sojourn`;
  tell(view);
  totals.show(view);
  tree.show(view, faults.state, panel.selected);
  moves.show(view);
  panel.show(view);
  apps.show(view);
  logs.offer(view);
}

/** Says aloud which sites went and came back. */
function tell(view) {
  const now = new Map(view.sites.map((site) => [site.id, site.reachable]));
  if (reachable !== null) {
    const gone = [...now].filter(([id, is]) => !is && reachable.get(id) === true).map(([id]) => id);
    const back = [...now].filter(([id, is]) => is && reachable.get(id) === false).map(([id]) => id);
    const parts = [];
    if (gone.length > 0) parts.push(`${gone.join(", ")} no longer answer${gone.length === 1 ? "s" : ""}`);
    if (back.length > 0) parts.push(`${back.join(", ")} answer${back.length === 1 ? "s" : ""} again`);
    if (parts.length > 0) announce(parts.join("; "));
  }
  reachable = now;
}

async function run() {
  const over = new AbortController();
  const following = [
    cluster.follow("/cluster?follow=1", {
      value: show,
      lost: (from, to) => {
        say(byId("connection"), `${from} does not answer; asking ${to}`);
        byId("connection").className = "connection lost";
      },
    }, over.signal),
    logs.run(over.signal),
    faults.run(over.signal),
  ];
  try {
    await Promise.all(following);
  } catch (error) {
    over.abort();
    if (!(error instanceof Refused)) throw error;
    ask(error.message);
  }
}

function ask(why) {
  byId("main").hidden = true;
  byId("ask").hidden = false;
  say(byId("ask-why"), why);
  say(byId("connection"), "waiting for a token");
  byId("token").focus();
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = byId("token");
  cluster.setToken(input.value.trim());
  input.value = "";
  run();
});

run();
