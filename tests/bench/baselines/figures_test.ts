import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { figures } from "./figures.ts";
import type { Results } from "./results.ts";
import { bytesName, linear, logarithmic, msName } from "./scale.ts";
import { escape, mark, picture, text } from "./svg.ts";

const ASSETS = new URL("../../../docs/assets/", import.meta.url);
const NAMES = ["paper-figure-5.svg", "paper-figure-6.svg", "paper-table-3.svg"];
const results = JSON.parse(await Deno.readTextFile(new URL("paper.json", ASSETS))) as Results;
const committed = (name: string): Promise<string> => Deno.readTextFile(new URL(name, ASSETS));

/** Elements of well-formed XML with their attributes; throws where tags don't match or a value is not quoted. */
function elements(xml: string): { name: string; attributes: Map<string, string> }[] {
  const found: { name: string; attributes: Map<string, string> }[] = [], open: string[] = [];
  let end = 0;
  for (
    const tag of xml.matchAll(
      /<(\/?)([a-zA-Z]+)((?:\s+[\w:-]+="[^"<&]*(?:&(?:amp|lt|gt|quot);[^"<&]*)*")*)\s*(\/?)>/g,
    )
  ) {
    const between = xml.slice(end, tag.index);
    if (/[<>]|&(?!(?:amp|lt|gt|quot);)/.test(between)) {
      throw new Error(`stray markup in ${JSON.stringify(between)}`);
    }
    end = tag.index + tag[0].length;
    const [, closes, name = "", attributes = "", isEmpty] = tag;
    if (closes === "/") {
      if (open.pop() !== name) throw new Error(`</${name}> closes nothing`);
      continue;
    }
    const pairs = [...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, key = "", value = ""]) =>
      [key, value] as const
    );
    found.push({ name, attributes: new Map(pairs) });
    if (isEmpty !== "/") open.push(name);
  }
  if (open.length > 0 || xml.slice(end).trim() !== "") throw new Error(`not closed: ${open.join(", ")}`);
  return found;
}

Deno.test("the scanner of this test tells well-formed pictures from others", () => {
  strictEqual(elements(`<svg a="1"><g/><text>a &amp; b</text></svg>`).length, 3);
  for (
    const bad of [
      "<svg>",
      "<svg></g>",
      "<svg a=1/>",
      "<svg><text>a & b</text></svg>",
      "<svg/>x",
      "<svg><</svg>",
    ]
  ) {
    throws(() => elements(bad), Error, bad);
  }
});

for (const name of NAMES) {
  Deno.test(`${name} parses, is self-contained, and is drawn within its frame`, async () => {
    const svg = await committed(name), parts = elements(svg);
    strictEqual(parts[0]?.name, "svg");
    const [, , width = 0, height = 0] = (parts[0]?.attributes.get("viewBox") ?? "").split(" ").map(Number);
    ok(width > 0 && height > 0);
    for (const { attributes } of parts) {
      for (
        const [key, limit] of [["x", width], ["x1", width], ["x2", width], ["cx", width], ["y", height], [
          "cy",
          height,
        ]] as const
      ) {
        const value = Number(attributes.get(key) ?? 0);
        ok(value >= 0 && value <= limit, `${key}=${value} is outside of ${width} × ${height}`);
      }
    }
    ok(svg.includes("prefers-color-scheme:dark"), "no colours for dark");
    deepStrictEqual(
      svg.match(/https?:[^"]*/g),
      ["http://www.w3.org/2000/svg"],
      "something is loaded from elsewhere",
    );
    ok(!/<script|<image|<foreignObject|url\(|@import/.test(svg));
  });

  Deno.test(`${name} shows the committed numbers`, async () => {
    strictEqual(
      await committed(name),
      figures(results).get(name),
      "draw it again: deno task bench paper --svg docs/assets",
    );
  });
}

Deno.test("each number of figure 6 and table III is said by a mark of its own", async () => {
  const six = await committed("paper-figure-6.svg"), three = await committed("paper-table-3.svg");
  for (const { full, by } of results.commands) {
    for (const { session, ours } of by) {
      for (const { ms, bytes } of [full, session, ours]) {
        ok(six.includes(`${msName(ms)}, ${bytesName(bytes)}</title>`));
      }
    }
  }
  for (const { baselines, ours } of results.table3) {
    for (const { bytes } of [...baselines, ...ours]) ok(three.includes(`: ${bytesName(bytes.mean)}</title>`));
  }
});

Deno.test("a changed number changes the picture", () => {
  const twice = (bytes: { mean: number; sd: number }) => ({ ...bytes, mean: 2 * bytes.mean });
  const changed: Results = {
    ...results,
    table3: results.table3.map((table) => ({
      ...table,
      baselines: table.baselines.map((moves) => ({ ...moves, bytes: twice(moves.bytes) })),
    })),
  };
  const drawn = (of: Results) => figures(of).get("paper-table-3.svg");
  ok(drawn(changed) !== drawn(results));
});

Deno.test("scales put values where they belong, zero before a gap", () => {
  const even = linear("x", 100, 25);
  deepStrictEqual(even.ticks.map(({ label }) => label), ["0", "25", "50", "75", "100"]);
  strictEqual(even.at(50), 0.5);
  const log = logarithmic("x", { from: 10, to: 1_000, hasZero: true, name: String });
  deepStrictEqual(log.ticks.map(({ label }) => label), ["0", "10", "100", "1000"]);
  strictEqual(log.at(0), 0);
  ok(log.at(10) > 0.05 && Math.abs(log.at(1_000) - 1) < 1e-9);
  ok(Math.abs((log.at(100) - log.at(10)) - (log.at(1_000) - log.at(100))) < 1e-9);
});

Deno.test("text is escaped, and what has no place is refused", () => {
  ok(text(0, 0, `<b> & "c"`).includes("&lt;b&gt; &amp; &quot;c&quot;"));
  strictEqual(escape("Δ"), "Δ");
  throws(() => mark(NaN, 0, "x", 0, "full"), RangeError);
  elements(picture(10, 10, "a < b", "c & d", [text(1, 1, `"`)]));
});
