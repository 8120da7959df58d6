/** Small things that all parts of the page need: elements, numbers as text, what is told to a screen reader. */

/** An element with properties, attributes (names with a dash, or `class`) and children. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name in node && !name.includes("-")) node[name] = value;
    else node.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** Sets an element's text, if it is another one: what does not change is not drawn, nor read aloud. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** C0 but for tab and newline, DEL, C1, and what turns the direction of writing. */
// deno-lint-ignore no-control-regex -- control characters are what it looks for
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** A text whose control characters are shown, not obeyed. */
export const visible = (text) =>
  text.replace(CONTROL, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);

/** A count with its noun. */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Tells a screen reader. */
export function announce(text) {
  byId("announce").textContent = text;
}

export const millis = (ms) =>
  ms === null || ms === undefined ? "–" : ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/** In few characters. */
export const briefly = (ms) =>
  ms < 100_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} min`;

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024;
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export const rate = (value) => value === 0 ? "0" : value < 10 ? value.toFixed(1) : String(Math.round(value));

/** A line of values, as wide as it is told. */
export function sparkline(values, { width = 96, height = 22 } = {}) {
  const most = Math.max(...values, 1);
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map((value, i) =>
    `${(i * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`
  );
  return svg(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    svg("polygon", { points: `0,${height} ${points.join(" ")} ${width},${height}` }),
    svg("polyline", { points: points.join(" ") }),
  );
}
