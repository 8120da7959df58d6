/**
 * Finds private fields of Session classes, before anything is deployed: nobody outside of a class can see what they
 * hold, so no checkpoint has it, and a session that goes on elsewhere would begin with them anew.
 *
 * Private methods are none: they hold nothing. A class that is made by a function around it (a mixin) is not found.
 */
import type { AnyNode, Class, Program } from "acorn";
import { type BundleIssue, placeOf, visit } from "./imports.ts";

/** Name with which functions/class/session.ts marks its base class, as a bundler may have renamed it. */
const MARK = /^SESSION_BASE\d*$/;

/** A class of stateful sessions, and its names. */
export interface NamedClass {
  readonly names: readonly string[];
  readonly node: Class;
}

/** Returns an issue for each private field of the Session classes of a bundle, parsed from `code`. */
export const privateSessionFields = (program: Program, code: string): BundleIssue[] =>
  sessionClasses(program).flatMap(({ names, node }) => fieldsOf(names, node, code));

/**
 * Session classes of programs. Each check of a bundle looks for them, and a bundle has a hundred thousand nodes: once
 * is enough.
 */
const found = new WeakMap<Program, readonly NamedClass[]>();

/** Returns the Session classes of a parsed bundle. */
export function sessionClasses(program: Program): readonly NamedClass[] {
  let classes = found.get(program);
  if (classes === undefined) found.set(program, classes = findClasses(program));
  return classes;
}

function findClasses(program: Program): readonly NamedClass[] {
  const bases = new Set<string>();
  const classes: NamedClass[] = [];
  visit(program, (node) => {
    const base = markedBase(node);
    if (base !== undefined) bases.add(base);
    const named = namedClass(node);
    if (named !== undefined) classes.push(named);
  });
  if (bases.size === 0) return [];
  const ofSessions = new Set<Class>();
  // A class may stand before the one that it extends.
  for (let before = -1; before < ofSessions.size;) {
    before = ofSessions.size;
    for (const { names, node } of classes) {
      if (node.superClass?.type !== "Identifier" || !bases.has(node.superClass.name)) continue;
      ofSessions.add(node);
      for (const name of names) bases.add(name);
    }
  }
  return classes.filter(({ node }) => ofSessions.has(node));
}

/** Returns the name of the class in `Object.defineProperty(Session.prototype, SESSION_BASE, …)`. */
function markedBase(node: AnyNode): string | undefined {
  if (node.type !== "CallExpression") return undefined;
  const [of, mark] = node.arguments;
  if (mark?.type !== "Identifier" || !MARK.test(mark.name)) return undefined;
  return of?.type === "MemberExpression" && of.object.type === "Identifier" ? of.object.name : undefined;
}

/** Returns a class with its names: its own, and that of the variable that it is given to. */
function namedClass(node: AnyNode): { readonly names: readonly string[]; readonly node: Class } | undefined {
  if (node.type === "ClassDeclaration") return { names: node.id === null ? [] : [node.id.name], node };
  if (node.type !== "VariableDeclarator" || node.init?.type !== "ClassExpression") return undefined;
  const { init } = node;
  return {
    names: [...node.id.type === "Identifier" ? [node.id.name] : [], ...init.id ? [init.id.name] : []],
    node: init,
  };
}

function fieldsOf(names: readonly string[], { body }: Class, code: string): BundleIssue[] {
  return body.body.flatMap((member) => {
    if (member.type !== "PropertyDefinition" || member.key.type !== "PrivateIdentifier" || member.static) {
      return [];
    }
    const field = `#${member.key.name}`;
    return [{
      message:
        `the class ${
          names[0] ?? "of a stateful session"
        } has the private field ${field}, which no checkpoint ` +
        `could hold: declare it as "private ${member.key.name}" or without a word`,
      ...placeOf(member, code),
    }];
  });
}
