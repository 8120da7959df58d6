/**
 * The numbered rules of the project: where they are defined, and where they are cited.
 *
 * RU1  A rule is defined in a doc comment, on a line of its own: its id, two spaces, its text. One space is enough where
 *      the id is longer than its fellows' and stands in a column with them, and in a list, after an empty line, whose
 *      ids have two letters or more and whose texts begin with a capital. Lines indented further go on with it.
 * RU2  A citation names the rule of its own file, of the file that it names (`handoff.ts H9`), of the file whose rules
 *      its header says it keeps, or of the one imported file that has such a rule; in this order. What stands for the
 *      rule of a page (`PROTOCOL I9`) cites none, nor does a file's header.
 * RU3  A citation covers the statement, member or property that its comment stands at: the one that begins on its line,
 *      else the one that comes next. One at a class covers nothing.
 */
import ts from "typescript";
import { type Comment, commentsOf, type Parsed } from "./syntax.ts";

/** A rule. */
export interface Rule {
  /** `store/session/session.ts E2`. */
  readonly key: string;
  readonly file: string;
  readonly id: string;
  readonly text: string;
}

/** One place that names a rule. */
export interface Citation {
  /** The rule's key. */
  readonly rule: string;
  readonly file: string;
  readonly at: number;
  /** What it covers (RU3), from and to; null: nothing that could be changed. */
  readonly covers: readonly [number, number] | null;
  /** Code names it in a comment; an assert, or an error, in its text; a test in a name or a comment. */
  readonly by: "code" | "assert" | "test";
}

const DEFINITION = /^\s*\*\s([A-Z]{1,3}\d{1,2}[a-z]?)(\s+)(\S.*)$/;
const ID = /\b([A-Z]{1,3})(\d{1,2}[a-z]?)\b/g;
/** `W3 to W5`, `C1–C4`. */
const SPAN = /\b([A-Z]{1,3})(\d{1,2})\s?(?:–|-|to)\s?([A-Z]{1,3})(\d{1,2})\b/g;

/** Rules that a file's doc comments define. */
export function rulesOf(parsed: Parsed): Rule[] {
  return commentsOf(parsed).filter(({ text }) => text.startsWith("/**")).flatMap(({ text }) =>
    definitions(text).map(({ id, says }) => ({
      key: `${parsed.path} ${id}`,
      file: parsed.path,
      id,
      text: says,
    }))
  );
}

export interface Definition {
  readonly id: string;
  readonly says: string;
  /** Lines of the comment that it takes. */
  readonly lines: readonly number[];
}

/** RU1: the rules that one doc comment defines. */
export function definitions(comment: string): Definition[] {
  const lines = comment.split("\n");
  const isColumn = lines.some((line) => /^\s*\*\s[A-Z]{1,3}\d\s{2}\S/.test(line));
  const found: { id: string; says: string; lines: number[] }[] = [];
  let open: (typeof found)[number] | null = null;
  for (const [at, line] of lines.entries()) {
    const [, id = "", gap = "", text = ""] = DEFINITION.exec(line) ?? [];
    const follows = open !== null || /^\s*\*\s*$/.test(lines[at - 1] ?? "");
    const isList = follows && /^[A-Z]{2}/.test(id) && /^[A-Z]/.test(text);
    const begins = id !== "" && (gap.length > 1 || isList || (isColumn && /\d\d/.test(id)));
    if (begins) found.push(open = { id, says: text, lines: [at] });
    else if (open !== null && /^\s*\*\s{3,}\S/.test(line)) {
      open.says += ` ${line.replace(/^\s*\*\s*/, "").replace(/\s*\*\/$/, "")}`;
      open.lines.push(at);
    } else open = null;
  }
  return found.map(({ says, ...rest }) => ({ ...rest, says: says.replace(/\s*\*\/$/, "") }));
}

/** Finds rules by the ways in which files speak of them. */
export class RuleBook {
  readonly rules = new Map<string, Rule>();
  readonly #files = new Map<string, Parsed>();
  readonly #byFile = new Map<string, Map<string, Rule>>();

