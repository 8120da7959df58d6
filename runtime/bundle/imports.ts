/**
 * Checks what a bundle imports, and whether it may.
 *
 * M1  A bundle that passes names nothing outside itself but node built-ins of the allow-list, neither by a static
 *     import nor by an `import()` of a literal. An `import()` of a computed name is refused when it runs.
 *
 * The isolate checks again what was uploaded, since anybody with a deploy token can make a bundle elsewhere.
 */
import { type AnyNode, type Comment, type Expression, getLineInfo, parse, type Program } from "acorn";
import { allowedBuiltins, isAllowedBuiltin } from "./builtins.ts";

/** The reason why a bundle is refused. */
export interface BundleIssue {
  readonly message: string;
  /** Line in the bundle, from 1; undefined where the issue is about the whole. */
  readonly line?: number;
  readonly column?: number;
}

/** An import that a bundle keeps. */
interface KeptImport {
  readonly specifier: string;
  readonly start: number;
}

/** Checks a bundle's syntax and imports (M1). */
export function checkImports(code: string): BundleIssue[] {
  const program = parseModule(code);
  return "message" in program ? [program] : forbiddenImports(program, code);
}

/** Returns an issue for each import of a bundle, parsed from `code`, that it may not have (M1). */
export function forbiddenImports(program: Program, code: string): BundleIssue[] {
  return importsOf(program).filter((kept) => !isAllowedBuiltin(kept.specifier)).map((kept) => ({
    message: `a function can't import "${kept.specifier}": only its own modules, npm packages and ${
      allowedBuiltins.join(", ")
    } are possible`,
    ...placeOf(kept, code),
  }));
}

/**
 * Returns the place at which a node begins, as issues have it. It is looked up where it is told: a parser that noted it
 * for each node would take a fifth of the time longer.
 */
export function placeOf(
  { start }: { readonly start: number },
  code: string,
): { line: number; column: number } {
  const { line, column } = getLineInfo(code, start);
  return { line, column: column + 1 };
}

/** Returns the program of a module, or the reason why there is none; its comments are added to `comments`. */
export function parseModule(code: string, comments: Comment[] = []): Program | BundleIssue {
  try {
    return parse(code, { ecmaVersion: "latest", sourceType: "module", onComment: comments });
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
    found.push({ specifier: source.value, start: source.start });
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

/** Calls back for every node of a tree. Checks of one tree share the list of its nodes. */
export function visit(root: AnyNode, callback: (node: AnyNode) => void): void {
  for (const node of nodesOf(root)) callback(node);
}

/**
 * Lists of the nodes of trees. A bundle has a hundred thousand nodes, and to walk over their properties takes ten times
 * as long as to go through a list.
 */
const listed = new WeakMap<AnyNode, readonly AnyNode[]>();

/** Returns a node and all below it. It has a list instead of recursion: bundles nest deeply. */
function nodesOf(root: AnyNode): readonly AnyNode[] {
  const known = listed.get(root);
  if (known !== undefined) return known;
  const found: AnyNode[] = [], todo: AnyNode[] = [root];
  for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
    found.push(node);
    for (const name in node) {
      const value: unknown = node[name as keyof AnyNode];
      if (typeof value !== "object" || value === null) continue;
      if (Array.isArray(value)) { for (const each of value) if (isNode(each)) todo.push(each); }
      else if (isNode(value)) todo.push(value);
    }
  }
  listed.set(root, found);
  return found;
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
