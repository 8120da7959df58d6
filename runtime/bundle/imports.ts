/**
 * What a bundle imports, and whether it may.
 *
 * M1  A bundle that passes names nothing outside itself but node built-ins of the allow-list, neither by a static
 *     import nor by an `import()` of a literal. An `import()` of a computed name is refused when it runs.
 *
 * The isolate checks again what was uploaded, since anybody with a deploy token can make a bundle elsewhere.
 */
import { type AnyNode, type Comment, type Expression, parse, type Program } from "acorn";
import { allowedBuiltins, isAllowedBuiltin } from "./builtins.ts";

/** Why a bundle is refused. */
export interface BundleIssue {
  readonly message: string;
  /** Where in the bundle, from 1; undefined where it is about the whole. */
  readonly line?: number;
  readonly column?: number;
}

/** An import that a bundle keeps. */
interface KeptImport {
  readonly specifier: string;
  readonly start: number;
  readonly line: number;
  readonly column: number;
}

/** Checks a bundle's syntax and imports (M1). */
export function checkImports(code: string): BundleIssue[] {
  const program = parseModule(code);
  return "message" in program ? [program] : forbiddenImports(program);
}

/** The imports of a parsed bundle that it may not have (M1). */
export function forbiddenImports(program: Program): BundleIssue[] {
  return importsOf(program).filter((kept) => !isAllowedBuiltin(kept.specifier)).map((kept) => ({
    message: `a function can't import "${kept.specifier}": only its own modules, npm packages and ${
      allowedBuiltins.join(", ")
    } are possible`,
    line: kept.line,
    column: kept.column,
  }));
}

/** The program of a module, or why there is none; its comments are added to `comments`. */
export function parseModule(code: string, comments: Comment[] = []): Program | BundleIssue {
  try {
    return parse(code, { ecmaVersion: "latest", sourceType: "module", locations: true, onComment: comments });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { line, column } = (error as SyntaxError & { loc?: { line: number; column: number } }).loc ??
      { line: 1, column: 0 };
    return { message: `the bundle is no module: ${error.message}`, line, column: column + 1 };
  }
}

function importsOf(program: Program): KeptImport[] {
  const found: KeptImport[] = [];
  const add = (source: Expression | null | undefined) => {
    if (source?.type !== "Literal" || typeof source.value !== "string") return;
    const { line = 1, column = 0 } = source.loc?.start ?? {};
    found.push({ specifier: source.value, start: source.start, line, column: column + 1 });
  };
  visit(program, (node) => {
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
      case "ExportNamedDeclaration":
      case "ImportExpression":
        add(node.source);
    }
  });
  return found;
}

/** Calls back for every node of a tree. A list of its own instead of recursion: bundles nest deeply. */
export function visit(root: AnyNode, callback: (node: AnyNode) => void): void {
  const todo: unknown[] = [root];
  while (todo.length > 0) {
    const item = todo.pop();
    if (Array.isArray(item)) {
      for (const each of item) todo.push(each);
      continue;
    }
    if (!isNode(item)) continue;
    callback(item);
    for (const value of Object.values(item)) {
      if (typeof value === "object" && value !== null) todo.push(value);
    }
  }
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
