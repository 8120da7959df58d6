import assert from "node:assert/strict";
import { isAllowedBuiltin } from "../../runtime/bundle/builtins.ts";
import { cycles } from "./cycles.ts";
import { readSources, type Source, sourceOf } from "./sources.ts";

const root = new URL("../../", import.meta.url);
const sources = await readSources(root);
const layerOf = (path: string): string => path.slice(0, path.indexOf("/"));
/** A folder of files: `runtime/link`, or `store` for what lies directly in it. */
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
const isTest = (path: string): boolean => path.startsWith("tests/") || path.endsWith("_test.ts");
const isNothing = (found: readonly string[], says: string) => assert.deepEqual(found, [], says);
const all = (pick: (source: Source) => readonly string[]): string[] => [...sources.values()].flatMap(pick);

/** What a layer may import of ours, beside itself. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  store: [],
  placement: ["store"],
  functions: ["store"],
  runtime: ["store", "placement", "functions"],
  examples: [],
  tests: ["store", "placement", "functions", "runtime", "examples"],
};

Deno.test("imports point one way between layers", () => {
  isNothing(
    all(({ path, imports }) =>
      imports.flatMap((each) => {
        if (
          each.path === null ||
          (path.startsWith("examples/") && /^sojourn(?:\/client)?$/.test(each.specifier))
        ) return [];
        const [from, to] = [layerOf(path), layerOf(each.path)];
        return from === to || MAY[from]?.includes(to) === true ? [] : [`${path} imports ${each.specifier}`];
      })
    ),
    "an import against the direction of the layers",
  );
});

Deno.test("an example imports its own files, sojourn, a few packages of npm and what of node an app has", () => {
  isNothing(
    all(({ path, imports }) => {
      if (!path.startsWith("examples/")) return [];
      const own = path.split("/").slice(0, 2).join("/") + "/";
      return imports
        .filter((each) =>
          !/^(?:sojourn(?:\/client)?|zod|pako|hono(?:\/.*)?)$/.test(each.specifier) &&
          !isAllowedBuiltin(each.specifier) && !each.path?.startsWith(own)
        )
        .map((each) => `${path} imports ${each.specifier}`);
    }),
    "an example that needs more than an app outside this repository would have",
  );
});

Deno.test("every import of ours names a file that exists", () => {
  isNothing(
    all(({ path, imports }) =>
      imports.filter((each) => each.path !== null && each.path.endsWith(".ts") && !sources.has(each.path))
        .map((each) => `${path} imports ${each.specifier}`)
    ),
    "an import of a file that is not there",
  );
});

Deno.test("files import each other in no cycle, types included", () => {
  const graph = new Map(
    [...sources.values()].map((source) => [
      source.path,
      new Set(source.imports.flatMap((each) => each.path ?? [])),
    ]),
  );
  isNothing(cycles(graph).map((group) => group.join(" ↔ ")), "a cycle between files");
});

Deno.test("folders import each other in no cycle, a folder and those in it no exception", () => {
  const graph = new Map<string, Set<string>>();
  for (const { path, imports } of sources.values()) {
    if (isTest(path)) continue;
    const mine = graph.get(folderOf(path)) ?? new Set();
    graph.set(folderOf(path), mine);
    for (const each of imports) {
      if (each.path !== null && folderOf(each.path) !== folderOf(path)) mine.add(folderOf(each.path));
    }
  }
  isNothing(cycles(graph).map((group) => group.join(" ↔ ")), "a cycle between folders");
});

/** Files that are allowed to see the world, and why. */
const HOST_SIDE = new Map([
  ["functions/client/host.ts", "the browser's adapter of the client library"],
  ["functions/index_entries.ts", "draws index nonces in an app's isolate, where no protocol code runs"],
]);

Deno.test("only the runtime touches Deno, clocks, timers, randomness and the network", () => {
  const forbidden =
    /(?<!["'])\bDeno\.|\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bset(?:Timeout|Interval|Immediate)\b|\bperformance\.now\b|\bcrypto\.(?:randomUUID|getRandomValues)\b|\bawait fetch\(|\bglobalThis\.fetch\b/g;
  isNothing(
    all(({ path, code }) => {
      const isPure = /^(?:store|placement|functions)\//.test(path);
      if (!isPure || isTest(path) || HOST_SIDE.has(path)) return [];
      return [...code.matchAll(forbidden)].map((match) => `${path} uses ${match[0]}`);
    }),
    "a core file that sees the real world",
  );
});

Deno.test("files begin with their header, and have names that say something", () => {
  isNothing(
    all(({ path, text }) => {
      const found: string[] = [];
      if (!isTest(path) && !text.startsWith("/**") && !text.startsWith("#!")) {
        found.push(`${path} has no header`);
      }
      if (/\/(?:utils?|helpers?|types|common|misc|\w*manager)\.ts$/.test(path)) {
        found.push(`${path} says nothing`);
      }
      return found;
    }),
    "a file that is not in the project's style",
  );
});

Deno.test("nothing is left for later in comments, and no construct is used that the style excludes", () => {
  const later = new RegExp(["TO", "DO|FIX", "ME|XX", "X"].join("").replace(/^/, "\\b(?:") + ")\\b");
  isNothing(
    all(({ path, text, code }) => {
      const found: string[] = [];
      if (later.test(text)) found.push(`${path} leaves something for later`);
      if (/^(?:export )?(?:const )?enum /m.test(code)) found.push(`${path} has an enum`);
      if (/^export default /m.test(code) && !/^(?:examples|tests|runtime\/cli\/templates)\//.test(path)) {
        found.push(`${path} has a default export`);
      }
      return found;
    }),
    "something the style excludes",
  );
});

Deno.test("imports are found in statements and expressions, not in comments", () => {
  const source = sourceOf(
    "runtime/link/a.ts",
    [
      'import { b } from "./b.ts";',
      "import type {",
      "  C,",
      '} from "../site/c.ts";',
      'export { d } from "npm-d";',
      'import "./e.ts";',
      ' * import { no } from "./no.ts";',
      '// import { no } from "./no.ts";',
      `const f = await import(${'"./f.ts"'});`,
      'export const g = "from"; // import("./no.ts")',
    ].join("\n"),
  );
  assert.deepEqual(source.imports.map((each) => each.path ?? each.specifier), [
    "runtime/link/b.ts",
    "runtime/site/c.ts",
    "npm-d",
    "runtime/link/e.ts",
    "runtime/link/f.ts",
  ]);
});

Deno.test("cycles are found, and only cycles", () => {
  const graph = (edges: Record<string, string[]>) =>
    new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to)]));
  assert.deepEqual(cycles(graph({ a: ["b", "c"], b: ["c"], c: [] })), []);
  assert.deepEqual(cycles(graph({ a: ["b"], b: ["c"], c: ["a"], d: ["a"] })), [["a", "b", "c"]]);
  assert.deepEqual(cycles(graph({ a: ["a"] })), [["a"]]);
});
