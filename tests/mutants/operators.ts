/**
 * What can be changed in a file, one place at a time.
 *
 * OP1  A change replaces one stretch of text by another. What comes of it parses; whether it loads, or has types, is
 *      found out by whoever runs it.
 * OP2  Two changes of one file are never the same text. Of changes that one test catches as soon as the other (a
 *      condition negated, where it is set to true and to false as well) only the stronger ones are made.
 * OP3  Types, imports and texts are left alone: nothing that runs follows from them.
 */
import ts from "typescript";
import type { Parsed } from "./syntax.ts";

/** The kinds of changes, and what each does. */
export const OPERATORS = {
  "guard never": "a condition is false",
  "guard always": "a condition is true",
  "half a guard": "one side of && or || is left out",
  "fallback only": "a ?? b is b",
  "overwrites": "a ??= b is a = b",
  "boundary": "< is <=, > is >=, and back",
  "equality": "=== is !==, and back",
  "off by one": "+ 1 or - 1 is left out",
  "arithmetic": "+ is -, - is +; of a product one factor is left out",
  "max or min": "Math.max or Math.min is one of its two arguments, or of more the other function",
  "truth": "what is true or false is always true, or always false",
  "left out": "a statement is left out",
  "not awaited": "a statement does not wait for its promise",
  "goes on": "what leaves a function or a loop after it has done something does not leave",
  "swapped": "two statements change places",
  "returns nothing": "a function returns null, undefined, 0 or an empty list",
  "field left out": "what is changed in a copy of a record is not",
  "element left out": "one of several parts of a list is missing",
  "unfiltered": "a list is not filtered, or not sorted",
  "some or every": "some is every, and back",
  "other end": "a list is taken from at its other end",
} as const;

export type OperatorName = keyof typeof OPERATORS;

/** A change of one stretch of text. */
export interface Change {
  readonly operator: OperatorName;
  readonly start: number;
  readonly end: number;
  readonly becomes: string;
  /** The node that is changed. */
  readonly node: ts.Node;
}

const BOUNDARIES: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, "<="],
  [ts.SyntaxKind.LessThanEqualsToken, "<"],
  [ts.SyntaxKind.GreaterThanToken, ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">"],
]);
const EQUALITIES: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, "==="],
]);
const SAYS_WHETHER = /^#?(?:is|has|can|may|was|must|will|should)[A-Z]/;
const ASKS_WHETHER = /^(?:has|some|every|includes|startsWith|endsWith|test|equals)$/;

/** All changes of a file, in the order of their places. */
export function changesOf(parsed: Parsed): Change[] {
  const finder = new Finder(parsed);
  finder.visit(parsed.tree);
  return finder.changes();
}

class Finder {
  readonly #text: string;
  readonly #found: Change[] = [];

  constructor({ text }: Parsed) {
    this.#text = text;
  }

  changes(): Change[] {
    const seen = new Set<string>();
    return this.#found
      .filter(({ start, end, becomes }) => {
        const key = `${start} ${end} ${becomes}`;
        if (seen.has(key) || this.#text.slice(start, end) === becomes) return false; // OP2
        seen.add(key);
        return true;
      })
      .sort((a, b) => a.start - b.start || a.end - b.end);
  }

  visit(node: ts.Node): void {
    if (isIdle(node)) return; // OP3
    this.#change(node);
    ts.forEachChild(node, (child) => this.visit(child));
  }

  #add(operator: OperatorName, node: ts.Node, becomes: string, start = node.getStart(), end = node.getEnd()) {
    this.#found.push({ operator, start, end, becomes, node });
  }

