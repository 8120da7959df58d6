/**
 * SVG by hand, as much of it as two kinds of chart need: text, lines, marks, axes. Readable on light and dark (the
 * reader's colour scheme decides), in the reader's own sans-serif font, without scripts.
 *
 * S1  All text is escaped; numbers are finite, or nothing is drawn.
 * S2  The same input gives the same bytes.
 */

/** An escaped piece of SVG. */
export type Svg = string;

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escape = (text: string): string => text.replace(/[&<>"]/g, (each) => ESCAPES[each] ?? each);

/** Series take these classes in their order; hues that people who see few colours can tell apart (Okabe, Ito). */
const SERIES = [
  { light: "#0072b2", dark: "#56b4e9" },
  { light: "#b35900", dark: "#e69f00" },
  { light: "#00785a", dark: "#2fc79a" },
  { light: "#a3407b", dark: "#e08fc0" },
] as const;

const STYLE = [
  "text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:12px;fill:var(--ink)}",
  ".title{font-size:14px;font-weight:600}.soft{fill:var(--soft)}.strong{font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:5px}",
  ".grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}",
  ".line{fill:none;stroke-width:2}.dashed{stroke-dasharray:6 4}.dotted{stroke-dasharray:2 3}",
  "svg{--ink:#1b1f24;--soft:#57606a;--grid:#d8dee4;--paper:#ffffff;" +
  SERIES.map(({ light }, i) => `--s${i}:${light};`).join("") + "--ours:#1b1f24}",
  "@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa4af;--grid:#30363d;--paper:#0d1117;" +
  SERIES.map(({ dark }, i) => `--s${i}:${dark};`).join("") + "--ours:#e6edf3}}",
].join("");

/** The colour of a series; "ours" is the ink itself. */
export const colour = (series: number | "ours"): string =>
  series === "ours" ? "var(--ours)" : `var(--s${series})`;

/** A number as SVG wants it. @throws RangeError for one that is not finite (S1). */
export function at(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} has no place in a picture`);
  return String(Math.round(value * 100) / 100);
}

export interface TextOptions {
  readonly anchor?: "start" | "middle" | "end";
  readonly classes?: string;
  /** Turned by a quarter, to read upwards. */
  readonly isUpright?: boolean;
}

export function text(x: number, y: number, value: string, options: TextOptions = {}): Svg {
  const { anchor = "start", classes = "", isUpright = false } = options;
  const turned = isUpright ? ` transform="rotate(-90 ${at(x)} ${at(y)})"` : "";
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}"${
    classes === "" ? "" : ` class="${classes}"`
  }${turned}>` +
    `${escape(value)}</text>`;
}

export const line = (x1: number, y1: number, x2: number, y2: number, classes: string): Svg =>
  `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" class="${classes}"/>`;

/** A mark with the value that it shows, which a reader sees on pointing at it. */
export function mark(
  x: number,
  y: number,
  says: string,
  series: number | "ours",
  shape: "full" | "hollow",
): Svg {
  // A ring shows what it agrees with.
  const [fill, radius] = shape === "full" ? [colour(series), 4] : ["none", 6.5];
  return `<circle cx="${at(x)}" cy="${at(y)}" r="${radius}" fill="${fill}" stroke="${colour(series)}" ` +
    `stroke-width="1.5"><title>${escape(says)}</title></circle>`;
}

export function polyline(
  points: readonly (readonly [number, number])[],
  series: number | "ours",
  classes: string,
): Svg {
  const list = points.map(([x, y]) => `${at(x)},${at(y)}`).join(" ");
  return `<polyline points="${list}" class="line ${classes}" stroke="${colour(series)}"/>`;
}

/** A whole picture; `says` is for those who can't see it. */
export function picture(
  width: number,
  height: number,
  title: string,
  says: string,
  parts: readonly Svg[],
): Svg {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
    `role="img" aria-labelledby="title says">`,
    `<title id="title">${escape(title)}</title>`,
    `<desc id="says">${escape(says)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect width="${width}" height="${height}" fill="var(--paper)"/>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}
