/**
 * Sessions that go from site to site: a dot each on its way (a line where motion is not wanted), and a table of the
 * last minute, which says the same in words.
 */
import { el, svg } from "./show.js";

const KINDS = ["nothing", "carry", "wait"];
const KEPT_MS = 60_000;
/** Dots that set out within one second from one site to another: more are a blur. */
const DOTS_MAX = 6;
const FLIGHT_MS = 900;
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Moves {
  #tree;
  #table;
  #last = new Map();
  /** {atMs, from, to, kind, count}, oldest first. */
  #recent = [];

  constructor(tree, table) {
    this.#tree = tree;
    this.#table = table;
  }

  show(view) {
    const nowMs = performance.now();
    for (const site of view.sites) {
      if (!site.reachable || site.rates === null) continue;
      const before = this.#last.get(site.id);
      const upMs = site.rates.process.upMs;
      // A site that has started again counts from nothing.
      const isSame = before !== undefined && before.upMs <= upMs;
      for (const moved of site.rates.moved) {
        if (moved.from === null || before === undefined) continue;
        const old = isSame ? before.moved.find(({ from }) => from === moved.from) : undefined;
        for (const kind of KINDS) {
          const count = moved[kind] - (old?.[kind] ?? 0);
          if (count <= 0) continue;
          this.#recent.push({ atMs: nowMs, from: moved.from, to: site.id, kind, count });
          this.#fly(moved.from, site.id, kind, count);
        }
      }
      this.#last.set(site.id, { upMs, moved: site.rates.moved });
    }
    while (this.#recent[0]?.atMs < nowMs - KEPT_MS) this.#recent.shift();
    this.#list();
  }

  #list() {
    const ways = new Map();
    for (const { from, to, kind, count } of this.#recent) {
      const key = `${from} ${to}`;
      const way = ways.get(key) ?? { from, to, nothing: 0, carry: 0, wait: 0 };
      way[kind] += count;
      ways.set(key, way);
    }
    const rows = [...ways.values()].sort((a, b) => a.from.localeCompare(b.from) || a.to.localeCompare(b.to));
    this.#table.replaceChildren(
      ...rows.map(({ from, to, ...counts }) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, from),
          el("td", {}, to),
          ...KINDS.map((kind) =>
            el("td", { class: counts[kind] === 0 ? "n zero" : `n ${kind}` }, String(counts[kind]))
          ),
        )
      ),
      ...rows.length > 0
        ? []
        : [el("tr", {}, el("td", { colSpan: 5, class: "none" }, "no session has moved"))],
    );
  }

  #fly(from, to, kind, count) {
    const begin = this.#tree.foot(from), end = this.#tree.foot(to);
    if (begin === undefined || end === undefined || document.hidden) return;
    const path = arc(begin, end);
    if (still.matches) return this.#draw(path, kind);
    for (let i = 0; i < Math.min(count, DOTS_MAX); i++) {
      const dot = svg("circle", { r: 5, class: `dot ${kind}` });
      dot.style.offsetPath = `path("${path}")`;
      const flight = dot.animate(
        [{ offsetDistance: "0%", opacity: 0 }, { opacity: 1, offset: 0.15 }, { opacity: 1, offset: 0.85 }, {
          offsetDistance: "100%",
          opacity: 0,
        }],
        { duration: FLIGHT_MS, delay: (i * FLIGHT_MS) / DOTS_MAX, easing: "ease-in-out", fill: "both" },
      );
      flight.onfinish = () => dot.remove();
      this.#tree.canvas.append(dot);
    }
  }

  /** Where nothing is to move: the way itself, for a moment. */
  #draw(path, kind) {
    const line = svg("path", { d: path, class: `way ${kind}` });
    this.#tree.canvas.append(line);
    setTimeout(() => line.remove(), FLIGHT_MS);
  }
}

/** Below both ends, so that it crosses no card between them. */
function arc(begin, end) {
  const depth = Math.max(begin.y, end.y) + 26 + Math.min(50, Math.abs(end.x - begin.x) / 8);
  return `M${begin.x} ${begin.y}C${begin.x} ${depth} ${end.x} ${depth} ${end.x} ${end.y}`;
}
