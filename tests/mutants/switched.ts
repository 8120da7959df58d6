/**
 * A file that holds all its mutants at once, of which one is in force at a time (switch.ts), so that one process tries
 * hundreds of them without loading the code again.
 *
 * SW1  With none in force the file does what it did. With one it does what the text with that change would do.
 * SW2  What runs as the file is loaded has run before any mutant could be in force: such mutants are left to a process
 *      of their own.
 */
import ts from "typescript";
import type { Change } from "./operators.ts";
import type { Parsed } from "./syntax.ts";

/** A change and the number that puts it in force. */
export interface Numbered {
  readonly number: number;
  readonly change: Change;
}

const ACTIVE = "__active";

/** Whether a change can be switched on (SW2). */
export function isSwitchable({ node }: Change): boolean {
  for (let at = node; at.parent !== undefined; at = at.parent) {
    if (ts.isFunctionLike(at.parent)) return true;
    if (ts.isPropertyDeclaration(at.parent)) return !isStatic(at.parent);
  }
  return false;
}

const isStatic = (node: ts.PropertyDeclaration): boolean =>
  node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.StaticKeyword) === true;

/** @param address of switch.ts */
export function switched(parsed: Parsed, numbered: readonly Numbered[], address: string): string {
  const head = `import { active as ${ACTIVE} } from ${JSON.stringify(address)};`;
  return head + new Emitter(parsed, numbered).text(parsed.tree);
}

/** What a node is instead, while a number is in force. */
interface Alternative {
  readonly number: number;
  readonly text: string;
}

class Emitter {
  readonly #text: string;
  readonly #instead = new Map<ts.Node, Alternative[]>();
  /** What comes before a statement, while a number is in force: the statement that comes after it else. */
  readonly #early = new Map<ts.Node, Alternative[]>();
  /** Nodes in which there is something to do. */
  readonly #open = new Set<ts.Node>();

  constructor({ text }: Parsed, numbered: readonly Numbered[]) {
    this.#text = text;
    for (const { number, change } of numbered) this.#place(number, change);
  }

  #place(number: number, change: Change): void {
    if (change.operator === "swapped") {
      const next = nextOf(change.node);
      if (next === null) throw new Error("two statements that are swapped stand one behind the other");
      this.#add(this.#early, change.node, { number, text: next.getText() });
      this.#add(this.#instead, next, { number, text: ";" });
      return;
    }
    const node = whole(change);
    const before = this.#text.slice(node.getStart(), change.start);
    const after = this.#text.slice(change.end, node.getEnd());
    this.#add(this.#instead, node, { number, text: before + change.becomes + after });
  }

  #add(to: Map<ts.Node, Alternative[]>, node: ts.Node, alternative: Alternative): void {
    const known = to.get(node) ?? [];
    known.push(alternative);
    to.set(node, known);
    for (let at: ts.Node | undefined = node; at !== undefined; at = at.parent) this.#open.add(at);
  }

  /** A node's text, from where it begins to where it ends. */
  text(node: ts.Node): string {
    const instead = this.#instead.get(node) ?? [];
    const early = (this.#early.get(node) ?? []).map(({ number, text }) =>
      `if (${isOn(number)}) { ${text} }\n`
    );
    return early.join("") + wrapped(node, this.#inner(node), instead);
  }

  #inner(node: ts.Node): string {
    const start = ts.isSourceFile(node) ? 0 : node.getStart();
    if (!this.#open.has(node)) return this.#text.slice(start, node.getEnd());
    let out = "", at = start;
    ts.forEachChild(node, (child) => {
      if (!this.#open.has(child)) return;
      out += this.#text.slice(at, child.getStart()) + this.text(child);
      at = child.getEnd();
    });
    return out + this.#text.slice(at, node.getEnd());
  }
}

const isOn = (number: number): string => `${ACTIVE} === ${number}`;

function wrapped(node: ts.Node, text: string, instead: readonly Alternative[]): string {
  if (instead.length === 0) return text;
  if (ts.isStatement(node)) {
    return instead.reduceRight(
      (rest, { number, text: other }) => `if (${isOn(number)}) { ${other} } else { ${rest} }`,
      text,
    );
  }
  return instead.reduceRight(
    (rest, { number, text: other }) => `(${isOn(number)} ? (${other}) : ${rest})`,
    `(${text})`,
  );
}

/** What is another expression or statement as a whole: a part of a list or a record stands in it. */
function whole({ node, operator }: Change): ts.Node {
  if (operator === "field left out" || operator === "element left out") return topOf(node.parent);
  return ts.isExpression(node) ? topOf(node) : node;
}

/** Of `a?.b.c()` all of it: where `a` is nothing, nothing of it is evaluated. */
function topOf(node: ts.Node): ts.Node {
  let at = node;
  while (ts.isOptionalChain(at) && at.parent !== undefined && ts.isOptionalChain(at.parent)) at = at.parent;
  return at;
}

function nextOf(node: ts.Node): ts.Statement | null {
  const { parent } = node;
  if (!ts.isBlock(parent) && !ts.isSourceFile(parent) && !ts.isCaseOrDefaultClause(parent)) return null;
  const at = parent.statements.findIndex((each) => each === node);
  return parent.statements[at + 1] ?? null;
}
