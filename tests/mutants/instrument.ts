/**
 * A file with probes: it does what it did, and says which of its parts are passed.
 *
 * IN1  A part is what runs as a whole or not at all as far as its beginning goes: a statement, a side of a condition,
 *      the body of an arrow. A mutant that lies in a part that a run does not pass is not seen by that run.
 */
import ts from "typescript";
import type { Parsed } from "./syntax.ts";

/** A file with its probes. */
export interface Instrumented {
  readonly text: string;
  readonly count: number;
  /** The probe of the innermost part that a position is in; null: it is passed when the file is loaded. */
  readonly probeAt: (position: number) => number | null;
}

interface Part {
  readonly probe: number;
  readonly start: number;
  readonly end: number;
}

const MARK = "__passes";

/** Adds probes to a file; `probes` is the address of probes.ts. */
export function instrument(parsed: Parsed, probes: string): Instrumented {
  const { path, text, tree } = parsed;
  const parts: Part[] = [];
  const edits: { readonly at: number; readonly rank: number; readonly text: string }[] = [];
  const surround = (node: ts.Node, depth: number, opens: (probe: number) => string, closes: string) => {
    const probe = parts.length, start = node.getStart(), end = node.getEnd();
    parts.push({ probe, start, end });
    edits.push({ at: start, rank: depth, text: opens(probe) });
    // What ends here comes before what begins here, the inner before the outer.
    if (closes !== "") edits.push({ at: end, rank: -depth, text: closes });
  };
  const visit = (node: ts.Node, depth: number): void => {
    if (ts.isTypeNode(node)) return;
    if (isListed(node)) surround(node, depth, (probe) => `${MARK}(${probe});`, "");
    else if (isLone(node)) surround(node, depth, (probe) => `{${MARK}(${probe});`, "}");
    else if (isSide(node)) surround(node, depth, (probe) => `(${MARK}(${probe}), `, ")");
    ts.forEachChild(node, (child) => visit(child, depth + 1));
  };
  visit(tree, 1);
  edits.sort((a, b) => a.at - b.at || a.rank - b.rank);
  let out = "", from = 0;
  for (const edit of edits) {
    out += text.slice(from, edit.at) + edit.text;
    from = edit.at;
  }
  out += text.slice(from);
  const head = `import { probesOf as __probesOf } from ${JSON.stringify(probes)};` +
    `const ${MARK} = __probesOf(${JSON.stringify(path)}, ${parts.length});`;
  return { text: head + out, count: parts.length, probeAt: (position) => innermost(parts, position) };
}

function innermost(parts: readonly Part[], position: number): number | null {
  let found: Part | null = null;
  for (const part of parts) {
    const holds = part.start <= position && position < part.end;
    if (holds && (found === null || part.end - part.start <= found.end - found.start)) found = part;
  }
  return found?.probe ?? null;
}

const isDeclared = (node: ts.Node): boolean =>
  ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node);

/** A statement among others, within a function: what is at the top is passed when the file is loaded. */
function isListed(node: ts.Node): boolean {
  if (!ts.isStatement(node) || isDeclared(node) || ts.isBlock(node)) return false;
  const { parent } = node;
  if (ts.isExpressionStatement(node) && isSuper(node.expression)) return false;
  return ts.isBlock(parent) || ts.isCaseOrDefaultClause(parent);
}

const isSuper = (node: ts.Expression): boolean =>
  ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword;

/** A statement that is the whole body of another. */
function isLone(node: ts.Node): boolean {
  if (!ts.isStatement(node) || ts.isBlock(node)) return false;
  const { parent } = node;
  if (ts.isIfStatement(parent)) return true;
  return ts.isIterationStatement(parent, false) && parent.statement === node;
}

/** An expression that is evaluated or not. */
function isSide(node: ts.Node): boolean {
  const { parent } = node;
  if (parent === undefined) return false;
  if (ts.isConditionalExpression(parent)) return parent.condition !== node && ts.isExpression(node);
  if (ts.isArrowFunction(parent)) return parent.body === node && !ts.isBlock(node);
  if (!ts.isBinaryExpression(parent) || parent.right !== node) return false;
  const { kind } = parent.operatorToken;
  return kind === ts.SyntaxKind.AmpersandAmpersandToken || kind === ts.SyntaxKind.BarBarToken ||
    kind === ts.SyntaxKind.QuestionQuestionToken;
}
