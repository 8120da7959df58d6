/**
 * `node:process` in a bundle: the isolate's own `process`, a small object with the app's variables, in place of an
 * import. Many packages ask it for `env` only; Deno's would show and end the process.
 */
import type { ImportDeclaration, ImportSpecifier, Program } from "acorn";
import type { Cut } from "./cuts.ts";

const OWN = "globalThis.process";

/** Whether a specifier names it. */
export const isProcess = (specifier: unknown): boolean =>
  specifier === "process" || specifier === "node:process";

/** What a `require` of it answers, as an expression. */
export const PROCESS_EXPRESSION = OWN;

/** The cuts that replace a bundle's imports of it. */
export function processCuts(program: Program): Cut[] {
  return program.body.flatMap((node) =>
    node.type === "ImportDeclaration" && isProcess(node.source.value)
      ? [{ start: node.start, end: node.end, text: declarationOf(node) }]
      : []
  );
}

/** On one line, as what it replaces: the source map's lines stay right. `var`, since imports are hoisted. */
const declarationOf = (node: ImportDeclaration): string =>
  node.specifiers.map((specifier) =>
    specifier.type === "ImportSpecifier" && importedName(specifier) !== "default"
      ? `var ${specifier.local.name} = ${OWN}[${JSON.stringify(importedName(specifier))}];`
      : `var ${specifier.local.name} = ${OWN};`
  ).join(" ");

const importedName = ({ imported }: ImportSpecifier): string =>
  imported.type === "Identifier" ? imported.name : String(imported.value);
