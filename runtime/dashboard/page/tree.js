/**
 * The tree: a list of sites within lists (that is what a screen reader gets), each site a button that stands at its
 * place, and behind them the links, drawn.
 */
import { briefly, bytes, duration, el, millis, rate, say, svg } from "./show.js";

const CARD = { width: 174, height: 84 };
const ROW = 150;
const PAD = { top: 8, bottom: 66, side: 8 };
const GAP = 16;
/** Where the tree is wider than its place (a phone): one site below the other, as in a list of folders. */
const NARROW = { row: CARD.height + 28, indent: 22, stem: 12 };

export class Tree {
  #parts;
  #select;
  #cards = new Map();
  #wires = new Map();
  #shape = "";
  #places = new Map();

  constructor(parts, select) {
    this.#parts = parts;
    this.#select = select;
    new ResizeObserver(() => this.#place()).observe(parts.stage);
  }

  /** The middle of a site's lower edge, from where its sessions leave; undefined where it has none. */
  foot(id) {
    const place = this.#places.get(id);
    return place && { x: place.x, y: place.y + CARD.height };
  }

  /** Where moving things are drawn. */
  get canvas() {
    return this.#parts.wires;
  }

  show(view, chaos, selected) {
    const shape = view.sites.map((site) => `${site.id}<${site.parent}`).join();
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#build(view.sites);
    }
    const sites = new Map(view.sites.map((site) => [site.id, site]));
    for (const site of view.sites) {
      this.#fill(this.#cards.get(site.id), site, chaos, selected);
      const wire = this.#wires.get(site.id);
      if (wire !== undefined) this.#wire(wire, site, sites.get(site.parent), chaos);
    }
  }

  #build(sites) {
    this.#cards.clear();
    this.#wires.clear();
    const known = new Set(sites.map(({ id }) => id));
    const childrenOf = (id) =>
      sites.filter(({ parent }) => id === null ? parent === null || !known.has(parent) : parent === id);
    this.#places = layout(childrenOf);
    const branch = (id) =>
      childrenOf(id).map((site) => {
        const children = branch(site.id);
        return el("li", {}, this.#card(site), ...children.length === 0 ? [] : [el("ul", {}, ...children)]);
      });
    this.#parts.list.replaceChildren(...branch(null));
    const wires = sites.filter(({ parent }) => known.has(parent)).map((site) => {
      const wire = {
        path: svg("path", { class: "wire" }),
        label: svg("text", { class: "wire-label", "text-anchor": "middle" }),
      };
      this.#wires.set(site.id, { ...wire, parent: site.parent });
      return svg("g", {}, wire.path, wire.label);
    });
    this.#parts.wires.replaceChildren(...wires);
    this.#place();
    const { stage } = this.#parts;
    stage.scrollLeft = (stage.scrollWidth - stage.clientWidth) / 2; // on a phone: the root, not its left
  }

  #card({ id, tier }) {
    const card = {
      rate: el("span", { class: "big" }),
      lag: el("span"),
      pendingText: el("span"),
      state: el("span", { class: "state" }),
    };
    card.pending = el(
      "span",
      { class: "pending", title: "rows and bytes that the parent has not acknowledged" },
      card.pendingText,
      el("span", { class: "unseen" }, " rows and bytes pending"),
    );
    card.button = el(
      "button",
      { type: "button", class: "card", onclick: () => this.#select(id) },
      el(
        "span",
        { class: "title" },
        el("span", { class: "name" }, id, el("span", { class: "tier" }, ` ${tier}`)),
        card.state,
      ),
      el("span", { class: "row" }, card.rate, el("span", { class: "unit" }, " requests/s")),
      el("span", { class: "row small" }, el("span", { class: "key" }, "lag "), card.lag, card.pending),
    );
    this.#cards.set(id, card);
    return card.button;
  }

