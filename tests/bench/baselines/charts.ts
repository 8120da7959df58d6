/** Two kinds of chart: rows of dots, and lines over an axis. */
import type { Scale } from "./scale.ts";
import { at, colour, escape, line, mark, picture, polyline, type Svg, text } from "./svg.ts";

/** A value that is shown. */
export interface Dot {
  readonly value: number;
  readonly says: string;
  readonly series: number | "ours";
  /** Hollow: the paper's own. */
  readonly shape: "full" | "hollow";
}

export interface DotRow {
  readonly label: string;
  readonly dots: readonly Dot[];
  /** Beside the row, at the right. */
  readonly note: string;
  readonly isOurs: boolean;
}

export interface DotGroup {
  readonly title: string;
  readonly rows: readonly DotRow[];
}

export interface DotChart {
  readonly title: string;
  readonly says: string;
  readonly x: Scale;
  /** Room for the labels. */
  readonly left: number;
  readonly groups: readonly DotGroup[];
  readonly legend: readonly {
    readonly label: string;
    readonly series: number | "ours";
    readonly shape: "full" | "hollow";
  }[];
}

const WIDTH = 860;
const ROW_HEIGHT = 24;
const RIGHT = 150;
const TOP = 70;

/** Rows of dots over one axis. */
export function dotChart({ title, says, x, left, groups, legend }: DotChart): Svg {
  const parts: Svg[] = [text(16, 26, title, { classes: "title" }), ...legendOf(legend, 16, 48)];
  const px = (value: number) => left + x.at(value) * (WIDTH - left - RIGHT);
  const lines = groups.reduce((sum, group) => sum + group.rows.length + 1.3, 0);
  const bottom = TOP + lines * ROW_HEIGHT;
  for (const tick of x.ticks) {
    parts.push(line(px(tick.value), TOP, px(tick.value), bottom, "grid"));
    parts.push(text(px(tick.value), bottom + 18, tick.label, { anchor: "middle", classes: "soft" }));
  }
  parts.push(text((left + WIDTH - RIGHT) / 2, bottom + 38, x.label, { anchor: "middle" }));
  let y = TOP;
  for (const group of groups) {
    y += 1.1 * ROW_HEIGHT;
    parts.push(text(16, y - 4, group.title, { classes: "strong" }));
    for (const row of group.rows) {
      y += ROW_HEIGHT;
      parts.push(
        text(left - 14, y, row.label, { anchor: "end", ...row.isOurs ? { classes: "strong" } : {} }),
      );
      const places = row.dots.map((dot) => px(dot.value));
      if (places.length > 1) {
        const thread = `<line x1="${at(Math.min(...places))}" y1="${at(y - 4)}" x2="${
          at(Math.max(...places))
        }" y2="${at(y - 4)}" class="axis"/>`;
        parts.push(thread);
      }
      for (const dot of row.dots) parts.push(mark(px(dot.value), y - 4, dot.says, dot.series, dot.shape));
      parts.push(text(WIDTH - RIGHT + 12, y, row.note, { classes: row.isOurs ? "strong" : "soft" }));
    }
    y += 0.2 * ROW_HEIGHT;
  }
  return picture(WIDTH, Math.ceil(bottom + 52), title, says, parts);
}

function legendOf(legend: DotChart["legend"], x: number, y: number): Svg[] {
  let left = x + 5;
  return legend.flatMap(({ label, series, shape }) => {
    const parts = [mark(left, y - 4, label, series, shape), text(left + 11, y, label)];
    left += 38 + label.length * 7;
    return parts;
  });
}

/** A line of a chart. */
export interface Line {
  readonly label: string;
  readonly series: number | "ours";
  readonly style: "solid" | "dashed" | "dotted";
  readonly points: readonly { readonly x: number; readonly y: number; readonly says: string }[];
  /** How far its label stands below its last point, where lines end side by side. */
  readonly nudge?: number;
}

export interface LineChart {
  readonly title: string;
  readonly says: string;
  readonly x: Scale;
  readonly y: Scale;
  readonly lines: readonly Line[];
}

const PLOT = { left: 80, right: 290, top: 44, height: 400 } as const;

/** Lines over an axis, each named at its end. */
export function lineChart({ title, says, x, y, lines }: LineChart): Svg {
  const bottom = PLOT.top + PLOT.height;
  const px = (value: number) => PLOT.left + x.at(value) * (WIDTH - PLOT.left - PLOT.right);
  const py = (value: number) => bottom - y.at(value) * PLOT.height;
  const parts: Svg[] = [text(16, 26, title, { classes: "title" })];
  for (const tick of x.ticks) {
    parts.push(line(px(tick.value), PLOT.top, px(tick.value), bottom, "grid"));
    parts.push(text(px(tick.value), bottom + 18, tick.label, { anchor: "middle", classes: "soft" }));
  }
  for (const tick of y.ticks) {
    parts.push(line(PLOT.left, py(tick.value), WIDTH - PLOT.right, py(tick.value), "grid"));
    parts.push(text(PLOT.left - 8, py(tick.value) + 4, tick.label, { anchor: "end", classes: "soft" }));
  }
  parts.push(text((PLOT.left + WIDTH - PLOT.right) / 2, bottom + 38, x.label, { anchor: "middle" }));
  parts.push(text(22, PLOT.top + PLOT.height / 2, y.label, { anchor: "middle", isUpright: true }));
  for (const each of lines) {
    const places = each.points.map((point) => [px(point.x), py(point.y)] as const);
    parts.push(polyline(places, each.series, each.style === "solid" ? "" : each.style));
    each.points.forEach((point, i) => {
      const [cx, cy] = places[i] ?? [0, 0];
      parts.push(
        `<circle cx="${at(cx)}" cy="${at(cy)}" r="3" fill="${colour(each.series)}"><title>${
          escape(point.says)
        }</title></circle>`,
      );
    });
    const [, lastY] = places.at(-1) ?? [0, 0];
    parts.push(text(WIDTH - PLOT.right + 10, lastY + 4 + (each.nudge ?? 0), each.label, {
      ...each.series === "ours" ? { classes: "strong" } : {},
    }));
  }
  return picture(WIDTH, bottom + 52, title, says, parts);
}