  #change(node: ts.Node): void {
    if (ts.isIfStatement(node)) this.#condition(node.expression);
    else if (ts.isConditionalExpression(node)) this.#condition(node.condition);
    else if (ts.isWhileStatement(node) || ts.isDoStatement(node)) this.#loop(node.expression);
    else if (ts.isForStatement(node) && node.condition !== undefined) this.#loop(node.condition);
    else if (ts.isBinaryExpression(node)) this.#binary(node);
    else if (ts.isCallExpression(node)) this.#call(node);
    else if (ts.isExpressionStatement(node)) this.#statement(node);
    else if (ts.isReturnStatement(node)) this.#returned(node);
    else if (ts.isObjectLiteralExpression(node)) this.#record(node);
    else if (ts.isArrayLiteralExpression(node)) this.#list(node);
    if (ts.isBlock(node) || ts.isCaseOrDefaultClause(node) || ts.isSourceFile(node)) {
      this.#sequence(node.statements);
    }
    const value = valueOf(node);
    if (value !== undefined && (saysWhether(value) || isAnswer(node)) && !isFilter(node)) this.#truth(value);
    if (ts.isArrowFunction(node) && !ts.isBlock(node.body) && isEffect(node.body)) {
      this.#add("left out", node.body, "undefined");
    }
  }

  #condition(condition: ts.Expression): void {
    this.#add("guard never", condition, never(condition));
    this.#add("guard always", condition, always(condition));
  }

  #loop(condition: ts.Expression): void {
    if (condition.kind !== ts.SyntaxKind.TrueKeyword) this.#add("guard never", condition, never(condition));
  }

  #binary(node: ts.BinaryExpression): void {
    const { left, right, operatorToken } = node, { kind } = operatorToken;
    const swap = (operator: OperatorName, to: string) =>
      this.#add(operator, node, to, operatorToken.getStart(), operatorToken.getEnd());
    const boundary = BOUNDARIES.get(kind), equality = EQUALITIES.get(kind);
    if (boundary !== undefined) swap("boundary", boundary);
    // Where a condition or a truth value as a whole is set to either, that is stronger.
    if (equality !== undefined && !isDecided(node)) swap("equality", equality);
    if (kind === ts.SyntaxKind.AmpersandAmpersandToken || kind === ts.SyntaxKind.BarBarToken) {
      this.#add("half a guard", node, left.getText());
      // Of a && b && c each is left out once.
      if (!ts.isBinaryExpression(left) || left.operatorToken.kind !== kind) {
        this.#add("half a guard", node, right.getText());
      }
    }
    if (kind === ts.SyntaxKind.QuestionQuestionToken) {
      this.#add("fallback only", node, `(${right.getText()})`);
    }
    if (kind === ts.SyntaxKind.QuestionQuestionEqualsToken) swap("overwrites", "=");
    this.#arithmetic(node, swap);
  }

  #arithmetic(node: ts.BinaryExpression, swap: (operator: OperatorName, to: string) => void): void {
    const { left, right, operatorToken: { kind } } = node;
    const isPlus = kind === ts.SyntaxKind.PlusToken, isMinus = kind === ts.SyntaxKind.MinusToken;
    if (isPlus && isText(node)) return;
    if ((isPlus || isMinus) && isOne(right)) this.#add("off by one", node, left.getText());
    else if (isPlus && isOne(left)) this.#add("off by one", node, right.getText());
    else if (isPlus || isMinus) swap("arithmetic", isPlus ? "-" : "+");
    if (kind !== ts.SyntaxKind.AsteriskToken && kind !== ts.SyntaxKind.SlashToken) return;
    this.#add("arithmetic", node, left.getText());
  }

  #call(node: ts.CallExpression): void {
    const { expression, arguments: args } = node;
    if (!ts.isPropertyAccessExpression(expression)) return;
    const { name: { text: name }, expression: receiver } = expression;
    const replaceName = (operator: OperatorName, to: string) =>
      this.#add(operator, node, to, expression.name.getStart(), expression.name.getEnd());
    if (receiver.getText() === "Math" && (name === "max" || name === "min")) {
      // Of two arguments each alone; the other function would give one of them, too.
      if (args.length === 2) {
        for (const arg of args) {
          const text = arg.getText();
          this.#add("max or min", node, ts.isSpreadElement(arg) ? `Math.${name}(${text})` : `(${text})`);
        }
      } else replaceName("max or min", name === "max" ? "min" : "max");
    }
    if (name === "shift" || name === "pop") replaceName("other end", name === "shift" ? "pop" : "shift");
    if (name === "some" || name === "every") replaceName("some or every", name === "some" ? "every" : "some");
    const isThinning = name === "filter" && args.length === 1;
    if ((isThinning || name === "sort" || name === "toSorted") && expression.questionDotToken === undefined) {
      this.#add("unfiltered", node, receiver.getText());
    }
  }

  #statement(node: ts.ExpressionStatement): void {
    const { expression, parent } = node;
    if (ts.isStringLiteral(expression) || isSuperCall(expression) || isFirstValue(node)) return;
    // `if (a) b();` is left out where the condition is false.
    const isGuarded = ts.isIfStatement(parent) && parent.thenStatement === node &&
      parent.elseStatement === undefined;
    if (!isGuarded) this.#add("left out", node, isListed(node) ? ";" : "{}");
    if (ts.isAwaitExpression(expression)) {
      this.#add("not awaited", node, `${lead(expression.expression)};`);
    }
  }

  #returned(node: ts.ReturnStatement): void {
    const { expression } = node;
    if (expression === undefined) return;
    const constant = constantOf(node);
    if (constant !== null && constant !== expression.getText()) {
      this.#add("returns nothing", expression, constant);
    }
  }

  /** Only what stands after a spread: without it the copy is as what was copied. */
  #record(node: ts.ObjectLiteralExpression): void {
    const first = node.properties.findIndex((each) => ts.isSpreadAssignment(each));
    if (first < 0) return;
    for (const property of node.properties.slice(first + 1)) this.#leaveOut("field left out", property);
  }

  #list(node: ts.ArrayLiteralExpression): void {
    if (node.elements.length < 2 || !node.elements.some((each) => ts.isSpreadElement(each))) return;
    for (const element of node.elements) this.#leaveOut("element left out", element);
  }

  /** With the comma after it. */
  #leaveOut(operator: OperatorName, node: ts.Node): void {
    const comma = /^\s*,/.exec(this.#text.slice(node.getEnd()))?.[0].length ?? 0;
    this.#add(operator, node, "", node.getStart(), node.getEnd() + comma);
  }

  #sequence(statements: readonly ts.Statement[]): void {
    for (const [i, statement] of statements.entries()) {
      const next = statements[i + 1];
      if (next !== undefined && areSwappable(statement, next)) {
        const between = this.#text.slice(statement.getEnd(), next.getStart());
        const becomes = next.getText() + between + statement.getText();
        this.#add("swapped", statement, becomes, statement.getStart(), next.getEnd());
      }
      const isLast = i > 0 && next === undefined && ts.isBlock(statement.parent) &&
        ts.isIfStatement(statement.parent.parent);
      const leaves = ts.isContinueStatement(statement) || ts.isBreakStatement(statement) ||
        ts.isReturnStatement(statement);
      if (isLast && leaves) this.#add("goes on", statement, ";");
    }
  }

  #truth(value: ts.Expression): void {
    if (value.kind !== ts.SyntaxKind.TrueKeyword) this.#add("truth", value, "true");
    if (value.kind !== ts.SyntaxKind.FalseKeyword) this.#add("truth", value, "false");
  }
}