  #fill(card, site, chaos, selected) {
    const { status, rates, reachable, alerts, silentMs } = site;
    const paused = chaos?.paused.includes(site.id), down = chaos?.down.includes(site.id);
    const state = !reachable ? "away" : alerts.length > 0 ? "alert" : "ok";
    card.button.className = `card ${state}${selected === site.id ? " selected" : ""}`;
    card.button.setAttribute("aria-pressed", String(selected === site.id));
    const gone = down ? "killed" : paused ? "paused" : silentMs === null ? "no word" : "away";
    const codes = alerts.map(({ code }) => code.replaceAll("_", " "));
    say(
      card.state,
      !reachable
        ? `${gone}${silentMs === null ? "" : ` ${briefly(silentMs)}`}`
        : codes.length > 1
        ? `${codes.length} alerts`
        : codes[0] ?? "",
    );
    card.button.title = alerts.map(({ detail }, i) => `${codes[i]}: ${detail}`).join("\n");
    say(card.rate, reachable ? rate(rates?.all.requestsPerS ?? 0) : "–");
    say(card.lag, reachable ? duration(site.lagMs) : "–");
    const pending = status?.pending ?? 0;
    card.pending.hidden = !reachable || pending === 0;
    say(card.pendingText, ` ↑ ${pending}, ${bytes(status?.pendingBytes ?? 0)}`);
  }

  #wire({ path, label, parent }, site, above, chaos) {
    const isCut =
      chaos?.cuts.some(({ a, b }) => (a === site.id && b === parent) || (a === parent && b === site.id)) ??
        false;
    const seenAbove = above?.reachable
      ? above.status?.children.find(({ id }) => id === site.id)?.connected ?? false
      : null;
    const isUp = site.reachable ? site.status?.parent?.connected ?? false : seenAbove;
    const state = isCut || isUp === false ? "cut" : isUp === null ? "unknown" : "up";
    path.setAttribute("class", `wire ${state}`);
    const rttMs = site.status?.parent?.rttMs;
    const rtt = rttMs === null || rttMs === undefined ? "" : millis(rttMs);
    const broken = isCut || site.reachable ? "cut" : "down";
    say(label, { up: rtt, cut: broken, unknown: "?" }[state]);
    label.setAttribute("class", `wire-label ${state}`);
  }

  #place() {
    const leaves = Math.max(1, ...[...this.#places.values()].map(({ column }) => column + 1));
    const depth = Math.max(0, ...[...this.#places.values()].map(({ row }) => row));
    const { stage, wires } = this.#parts;
    const isNarrow = stage.clientWidth < leaves * (CARD.width + GAP) + 2 * PAD.side;
    const width = stage.clientWidth;
    const height = PAD.top + PAD.bottom + CARD.height +
      (isNarrow ? (this.#places.size - 1) * NARROW.row : depth * ROW);
    const columnWidth = (width - 2 * PAD.side) / leaves;
    this.#parts.list.style.width = `${width}px`;
    this.#parts.list.style.height = `${height}px`;
    wires.setAttribute("width", width);
    wires.setAttribute("height", height);
    wires.setAttribute("viewBox", `0 0 ${width} ${height}`);
    for (const [id, place] of this.#places) {
      place.left = isNarrow
        ? PAD.side + place.row * NARROW.indent
        : PAD.side + (place.column + 0.5) * columnWidth - CARD.width / 2;
      place.y = PAD.top + (isNarrow ? place.order * NARROW.row : place.row * ROW);
      const cardWidth = isNarrow ? Math.max(width - place.left - PAD.side, 80) : CARD.width;
      place.x = place.left + cardWidth / 2;
      const { style } = this.#cards.get(id).button;
      style.left = `${place.left}px`;
      style.top = `${place.y}px`;
      style.width = `${cardWidth}px`;
      style.height = `${CARD.height}px`;
    }
    for (const [id, { path, label, parent }] of this.#wires) {
      const way = isNarrow ? elbow : curve;
      const { d, x, y } = way(this.#places.get(parent), this.#places.get(id));
      path.setAttribute("d", d);
      label.setAttribute("x", String(x));
      label.setAttribute("y", String(y + 4));
    }
  }
}

/** A link from a site down to one below it, and where its label is. */
function curve(from, to) {
  const y0 = from.y + CARD.height, y1 = to.y, middle = (y0 + y1) / 2;
  const d = `M${from.x} ${y0}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${y1}`;
  return { d, x: (from.x + to.x) / 2, y: middle };
}

/** The same where sites stand below each other. */
function elbow(from, to) {
  const x = from.left + NARROW.stem, middle = to.y + CARD.height / 2;
  return { d: `M${x} ${from.y + CARD.height}V${middle}H${to.left}`, x: to.left + 30, y: to.y - 14 };
}

/** Leaves side by side, parents above the middle of their children; `order` is that of a list. */
function layout(childrenOf) {
  const places = new Map();
  let column = 0, count = 0;
  const visit = (id, row) => {
    const order = id === null ? 0 : count++; // parents before their children
    const children = childrenOf(id).map((child) => visit(child.id, row + 1));
    const at = children.length === 0 ? column++ : (Math.min(...children) + Math.max(...children)) / 2;
    if (id !== null) places.set(id, { column: at, row, order, left: 0, x: 0, y: 0 });
    return at;
  };
  visit(null, -1);
  return places;
}
