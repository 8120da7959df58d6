/**
 * Replaces the `require` by which CommonJS packages in a bundle reach node built-ins, and which the bundler makes with
 * `createRequire`. A function has no module loader; a built-in that it may require is imported instead, and anything
 * else throws when asked.
 */
import type { AnyNode, Program } from "acorn";
import { allowedBuiltins, isAllowedBuiltin } from "./builtins.ts";
import type { Cut } from "./cuts.ts";
import { type BundleIssue, placeOf, visit } from "./imports.ts";
import { isProcess, PROCESS_EXPRESSION } from "./node_process.ts";

/** Returns the cuts that replace a bundle's `createRequire`; none where it has none. */
export function requireCuts(program: Program): Cut[] {
  const loader = loaderOf(program);
  if (loader === undefined) return [];
  const required = new Set<string>();
  visit(program, (node) => {
    const specifier = callOf(node, loader.name);
    if (specifier !== undefined && (isAllowedBuiltin(specifier) || isProcess(specifier))) {
      required.add(specifier);
    }
  });
  const names = [...required];
  const imports = names.map((specifier, i) =>
    isProcess(specifier) ? "" : `import __sojourn_node_${i} from ${JSON.stringify(nodeName(specifier))};`
  );
  const table = names.map((specifier, i) =>
    `[${JSON.stringify(specifier)}, ${isProcess(specifier) ? PROCESS_EXPRESSION : `__sojourn_node_${i}`}]`
  ).join(", ");
  // On one line, as what it replaces: the source map's lines stay right.
  const shim = `((table) => (id) => { if (table.has(id)) return table.get(id); ` +
    `throw new TypeError(\`a function can't require "\${id}": only ${POSSIBLE} are there\`); })(new Map([${table}]))`;
  return [
    { ...loader.declaration, text: imports.join(" ") },
    { ...loader.made, text: shim },
  ];
}

const POSSIBLE = allowedBuiltins.join(", ");

/**
 * Returns warnings about built-ins that packages require and functions do not have, for each package at its first
 * `require` of one. Whether that is reached nobody knows before it runs: it may be a part of the package that the app
 * does not use. In a `try` it is a question.
 *
 * @param originAt returns the name of the module or package that an offset is in
 */
export function absentRequires(
  program: Program,
  code: string,
  originAt: (offset: number) => string,
): BundleIssue[] {
  const loader = loaderOf(program);
  if (loader === undefined) return [];
  const tried: { readonly start: number; readonly end: number }[] = [];
  const found: { readonly name: string; readonly start: number }[] = [];
  visit(program, (node) => {
    if (node.type === "TryStatement" && node.handler) tried.push(node.block);
    const specifier = callOf(node, loader.name);
    if (specifier === undefined || isAllowedBuiltin(specifier) || isProcess(specifier)) return;
    const isTried = tried.some(({ start, end }) => start <= node.start && node.end <= end);
    if (!isTried) found.push({ name: nodeName(specifier), start: node.start });
  });
  found.sort((a, b) => a.start - b.start);
  return [...Map.groupBy(found, ({ start }) => originAt(start))].map(([origin, all]) => ({
    message:
      `${origin} requires ${
        [...new Set(all.map(({ name }) => name))].join(", ")
      }, which functions do not have: ` +
      `the deploy fails if that runs while modules load, what needs it later fails then. There are ${POSSIBLE}`,
    ...placeOf({ start: all[0]?.start ?? 0 }, code),
  }));
}

const nodeName = (specifier: string): string =>
  specifier.startsWith("node:") ? specifier : `node:${specifier}`;

/** Finds `import { createRequire as L } from "node:module"; var NAME = L(import.meta.url);` */
function loaderOf(
  program: Program,
):
  | { name: string; declaration: { start: number; end: number }; made: { start: number; end: number } }
  | undefined {
  let local: string | undefined;
  let declaration: { start: number; end: number } | undefined;
  for (const node of program.body) {
    if (node.type === "ImportDeclaration" && /^(node:)?module$/.test(String(node.source.value))) {
      const [only] = node.specifiers;
      if (node.specifiers.length !== 1 || only === undefined) return undefined;
      local = only.local.name;
      declaration = { start: node.start, end: node.end };
    }
    if (node.type !== "VariableDeclaration" || declaration === undefined) continue;
    for (const { id, init } of node.declarations) {
      if (
        init?.type !== "CallExpression" || init.callee.type !== "Identifier" || init.callee.name !== local
      ) continue;
      if (id.type === "Identifier") {
        return { name: id.name, declaration, made: { start: init.start, end: init.end } };
      }
    }
  }
  return undefined;
}

function callOf(node: AnyNode, name: string): string | undefined {
  if (node.type !== "CallExpression" || node.callee.type !== "Identifier" || node.callee.name !== name) {
    return undefined;
  }
  const [argument] = node.arguments;
  return argument?.type === "Literal" && typeof argument.value === "string" ? argument.value : undefined;
}