  constructor(files: Iterable<Parsed>) {
    for (const parsed of files) {
      this.#files.set(parsed.path, parsed);
      const rules = rulesOf(parsed);
      for (const rule of rules) if (!this.rules.has(rule.key)) this.rules.set(rule.key, rule);
      this.#byFile.set(parsed.path, new Map(rules.map((rule) => [rule.id, rule])));
    }
  }

  /** Rules cited in a file, each place once. */
  citations(parsed: Parsed): Citation[] {
    const isTest = isTestFile(parsed.path);
    const units = isTest ? [] : unitsOf(parsed);
    const found: Citation[] = [];
    for (const comment of commentsOf(parsed)) {
      if (!isTest && isHeader(parsed, comment)) continue;
      const named = this.#named(parsed, withoutDefinitions(comment.text));
      if (named.size === 0) continue;
      const covers = isTest ? null : coveredBy(parsed, comment, units);
      for (const rule of named) {
        found.push({
          rule,
          file: parsed.path,
          at: comment.start,
          covers,
          by: isTest ? "test" : "code",
        });
      }
    }
    const visit = (node: ts.Node): void => {
      if (ts.isImportDeclaration(node)) return;
      if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
        const at = node.getStart();
        for (const rule of this.#named(parsed, node.getText())) {
          if (isTest) found.push({ rule, file: parsed.path, at, covers: null, by: "test" });
          else if (isAssert(node)) {
            found.push({ rule, file: parsed.path, at, covers: spanOf(unitOf(node)), by: "assert" });
          }
        }
      }
      ts.forEachChild(node, visit);
    };
    visit(parsed.tree);
    return found;
  }

  /** RU2 */
  #named(parsed: Parsed, text: string): Set<string> {
    const keys = new Set<string>();
    const add = (at: number, id: string) => {
      const rule = this.#resolve(parsed, text.slice(0, at), id);
      if (rule !== null) keys.add(rule.key);
    };
    for (const match of text.matchAll(SPAN)) {
      const [, lead = "", from = "", end = "", to = ""] = match;
      if (lead !== end) continue;
      for (let n = Number(from) + 1; n < Number(to); n++) add(match.index, `${lead}${n}`);
    }
    for (const match of text.matchAll(ID)) add(match.index, match[0]);
    return keys;
  }

  #resolve({ path, tree }: Parsed, before: string, id: string): Rule | null {
    if (/PROTOCOL(?:'s)?\s$/.test(before)) return null;
    const named = /([\w/]+\.ts)(?:,|:)?\s(?:[A-Z]{1,3}\d+[a-z]?(?:, | and | to ))*$/.exec(before)?.[1];
    if (named !== undefined) return this.#of(this.#file(path, named, id), id);
    const own = this.#of(path, id);
    if (own !== null) return own;
    const header = /(?:rules|numbers) are those of ([\w/]+\.ts)/.exec(tree.text)?.[1];
    if (header !== undefined) {
      const rule = this.#of(this.#file(path, header, id), id);
      if (rule !== null) return rule;
    }
    const imported = new Set(importsOf(path, tree).flatMap((file) => this.#of(file, id) ?? []));
    const [only = null] = imported;
    return imported.size === 1 ? only : null;
  }

  #of(file: string | null, id: string): Rule | null {
    return file === null ? null : this.#byFile.get(file)?.get(id) ?? null;
  }

  /** The file that a comment means by a name: of its own folder, an imported one, or the only one that has the rule. */
  #file(from: string, name: string, id: string): string | null {
    const near = from.slice(0, from.lastIndexOf("/") + 1) + name;
    if (this.#files.has(near)) return near;
    const tree = this.#files.get(from)?.tree;
    const imported = tree === undefined
      ? undefined
      : importsOf(from, tree).find((file) => file.endsWith(`/${name}`));
    if (imported !== undefined) return imported;
    const all = [...this.#files.keys()].filter((file) =>
      (file === name || file.endsWith(`/${name}`)) && this.#of(file, id) !== null
    );
    return all.length === 1 ? all[0] ?? null : null;
  }
}

/** What stands above the imports tells of a file's rules, and of others', without being code that keeps one. */
function isHeader({ text, tree }: Parsed, { start, end }: Comment): boolean {
  const [first] = tree.statements;
  return first !== undefined && end <= first.getStart() && text.slice(0, start).trim() === "";
}

/** Whether a file is a test, or a part of one. */
export const isTestFile = (path: string): boolean => path.startsWith("tests/") || path.endsWith("_test.ts");

/** Files of the project that a file imports. */
export function importsOf(path: string, tree: ts.SourceFile): string[] {
  const found: string[] = [];
  const add = (specifier: ts.Expression | undefined) => {
    if (specifier === undefined || !ts.isStringLiteral(specifier)) return;
    if (specifier.text === "sojourn") found.push("functions/mod.ts");
    else if (specifier.text.startsWith(".")) {
      found.push(new URL(specifier.text, `file:///${path}`).pathname.slice(1));
    }
  };
  for (const statement of tree.statements) {
    if (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) {
      add(statement.moduleSpecifier);
    }
  }
  return found;
}

function withoutDefinitions(comment: string): string {
  if (!comment.startsWith("/**")) return comment;
  const defined = new Set(definitions(comment).flatMap(({ lines }) => lines));
  return comment.split("\n").filter((_, at) => !defined.has(at)).join("\n");
}

/** Text of an error, or of an assert. */
function isAssert(node: ts.Node): boolean {
  for (let at = node.parent; at !== undefined && !ts.isStatement(at); at = at.parent) {
    if (ts.isNewExpression(at) && /Error|Unavailable|Failed/.test(at.expression.getText())) return true;
    if (ts.isCallExpression(at) && /assert|invariant|must/i.test(at.expression.getText())) return true;
  }
  return false;
}

const spanOf = (node: ts.Node): readonly [number, number] => [node.getStart(), node.getEnd()];

/** What a comment can stand at. */
const isUnit = (node: ts.Node): boolean =>
  (ts.isStatement(node) && !ts.isBlock(node)) || ts.isClassElement(node) || ts.isTypeElement(node) ||
  ts.isObjectLiteralElement(node) || ts.isCaseOrDefaultClause(node) || ts.isParameter(node) ||
  ts.isVariableDeclaration(node);

function unitOf(node: ts.Node): ts.Node {
  let at = node;
  while (!isUnit(at) && at.parent !== undefined) at = at.parent;
  return at;
}

/** What comments of a file can stand at, the outer before the inner. */
function unitsOf({ tree }: Parsed): ts.Node[] {
  const units: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    if (isUnit(node)) units.push(node);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return units;
}

/** RU3 */
function coveredBy(
  { text }: Parsed,
  comment: Comment,
  units: readonly ts.Node[],
): readonly [number, number] | null {
  const lineStart = text.lastIndexOf("\n", comment.start) + 1;
  const before = text.slice(lineStart, comment.start);
  const isTrailing = before.trim() !== "";
  const unit = isTrailing
    ? units.find((each) => startsWithin(each, lineStart, comment.start)) ??
      units.findLast((each) => each.getStart() < comment.start && each.getEnd() >= comment.start)
    : units.find((each) => each.getStart() === nextToken(text, comment.end));
  if (unit === undefined || ts.isClassDeclaration(unit) || ts.isInterfaceDeclaration(unit)) return null;
  // The header stands at the first import.
  return ts.isImportDeclaration(unit) ? null : spanOf(unit);
}

const startsWithin = (node: ts.Node, from: number, to: number): boolean =>
  node.getStart() >= from && node.getStart() < to;

/** Where code goes on after a comment. */
function nextToken(text: string, from: number): number {
  let at = from;
  for (;;) {
    const rest = /^(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)/.exec(text.slice(at));
    if (rest === null) return at;
    at += rest[0].length;
  }
}
