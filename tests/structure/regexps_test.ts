/**
 * Regular expressions of our own are matched in a time that grows with the text, and not with its square: texts are
 * apps', clients' and other sites', and a whole site waits while one is searched.
 *
 * RX1  Every literal in production code is linear, whoever its text is trusted to come from today: said by an analysis of
 *      the expression (scslre), and measured with texts that are made of its own parts again and again.
 * RX2  What is no literal is made of escaped text, or is not matched here.
 */
import assert from "node:assert/strict";
import { cpuUsage } from "node:process";
import { parse } from "acorn";
import * as esbuild from "esbuild";
import { analyse } from "scslre";
import { readSources } from "./sources.ts";

const root = new URL("../../", import.meta.url);

/** Expressions that are not made of a literal, by file: why each may be. */
const MADE: Readonly<Record<string, string>> = {
  "runtime/secrets/redaction.ts": "alternatives of escaped text",
  "functions/route_pattern.ts": "an app's, read and never matched",
  "functions/client/verdict.ts": "two names of its own, over a header of the site that a program chose",
  "functions/tracked/content.ts": "a value of an app's state, made in its isolate and matched by it alone",
};

/** Long enough that a square is seen, short enough that a hundred thousand linear searches take seconds. */
const LENGTHS = [24, 2_000, 40_000];
/** A linear search of the longest takes a twentieth of this on a slow machine, a quadratic one ten times it. */
const SEARCH_MS_MAX = 60;
const TRIES = 4;

const isProduction = (path: string): boolean =>
  /^(?:store|functions|runtime)\//.test(path) && !path.endsWith("_test.ts");

/** All regular expressions of a program. */
function literalsOf(node: unknown, found = new Set<string>()): Set<string> {
  if (typeof node !== "object" || node === null) return found;
  const { regex } = node as { readonly regex?: { readonly pattern: string; readonly flags: string } };
  if (regex !== undefined) found.add(`${regex.flags}/${regex.pattern}`);
  else for (const each of Object.values(node)) literalsOf(each, found);
  return found;
}

/** What an expression is made of, as texts: runs of plain characters, and one of each kind that classes have. */
function partsOf(pattern: string): string[] {
  const plain = pattern.replace(/\\([^a-zA-Z0-9])/g, "$1").match(/[A-Za-z0-9/:@_ -]+|[^A-Za-z0-9/:@_ -]/g) ??
    [];
  return [...new Set([...plain, ..." a0-/:.,;=_\"'\\\n\t\ufffd"])];
}

/** The longest that a search takes, of all texts that are tried; Infinity stands for more than is waited for. */
function slowest(regexp: RegExp, parts: readonly string[]): { readonly ms: number; readonly text: string } {
  let worst = { ms: 0, text: "" };
  const heads = ["", ...parts.filter((part) => part.length > 1)];
  for (const length of LENGTHS) {
    for (const pump of [...parts, ...parts.map((part) => `${part}a`), ...parts.map((part) => `${part}0`)]) {
      for (const head of heads) {
        for (const tail of ["", "\x01"]) {
          const text = head + pump.repeat(length / pump.length) + tail;
          let ms = Infinity;
          for (let tries = 0; tries < TRIES && ms > SEARCH_MS_MAX; tries++) {
            // A machine that is busy stretches the first try only.
            const nowMs = tries === 0 ? () => performance.now() : () => cpuUsage().user / 1000;
            const begunMs = nowMs();
            regexp.flags.includes("g") ? text.replace(regexp, "") : regexp.test(text);
            ms = Math.min(ms, nowMs() - begunMs);
          }
          if (ms > worst.ms) worst = { ms, text: `${head.slice(0, 20)}${pump} …` };
          if (ms > SEARCH_MS_MAX) return worst;
        }
      }
    }
  }
  return worst;
}

/** Why an expression is not linear; null where it is. */
function complaint(pattern: string, flags: string): string | null {
  const { reports } = analyse({ source: pattern, flags });
  const [report] = reports;
  if (report !== undefined) return `${report.type} of ${JSON.stringify(report.character)}`;
  const { ms, text } = slowest(new RegExp(pattern, flags), partsOf(pattern));
  return ms > SEARCH_MS_MAX ? `${ms.toFixed(0)} ms for ${JSON.stringify(text)}` : null;
}

Deno.test("regular expressions of production code are matched in linear time (RX1)", async () => {
  const all = new Map<string, string>();
  for (const { path, text } of (await readSources(root)).values()) {
    if (!isProduction(path)) continue;
    const { code } = await esbuild.transform(text, { loader: "ts", target: "esnext" });
    const program = parse(code, { ecmaVersion: "latest", sourceType: "module" });
    for (const literal of literalsOf(program)) all.set(literal, path);
  }
  await esbuild.stop();
  assert.ok(all.size > 100, `only ${all.size} were found`);
  const slow: string[] = [];
  for (const [literal, path] of all) {
    const [flags = ""] = literal.split("/", 1);
    const why = complaint(literal.slice(flags.length + 1), flags);
    if (why !== null) slow.push(`${path}: ${literal}: ${why}`);
  }
  assert.deepEqual(slow, []);
});

Deno.test("regular expressions are made of literals and escaped text only (RX2)", async () => {
  const made: string[] = [];
  for (const { path, code } of (await readSources(root)).values()) {
    if (isProduction(path) && /\bnew (?:RegExp|URLPattern)\(/.test(code) && !(path in MADE)) made.push(path);
  }
  assert.deepEqual(made, []);
});

Deno.test("an expression that is quadratic, or worse, is found", () => {
  const rows = [["(?:blob:[^\\s()]*|\\bbundle):(\\d+):(\\d+)", "g"], ["-+$", ""], ["^(a+)+$", ""], [
    "^.*a.*b$",
    "",
  ]];
  for (const [pattern = "", flags = ""] of rows) assert.notEqual(complaint(pattern, flags), null, pattern);
});
