/**
 * Puts the isolate's own `process`, a small object with the app's variables, in place of a bundle's imports of
 * `node:process`. Many packages ask it for `env` only; Deno's would show and end the process.
 */
import type { ImportDeclaration, ImportSpecifier, Program } from "acorn";
import type { Cut } from "./cuts.ts";

const OWN = "globalThis.process";

/** Reports whether a specifier names `node:process`. */
export const isProcess = (specifier: unknown): boolean =>
  specifier === "process" || specifier === "node:process";

/** Expression that stands for a `require` of `node:process`. */
export const PROCESS_EXPRESSION = OWN;

/** Returns the cuts that replace a bundle's imports of `node:process`. */
export function processCuts(program: Program): Cut[] {
  return program.body.flatMap((node) =>
    node.type === "ImportDeclaration" && isProcess(node.source.value)
      ? [{ start: node.start, end: node.end, text: declarationOf(node) }]
      : []
  );
}

/**
 * Returns declarations in place of an import, on one line as it is: the source map's lines stay right. They are `var`,
 * since imports are hoisted.
 */
const declarationOf = (node: ImportDeclaration): string =>
  node.specifiers.map((specifier) =>
    specifier.type === "ImportSpecifier" && importedName(specifier) !== "default"
      ? `var ${specifier.local.name} = ${OWN}[${JSON.stringify(importedName(specifier))}];`
      : `var ${specifier.local.name} = ${OWN};`
  ).join(" ");

const importedName = ({ imported }: ImportSpecifier): string =>
  imported.type === "Identifier" ? imported.name : String(imported.value);