/** In words that the compiler can't see through: what a condition proves of types stays proven where it is left. */
const never = (condition: ts.Expression): string => `(${condition.getText()}) && Boolean(0)`;
const always = (condition: ts.Expression): string => `(${condition.getText()}) || Boolean(1)`;

/** One of a list of statements. */
const isListed = ({ parent }: ts.Node): boolean =>
  ts.isBlock(parent) || ts.isSourceFile(parent) || ts.isCaseOrDefaultClause(parent);

/** OP3 */
const isIdle = (node: ts.Node): boolean =>
  ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node) ||
  ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isTypeParameterDeclaration(node) ||
  ts.isTemplateSpan(node) || ts.isJSDoc(node);

/** A text as the start of a statement: what begins with a brace would be a block. */
const lead = (expression: ts.Expression): string =>
  /^(?:\{|function|class|\[|\()/.test(expression.getText())
    ? `void ${expression.getText()}`
    : expression.getText();

const isOne = (node: ts.Expression): boolean => ts.isNumericLiteral(node) && node.text === "1";

const isSuperCall = (node: ts.Expression): boolean =>
  ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword;

/** What a list is filtered by: where it is always true the list is not filtered, which is a change by itself. */
const isFilter = (node: ts.Node): boolean =>
  ts.isArrowFunction(node) && ts.isCallExpression(node.parent) && node.parent.arguments[0] === node &&
  ts.isPropertyAccessExpression(node.parent.expression) && node.parent.expression.name.text === "filter";

/** Where a constructor gives a field its only first value: the compiler finds that it is missing. */
function isFirstValue({ expression, parent }: ts.ExpressionStatement): boolean {
  if (!ts.isBlock(parent) || !ts.isConstructorDeclaration(parent.parent)) return false;
  if (!ts.isBinaryExpression(expression) || !isAssignment(expression)) return false;
  const { left } = expression;
  if (!ts.isPropertyAccessExpression(left) || left.expression.kind !== ts.SyntaxKind.ThisKeyword) {
    return false;
  }
  const field = parent.parent.parent.members.find((member) => member.name?.getText() === left.name.text);
  return field !== undefined && ts.isPropertyDeclaration(field) && field.initializer === undefined &&
    !/\| undefined$/.test(field.type?.getText() ?? "");
}

/** A sum of which a part is a text. */
function isText(node: ts.Expression): boolean {
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  if (ts.isParenthesizedExpression(node)) return isText(node.expression);
  return ts.isBinaryExpression(node) && (isText(node.left) || isText(node.right));
}

/** What does something, and whose value nobody looks at. */
const isEffect = (node: ts.Expression): boolean =>
  ts.isVoidExpression(node) || (ts.isBinaryExpression(node) && isAssignment(node));

const isAssignment = ({ operatorToken: { kind } }: ts.BinaryExpression): boolean =>
  kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;

/** Whether the text alone shows that an expression is true or false. */
function saysWhether(node: ts.Expression): boolean {
  if (node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword) return true;
  if (ts.isParenthesizedExpression(node)) return saysWhether(node.expression);
  if (ts.isPrefixUnaryExpression(node)) return node.operator === ts.SyntaxKind.ExclamationToken;
  if (ts.isPropertyAccessExpression(node)) return SAYS_WHETHER.test(node.name.text);
  if (ts.isCallExpression(node)) {
    const name = ts.isPropertyAccessExpression(node.expression)
      ? node.expression.name.text
      : node.expression.getText();
    return SAYS_WHETHER.test(name) || ASKS_WHETHER.test(name);
  }
  if (!ts.isBinaryExpression(node)) return false;
  const { kind } = node.operatorToken;
  if (kind === ts.SyntaxKind.AmpersandAmpersandToken || kind === ts.SyntaxKind.BarBarToken) {
    return saysWhether(node.left) && saysWhether(node.right);
  }
  return BOUNDARIES.has(kind) || EQUALITIES.has(kind) || kind === ts.SyntaxKind.InKeyword ||
    kind === ts.SyntaxKind.InstanceOfKeyword;
}

/** What is returned, assigned, given or kept by a node. */
function valueOf(node: ts.Node): ts.Expression | undefined {
  if (ts.isReturnStatement(node)) return node.expression;
  if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) return node.body;
  if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isParameter(node)) {
    return node.initializer;
  }
  if (ts.isPropertyAssignment(node)) return node.initializer;
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
    // The statement is left out as a whole; only what is not a constant can be wrong both ways.
    return isConstant(node.right) ? undefined : node.right;
  }
  return undefined;
}

