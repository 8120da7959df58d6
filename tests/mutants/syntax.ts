/**
 * One source file as a syntax tree, and what the other parts ask of it: names of members, comments, texts without
 * comments.
 */
import ts from "typescript";

/** A file of the project, parsed. */
export interface Parsed {
  /** From the root of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
}

/** A comment as it stands in a text. */
export interface Comment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Parses a file; parents are set. */
export function parse(path: string, text: string): Parsed {
  return {
    path,
    text,
    tree: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS),
  };
}

/** Errors of the syntax alone; none: the text would load. */
export function syntaxErrors(path: string, text: string): string[] {
  const tree = parse(path, text).tree as ts.SourceFile & {
    readonly parseDiagnostics?: readonly ts.Diagnostic[];
  };
  return (tree.parseDiagnostics ?? []).map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, " ")
  );
}

/** The line of a position, from 1. */
export const lineOf = ({ tree }: Parsed, at: number): number =>
  tree.getLineAndCharacterOfPosition(at).line + 1;

/** All comments of a file, in order. */
export function commentsOf({ text, tree }: Parsed): Comment[] {
  const found = new Map<number, Comment>();
  const add = (ranges: readonly ts.CommentRange[] | undefined) => {
    for (const { pos, end } of ranges ?? []) found.set(pos, { start: pos, end, text: text.slice(pos, end) });
  };
  const visit = (node: ts.Node) => {
    const children = node.getChildren(tree).filter((child) => !ts.isJSDoc(child));
    if (children.length > 0) {
      for (const child of children) visit(child);
      return;
    }
    // A template's middle begins within the template: what looks like a comment there is its text.
    if (ts.isTemplateMiddle(node) || ts.isTemplateTail(node)) return;
    add(ts.getLeadingCommentRanges(text, node.getFullStart()));
    add(ts.getTrailingCommentRanges(text, node.getEnd()));
  };
  visit(tree);
  return [...found.values()].sort((a, b) => a.start - b.start);
}

/** A class member or what is declared at the top of the file: the unit by which results are kept. */
export function memberOf(node: ts.Node): ts.Node {
  let member = node;
  for (let at: ts.Node = node; at.parent !== undefined; at = at.parent) {
    if (ts.isSourceFile(at.parent)) return ts.isClassDeclaration(at) && member !== at ? member : at;
    if (ts.isClassLike(at.parent)) member = at;
  }
  return member;
}

/** By what name a member is spoken of: `Session.#touch`, `sameOwners`. */
export function memberName(node: ts.Node): string {
  const member = memberOf(node);
  const own = nameOf(member);
  const { parent } = member;
  return parent !== undefined && ts.isClassLike(parent) ? `${parent.name?.text ?? "class"}.${own}` : own;
}

function nameOf(node: ts.Node): string {
  if (ts.isConstructorDeclaration(node)) return "constructor";
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => name.getText()).join(", ");
  }
  if (ts.isClassStaticBlockDeclaration(node)) return "static";
  const { name } = node as ts.Node & { readonly name?: ts.Node };
  return name === undefined ? "(top)" : name.getText();
}

const PRINTER = ts.createPrinter({ removeComments: true });

/** The text of a node as a printer writes it: neither comments nor line breaks change it. */
export const bareText = ({ tree }: Parsed, node: ts.Node): string =>
  ts.isSourceFile(node) ? PRINTER.printFile(node) : PRINTER.printNode(ts.EmitHint.Unspecified, node, tree);

/** Eight bytes of SHA-256, as hex: enough for tens of thousands of names. */
export async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return bytes.subarray(0, 8).toHex();
}
