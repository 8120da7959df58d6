/** The picture: what one sees from the bus, as SVG, and what each tool does to it, as CSS. */

/** Tools, as they stand on the page. */
export const TOOLS = [
  "stabilise",
  "crop",
  "mirror",
  "brighten",
  "contrast",
  "warm",
  "cool",
  "saturate",
  "mono",
  "soften",
] as const;
/** One of {@link TOOLS}. */
export type Tool = (typeof TOOLS)[number];

/** How the picture is shown. */
export interface Look {
  /** CSS `filter`: each step's, in order; the order is seen. */
  readonly filter: string;
  /** CSS `transform`. */
  readonly transform: string;
}

const FILTERS: Partial<Record<Tool, string>> = {
  brighten: "brightness(1.12)",
  contrast: "contrast(1.18)",
  warm: "sepia(.3) saturate(1.25)",
  cool: "hue-rotate(-14deg) saturate(.95)",
  saturate: "saturate(1.35)",
  mono: "grayscale(.85)",
  soften: "blur(.7px)",
};

/** It was taken on a moving bus. */
const TILT_DEG = 6;
/** Each stabilising takes this share of the tilt away. */
const STEADIER = 0.45;
const CROP = 1.12;
/** Cropped further, there is nothing left to see. */
const CROP_MAX = 2.2;

/** What a series of tools makes of the picture. */
export function lookOf(tools: readonly Tool[]): Look {
  let tilt = TILT_DEG, crop = 1, side = 1;
  const filters: string[] = [];
  for (const tool of tools) {
    if (tool === "stabilise") tilt *= STEADIER;
    else if (tool === "crop") crop = Math.min(crop * CROP, CROP_MAX);
    else if (tool === "mirror") side = -side;
    else filters.push(FILTERS[tool] ?? "");
  }
  return {
    filter: filters.length === 0 ? "none" : filters.join(" "),
    transform: `scale(${(side * crop).toFixed(3)}, ${crop.toFixed(3)}) rotate(${tilt.toFixed(2)}deg)`,
  };
}

const windows = (x: number, y: number, columns: number, rows: number): string =>
  Array.from({ length: columns * rows }, (_, i) => {
    const [column, row] = [i % columns, Math.floor(i / columns)];
    const lit = (column * 7 + row * 5 + x) % 3 === 0 ? "#ffd98a" : "#31415e";
    return `<rect x="${x + column * 16}" y="${y + row * 20}" width="8" height="11" rx="1" fill="${lit}"/>`;
  }).join("");

const house = (x: number, width: number, height: number, fill: string): string =>
  `<rect x="${x}" y="${330 - height}" width="${width}" height="${height}" fill="${fill}"/>` +
  windows(x + 9, 342 - height, Math.floor((width - 10) / 16), Math.floor((height - 16) / 20));

/** A harbour town at dusk. Larger than its frame, so that tilting shows no corner. */
export const SCENE = `
<svg viewBox="0 0 800 450" preserveAspectRatio="xMidYMid slice" role="img" aria-label="A harbour town at dusk">
  <defs>
    <linearGradient id="sky" x2="0" y2="1">
      <stop stop-color="#243a6b"/><stop offset=".55" stop-color="#d9788a"/><stop offset=".8" stop-color="#ffcf8f"/>
    </linearGradient>
    <linearGradient id="sea" x2="0" y2="1"><stop stop-color="#e8a58e"/><stop offset="1" stop-color="#26406b"/></linearGradient>
  </defs>
  <rect width="800" height="450" fill="url(#sky)"/>
  <circle cx="560" cy="268" r="44" fill="#fff1c9"/>
  <path d="M0 300 L110 190 L190 262 L300 150 L430 286 L520 230 L640 300 L800 210 L800 340 L0 340Z" fill="#5b4a72" opacity=".75"/>
  <path d="M0 320 L150 250 L260 305 L400 240 L560 318 L700 262 L800 310 L800 340 L0 340Z" fill="#3c3658"/>
  ${house(70, 62, 96, "#4c5478")}${house(140, 48, 138, "#3a4265")}${house(196, 76, 78, "#545b80")}
  ${house(300, 52, 116, "#414a70")}${house(360, 80, 66, "#4b5379")}${house(620, 58, 104, "#434b70")}${
  house(686, 70, 72, "#525a80")
}
  <rect y="330" width="800" height="120" fill="url(#sea)"/>
  <g stroke="#ffe6b8" stroke-width="3" stroke-linecap="round" opacity=".75">
    <path d="M536 348h48M520 366h80M542 386h40M508 408h96"/>
  </g>
  <g fill="#f7f3ea"><path d="M232 398 l74 0 -14 18 -46 0Z" fill="#7d2f3b"/><path d="M266 340 v54 h-32Z"/><path d="M270 350 v44 h28Z" opacity=".8"/></g>
  <g fill="none" stroke="#1d2440" stroke-width="3" stroke-linecap="round">
    <path d="M420 120 q10 -10 18 0 q8 -10 18 0M470 150 q7 -7 13 0 q6 -7 13 0M392 158 q6 -6 11 0 q5 -6 11 0"/>
  </g>
</svg>`;