const isConstant = (node: ts.Expression): boolean =>
  node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword;

/** What a function returns that says itself that it is true or false. */
const isAnswer = (node: ts.Node): boolean =>
  ts.isReturnStatement(node) &&
  ts.findAncestor(node, ts.isFunctionLike)?.type?.kind === ts.SyntaxKind.BooleanKeyword;

/** Whether a node is, as a whole, a condition or a truth value, or a side of one that is left out. */
function isDecided(node: ts.Expression): boolean {
  const { parent } = node;
  if (ts.isParenthesizedExpression(parent)) return isDecided(parent);
  if (ts.isPrefixUnaryExpression(parent) || ts.isWhileStatement(parent)) return true;
  if (ts.isIfStatement(parent) || (ts.isConditionalExpression(parent) && parent.condition === node)) {
    return true;
  }
  if (ts.isBinaryExpression(parent)) return !isAssignment(parent) || valueOf(parent) === node;
  return valueOf(parent) === node;
}

/** What a function that returns something may return without having done its work; null: none that has its type. */
function constantOf(node: ts.ReturnStatement): string | null {
  const owner = ts.findAncestor(node, ts.isFunctionLike);
  let type = owner?.type;
  if (type === undefined) return null;
  if (ts.isTypeReferenceNode(type) && type.typeName.getText() === "Promise") type = type.typeArguments?.[0];
  const text = type?.getText() ?? "";
  if (/\| null$/.test(text)) return "null";
  if (/\| undefined$/.test(text)) return "undefined";
  if (text === "number") return "0";
  return /^(?:readonly )?[\w.<>]+\[\]$/.test(text) ? "[]" : null;
}

