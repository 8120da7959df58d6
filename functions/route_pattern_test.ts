import assert from "node:assert/strict";
import { cpuUsage } from "node:process";
import fc from "fast-check";
import {
  canonicalPath,
  PATTERN_CHARS_MAX,
  routePattern,
  RoutePatterns,
  routeProblem,
} from "./route_pattern.ts";

/** Pieces that patterns are made of. */
const PIECES = [
  ..."/ // /a a b - . .. %2f é * ** :x :y /:x /:x? /:x* /:x+ :x? {a} {a}? {a}* {/a}+ {/:x}? {a:x-b}* {/:x/b}+"
    .split(" "),
  ..."\\: \\* \\{ { } ? + : {} {}? $ _ , ; @ = & ! ~ [ ] ( ^ |".split(" "),
];
const paths = fc.array(fc.constantFrom(..."/ / a b - . .. % %2f é x : * { } ? + é [ ^ | 1".split(" "))).map((
  all,
) => `/${all.join("")}`);

/** What URLPattern takes for longer ones is what this is all about. */
const TRUTH_CHARS_MAX = 12;

Deno.test("a route's pattern matches what URLPattern matches (RP1)", () => {
  let read = 0, matched = 0;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }), fc.array(paths), (pieces, tried) => {
      const text = `/${pieces.join("")}`;
      let truth: URLPattern;
      try {
        truth = new URLPattern({ pathname: text });
      } catch {
        assert.throws(() => routePattern(text), TypeError);
        return;
      }
      if (truth.hasRegExpGroups) return;
      read++;
      const pattern = routePattern(text);
      // What a pattern was made of is what it is likeliest to match.
      const own = pieces.map((piece) => piece.replaceAll(/[{}?*+:\\]/g, "")).join("");
      for (const whole of [...tried, `/${own}`, `/${own}/${own}`, text]) {
        const path = whole.slice(0, TRUTH_CHARS_MAX);
        const expected = truth.test({ pathname: path });
        if (expected) matched++;
        assert.equal(pattern.matches(canonicalPath(path)), expected, `${text} on ${path}`);
      }
    }),
    { numRuns: 1_000, seed: 7 },
  );
  assert.ok(read > 300 && matched > 500, `${read} patterns, ${matched} matches`);
});

Deno.test("a pattern with an expression can't be deployed; one that was is tried where it is small (RP2)", () => {
  for (const text of ["/:x(\\d+)", "/(a|b)", "/:x((?:a+)+)b", "/(.*)", "/a{(b+)}?"]) {
    if (text === "/(.*)") {
      assert.equal(routeProblem(text, new RoutePatterns()), null, "URLPattern reads it as *");
    } else assert.match(routeProblem(text, new RoutePatterns()) ?? "", /an expression/, text);
  }
  const number = routePattern("/:x(\\d+)");
  assert.deepEqual(["/12", "/a", "/12/"].map(number.matches), [true, false, false]);
  assert.equal(routePattern("/(a{1,900})").matches("/a"), false, "its automaton is large");
  assert.throws(() => routePattern("/((?=a)a)"), "no automaton looks ahead");
  assert.match(routeProblem("a", new RoutePatterns()) ?? "", /does not begin with \//);
  assert.match(
    routeProblem("/" + "a".repeat(PATTERN_CHARS_MAX), new RoutePatterns()) ?? "",
    /more than 1024/,
  );
});

Deno.test("a path of any length is matched in a moment, whatever the pattern", () => {
  const rows = [
    ["/:x((?:a+)+)b", "a"],
    [`/${"*a".repeat(200)}b`, "a"],
    [`/${":x-".repeat(100).replaceAll(":x", () => `:x${names++}`)}b`, "a-"],
    [`${"{/:x}?".repeat(100).replaceAll(":x", () => `:x${names++}`)}/b`, "/a"],
    ["/:x*/:y*/b", "/a"],
  ] as const;
  for (const [text, piece] of rows) {
    const { matches } = routePattern(text);
    const path = "/" + piece.repeat(32_768 / piece.length);
    const begunMs = cpuMs();
    for (let times = 0; times < 3; times++) matches(path);
    const ms = cpuMs() - begunMs;
    assert.ok(ms < 1_500, `${text.slice(0, 40)}: ${ms.toFixed(0)} ms`);
  }
});

let names = 0;

/** Of this process: the machine may be busy. */
function cpuMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}
