/**
 * Changes that need not be run: what they change is told to people, or counted, and nothing that a client, a disk or
 * another site sees follows from it. Each kind has its reason; a change of another kind gets its verdict by hand
 * (verdicts.ts).
 */
import ts from "typescript";
import type { Change } from "./operators.ts";

interface Kind {
  readonly name: string;
  readonly reason: string;
  readonly is: (node: ts.Node) => boolean;
}

/** Of what a call is named, up to its last name. */
const calleeOf = (node: ts.Node): string =>
  ts.isCallExpression(node) ? node.expression.getText().replaceAll(/\s/g, "") : "";

const COUNTS = /(?:^|\.)#?(?:core|ports|services|subscriptions)\??\.count(?:\?\.)?$|(?:^|\.)#count$/;
const NOTES = /(?:^|\.)#?(?:ports|services)\.note$|^note$|(?:^|\.)#?core\.refused$/;
const LOGS = /(?:^|\.)#?(?:services|sink|site|listener|ports)\.log$|(?:^|\.)#log$|^console\.\w+$/;
const ERROR = /(?:Error|Unavailable|Failed|Lost)$|^sourceLost$/;

/** The kinds. */
export const KINDS: readonly Kind[] = [
  {
    name: "counter",
    reason: "counters are read by status, metrics and probes of simulators; no decision follows from one",
    is: (node) => COUNTS.test(calleeOf(node)),
  },
  {
    name: "note",
    reason:
      "notes are for operators, and written at most once in a while; no decision follows from one, nor from what " +
      "is counted with it (Core.refused)",
    is: (node) => NOTES.test(calleeOf(node)) && node.parent !== undefined && isStatement(node),
  },
  {
    name: "log",
    reason: "a line of a log says what has been done, and does nothing",
    is: (node) => LOGS.test(calleeOf(node)) && isStatement(node),
  },
  {
    name: "text of an error",
    reason: "what an error says to people beside its code changes nothing that code does",
    is: (node) => ts.isNewExpression(node) && ERROR.test(node.expression.getText()) && isText(node),
  },
];

const isStatement = (call: ts.Node): boolean =>
  ts.isExpressionStatement(call.parent) || ts.isReturnStatement(call.parent) ||
  (ts.isArrowFunction(call.parent) && call.parent.body === call) || ts.isVoidExpression(call.parent);

/** An error of the language itself: it has nothing but its text. */
const isText = (node: ts.NewExpression): boolean => node.expression.getText() === "Error";

/** The kind of a change that need not be run. */
export function harmless(change: Change): Kind | null {
  if (change.operator === "swapped") {
    const { parent } = change.node;
    const siblings = ts.isBlock(parent) || ts.isSourceFile(parent) || ts.isCaseOrDefaultClause(parent)
      ? parent.statements
      : [];
    const at = siblings.findIndex((each) => each === change.node);
    return [siblings[at], siblings[at + 1]].flatMap((each) => each === undefined ? [] : kindOf(each) ?? [])
      .at(0) ?? null;
  }
  if (change.operator === "left out") return kindOf(change.node) ?? within(change.node.parent);
  return within(change.node);
}

/** Of a statement that is one call. */
function kindOf(statement: ts.Node): Kind | null {
  let node = statement;
  if (ts.isExpressionStatement(node)) node = node.expression;
  if (ts.isVoidExpression(node)) node = node.expression;
  return KINDS.find((kind) => kind.is(node)) ?? null;
}

/** Of what a place is a part. */
function within(node: ts.Node | undefined): Kind | null {
  for (let at = node; at !== undefined; at = at.parent) {
    if (ts.isFunctionLike(at) || (ts.isStatement(at) && !ts.isExpressionStatement(at))) return null;
    const kind = KINDS.find((each) => each.is(at as ts.Node));
    if (kind !== undefined) return kind;
  }
  return null;
}
