/**
 * Finds variables of modules that methods of Session classes change: all sessions of an isolate share them, and no log
 * has them. It is a warning before a deploy; the handler fails when it changes one (module_state.ts).
 *
 * Only code in a class itself is looked at: a change by a function that a method calls is found when it is called.
 *
 * A name that anything in the class declares is taken for that: there is no warning for it.
 */
import type { AnyNode, Pattern, Program } from "acorn";
import { type BundleIssue, placeOf, visit } from "./imports.ts";
import { type NamedClass, sessionClasses } from "./session_fields.ts";

/** Names of methods that change the object they are called on. */
const CHANGING: ReadonlySet<string> = new Set([
  ...["set", "add", "delete", "clear"],
  ...["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill"],
]);

/** Returns a warning for each variable of a module that the Session classes of a bundle, parsed from `code`, change. */
export function sharedBindings(program: Program, code: string): BundleIssue[] {
  const classes = sessionClasses(program);
  if (classes.length === 0) return [];
  const shared = new Set<string>();
  for (const statement of program.body) {
    const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declared?.type !== "VariableDeclaration") continue;
    for (const { id } of declared.declarations) for (const name of namesOf(id)) shared.add(name);
  }
  return classes.flatMap((each) => changesIn(each, shared, code));
}

function changesIn({ names, node }: NamedClass, shared: ReadonlySet<string>, code: string): BundleIssue[] {
  const own = new Set<string>();
  visit(node.body, (each) => {
    if (each.type === "VariableDeclarator") { for (const name of namesOf(each.id)) own.add(name); }
    if (each.type === "FunctionExpression" || each.type === "ArrowFunctionExpression") {
      for (const parameter of each.params) for (const name of namesOf(parameter)) own.add(name);
    }
  });
  const told = new Set<string>();
  const issues: BundleIssue[] = [];
  visit(node.body, (each) => {
    const name = changedName(each);
    if (name === undefined || !shared.has(name) || own.has(name) || told.has(name)) return;
    told.add(name);
    issues.push({
      message:
        `${
          names[0] ?? "a Session class"
        } changes ${name}, a variable of its module: all sessions of an isolate ` +
        `share it, and no log has it. Keep it in a field of the class`,
      ...placeOf(each, code),
    });
  });
  return issues;
}

/** Returns the variable that a node changes, itself or inside. */
function changedName(node: AnyNode): string | undefined {
  switch (node.type) {
    case "AssignmentExpression":
      return rootOf(node.left);
    case "UpdateExpression":
      return rootOf(node.argument);
    case "UnaryExpression":
      return node.operator === "delete" ? rootOf(node.argument) : undefined;
    case "CallExpression": {
      const { callee } = node;
      const isChange = callee.type === "MemberExpression" && callee.property.type === "Identifier" &&
        !callee.computed && CHANGING.has(callee.property.name);
      // A deeper one is more often a method of an object with rules of its own.
      return isChange && callee.object.type === "Identifier" ? callee.object.name : undefined;
    }
    default:
      return undefined;
  }
}

/** Returns `a` of `a`, `a.b` and `a[0].b`. */
function rootOf(node: AnyNode): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "MemberExpression" ? rootOf(node.object) : undefined;
}

function namesOf(pattern: Pattern): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((each) =>
        namesOf(each.type === "Property" ? each.value : each.argument)
      );
    case "ArrayPattern":
      return pattern.elements.flatMap((each) => each === null ? [] : namesOf(each));
    case "RestElement":
      return namesOf(pattern.argument);
    case "AssignmentPattern":
      return namesOf(pattern.left);
    default:
      return [];
  }
}