/** Statements of which either may come first as far as names go, and of which one does something that shows. */
function areSwappable(first: ts.Statement, second: ts.Statement): boolean {
  if (ts.findAncestor(first, ts.isConstructorDeclaration) !== undefined) return false;
  const calls = (node: ts.Statement) => hasWithin(node, (each) => ts.isCallExpression(each));
  const awaits = (node: ts.Statement) => hasWithin(node, ts.isAwaitExpression);
  if (ts.isVariableStatement(first)) {
    if (!awaits(first) || !ts.isExpressionStatement(second)) return false;
    const names = new Set<string>();
    const collect = (name: ts.BindingName): void => {
      if (ts.isIdentifier(name)) names.add(name.text);
      else for (const each of name.elements) if (!ts.isOmittedExpression(each)) collect(each.name);
    };
    for (const { name } of first.declarationList.declarations) collect(name);
    return !hasWithin(second, (each) => ts.isIdentifier(each) && names.has(each.text));
  }
  if (!ts.isExpressionStatement(first) || !ts.isExpressionStatement(second)) return false;
  if (isSuperCall(first.expression) || ts.isStringLiteral(first.expression)) return false;
  const targets = [plainTarget(first), plainTarget(second)];
  const isApart = ([a, b]: typeof targets) =>
    a !== null && b !== null && !second.getText().includes(a ?? "") && !first.getText().includes(b ?? "");
  return (calls(first) || calls(second)) && first.getText() !== second.getText() && !isApart(targets);
}

const COLLECTS: ReadonlySet<string> = new Set(["push", "pop", "set", "add", "delete", "clear"]);
/** Calls that change nothing: those of arrays, maps and texts, and what says the time. */
const LOOKS = /^(?:Math\.\w+|.*\.(?:at|get|has|includes|join|slice|steadyMs|nowMs|toSorted|toReversed))$/s;
const HOLDERS: ReadonlySet<string> = new Set(["Map", "Set", "Uint8Array"]);

/**
 * What a statement changes, where it calls nothing but that change: of two which change different things, of which neither
 * looks at the other's, it does not matter which is first. null: it may do anything.
 */
function plainTarget({ expression }: ts.ExpressionStatement): string | null {
  const isPlain = (node: ts.Node) => !hasWithin(node, mayDoMore);
  if (ts.isBinaryExpression(expression) && isAssignment(expression)) {
    const { left, right } = expression;
    return isPlain(left) && isPlain(right) ? left.getText() : null;
  }
  if (!ts.isCallExpression(expression) || !ts.isPropertyAccessExpression(expression.expression)) return null;
  const { name, expression: receiver } = expression.expression;
  const isChange = COLLECTS.has(name.text) && isPlain(receiver) && expression.arguments.every(isPlain);
  return isChange ? receiver.getText() : null;
}

/** Whether a part of an expression may do something beside its value. */
function mayDoMore(node: ts.Node): boolean {
  if (ts.isCallExpression(node)) return !LOOKS.test(node.expression.getText());
  if (ts.isNewExpression(node)) return !HOLDERS.has(node.expression.getText());
  return ts.isAwaitExpression(node);
}

function hasWithin(node: ts.Node, is: (each: ts.Node) => boolean): boolean {
  if (is(node)) return true;
  return ts.forEachChild(node, (child) => hasWithin(child, is)) ?? false;
}
