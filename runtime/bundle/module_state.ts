/**
 * Makes the state that the modules of an app with stateful sessions hold known to the isolate that runs them: all
 * sessions of an isolate share it, and no log has it. No runtime can freeze a variable, see what a closure holds, or
 * reach a private member; so the bundle itself asks before it changes one, and tells what there is
 * (runtime/isolate/inside/module_state.ts decides). Elsewhere, and while modules load, the questions cost a comparison
 * and change nothing.
 *
 * MS1  An app's own module asks before it changes a variable that belongs to another function than the one that runs,
 *      or to the module; and before it changes a private member. The question names the owner: the modules, for what
 *      was made while they loaded, or the session that made it.
 * MS2  A package tells before it changes variables of its modules, or of a function that was called while modules
 *      loaded: they are put back, and counts are kept with the session. It tells which objects these variables hold,
 *      and the names of properties that it assigns to: those are compared.
 * MS3  An app's own modules tell what variables hold that outlive the function that has them, what they bind functions
 *      to, and what their Proxies stand for, while modules load.
 * MS4  No line of the bundle moves to another: the source map is shifted within lines (shifted_map.ts).
 * MS6  A module that is imported when it is used (`import()`) is loaded with the rest where sessions share it: later
 *      its modules could not set their variables.
 * MS5  Catch clauses tell what they were given, and `finally` what passes it: that the stack was full is nothing that a
 *      replay would repeat. So do functions that the language calls and of whose failing it does not always tell:
 *      executors of promises, `return` of iterators, `then`, getters.
 * MS7  A class that extends another asks before it gives an object private fields: its base may hand it any object,
 *      such as a session, and no checkpoint has what nobody else can see.
 */
import { type AnyNode, type Class, parse, type Pattern, type Program } from "acorn";
import { analyze, type Reference, type Scope, type Variable } from "eslint-scope";
import type { Cut } from "./cuts.ts";
import { visit } from "./imports.ts";
import { sessionClasses } from "./session_fields.ts";

/** The owner of the module that a part of a bundle is of. */
export type Origin =
  /** The app's own, by its path. */
  | { readonly kind: "own"; readonly name: string }
  /** A package's, by its name. */
  | { readonly kind: "package"; readonly name: string }
  /** The platform's, or the bundler's. */
  | { readonly kind: "platform" };

/** Answers from a bundle's source map and its comments. */
export interface Sources {
  /** Returns the origin of the code that begins at an offset of the bundle. */
  originAt(offset: number): Origin;
  /** Returns a variable's own name, where the bundler has another for the one that begins at an offset. */
  nameAt(offset: number): string | undefined;
}

/** The global that the bundle asks (runtime/isolate/inside/module_state.ts). */
const SLOT = `globalThis[Symbol.for("sojourn.modules")]`;
const NOBODY = `{ owner: 0, made: () => 0, hold() {} }`;

/** Scopes that have no variables to tell, or no place in which to do it. */
const UNTOLD: ReadonlySet<string> = new Set([
  ...["module", "global", "class", "class-field-initializer", "function-expression-name", "switch"],
]);

/** Text put around a part of the bundle. */
interface Wrap {
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

/** Nodes of functions, and others that have a scope or are told of. */
type FunctionNode = Extract<
  AnyNode,
  { type: "FunctionDeclaration" | "FunctionExpression" | "ArrowFunctionExpression" }
>;
type CatchClause = Extract<AnyNode, { type: "CatchClause" }>;
type TryStatement = Extract<AnyNode, { type: "TryStatement" }>;
type StaticBlock = Extract<AnyNode, { type: "StaticBlock" }>;
type CallExpression = Extract<AnyNode, { type: "CallExpression" }>;
type ScopeNode = AnyNode & { readonly body?: AnyNode | readonly AnyNode[] };

/** Returns the cuts that have a bundle ask; none for an app without stateful sessions. */
export function moduleStateCuts(code: string, program: Program, sources: () => Sources): Cut[] {
  const classes = sessionClasses(program);
  if (classes.length === 0) return [];
  // Scopes are told apart by ranges, which the first parser run leaves out to be fast for those without sessions.
  const ranged = parse(code, { ecmaVersion: "latest", sourceType: "module", ranges: true });
  return new ModuleState(code, ranged, sources()).cuts();
}

class ModuleState {
  readonly #code: string;
  readonly #program: Program;
  readonly #sources: Sources;
  /** Name that the bundle has for the global that it asks. */
  readonly #slot: string;
  readonly #wraps: Wrap[] = [];
  readonly #references = new Map<unknown, Reference>();
  readonly #scopes: readonly Scope[];
  /** Functions that have to know their owner, with the name of the variable that holds it. */
  readonly #owners = new Map<AnyNode, string>();
  /** Functions that the bundler put around CommonJS modules, and around those that it loads later. */
  readonly #wrappers: ReadonlySet<unknown>;
  /** Names of the functions that run these. */
  readonly #loaders: ReadonlySet<string>;
  /** Text that comes before all else. */
  #prelude = "";
  readonly #assigned = new Set<string>();
  /** Names of properties that packages assign to (MS2). */
  readonly #touched = new Set<string>();
  /** Names of properties that the app's own modules assign to. */
  readonly #changed = new Set<string>();
  /** Places where a variable is counted up, and gets no other value (MS2). */
  readonly #countedAt = new Set<unknown>();
  /** Places where a property gets its first value (MS2). */
  readonly #begunAt = new Set<unknown>();
  /** True for a property that a package only counts up, by the names of both (MS2). */
  readonly #countedProperties = new Map<string, boolean>();
  /** Names of the records of packages' variables, which their functions tell when they are called (MS2). */
  readonly #records = new Map<Variable, string>();
  readonly #recordsOf = new Map<AnyNode, string[]>();
  /** Texts of expressions that load modules (MS6). */
  readonly #late = new Set<string>();
  readonly #methods = new Set<string>();
  /** Functions without a body of statements (MS5). */
  readonly #failing = new Set<FunctionNode>();
  #binds = false;
  #next = 1;

  constructor(code: string, program: Program, sources: Sources) {
    this.#code = code;
    this.#program = program;
    this.#sources = sources;
    this.#slot = unused("__sojourn_modules", code);
    this.#wrappers = wrappersOf(program);
    this.#loaders = loadersOf(program);
    const analyzed = analyze(program as never, { ecmaVersion: 2022, sourceType: "module" });
    this.#scopes = analyzed.scopes;
    for (const scope of this.#scopes) {
      for (const reference of scope.references) this.#references.set(reference.identifier, reference);
    }
  }

  cuts(): Cut[] {
    this.#noteBegun();
    visit(this.#program, (node) => this.#noteCounted(node));
    visit(this.#program, (node) => this.#ask(node));
    this.#askForPrivates();
    for (const scope of this.#scopes) this.#tell(scope);
    for (const node of [...this.#failing]) this.#tellAtBegin(node, "");
    const bound = this.#binds
      ? ` const ${this.#slot}_bound = ${this.#slot}.bound ?? ((_, args) => args);`
      : "";
    const prelude = `const ${this.#slot} = ${SLOT} ?? ${NOBODY};${bound}`;
    return [
      { start: 0, end: 0, text: prelude + this.#prelude },
      ...insertions(this.#wraps),
      {
        start: this.#code.length,
        end: this.#code.length,
        text: `\n${this.#loadsLate()}${this.#slot}.hold(${this.#held()});\n`,
      },
    ];
  }

  // Asking (MS1, MS2)

  #ask(node: AnyNode): void {
    switch (node.type) {
      case "AssignmentExpression":
        this.#noteAssigned(node.left);
        return this.#askFor(node, namesIn(node.left));
      case "UpdateExpression":
        this.#noteTouched(node.argument);
        return this.#askFor(node, namesIn(node.argument as Pattern));
      case "UnaryExpression":
        if (node.operator === "delete") this.#noteTouched(node.argument);
        return;
      case "ForInStatement":
      case "ForOfStatement":
        if (node.left.type !== "VariableDeclaration") this.#askFor(node.right, namesIn(node.left));
        return;
      case "ArrowFunctionExpression":
        return this.#noteLate(node);
      case "CallExpression":
        return this.#tellBound(node);
      case "CatchClause":
        return this.#tellCaught(node);
      case "TryStatement":
        return this.#tellPassed(node);
      case "NewExpression":
        if (nameOf(node.callee) === "Promise") this.#tellFailed(node.arguments[0]);
        if (nameOf(node.callee) === "Proxy") this.#tellProxy(node.callee);
        return;
      case "Property":
        if (node.kind === "get" || isKeptToItself(node.key)) this.#tellFailed(node.value);
        return;
      case "MethodDefinition":
        if (node.key.type === "Identifier") this.#methods.add(node.key.name);
        if (node.kind === "get" || isKeptToItself(node.key)) this.#tellFailed(node.value);
        return;
    }
  }

  /** Has code that writes to these variables ask first. */
  #askFor(node: { readonly start: number; readonly end: number }, names: readonly AnyNode[]): void {
    const asked = names.flatMap((name) => this.#questionOf(name) ?? []);
    if (asked.length === 0) return;
    this.#wraps.push({ ...range(node), before: `(${asked.join(", ")}, `, after: ")" });
  }

  #questionOf(name: AnyNode): string | undefined {
    const reference = this.#references.get(name);
    const variable = reference?.resolved;
    if (reference === undefined || !variable) return undefined;
    const [home, here] = [functionOf(variable.scope), functionOf(reference.from)];
    if (home === here) return undefined;
    const origin = this.#sources.originAt(name.start);
    if (origin.kind === "platform") return undefined;
    const what = `${JSON.stringify(this.#named(variable))}, ${JSON.stringify(origin.name)}`;
    const isModules = home.type === "module";
    if (origin.kind === "package") {
      const record = this.#recordOf(variable, name.start, origin.name);
      return record &&
        `${this.#slot}.owner === 0 || ${record} === undefined || ${this.#slot}.change(${record})`;
    }
    if (isModules) return `${this.#slot}.owner === 0 || ${this.#slot}.refuse(0, ${what})`;
    const owner = this.#ownerOf(home, name.start);
    return owner && `${this.#slot}.owner === ${owner} || ${this.#slot}.refuse(${owner}, ${what})`;
  }

  /**
   * Returns the name of the record of a package's variable, which reads it, and puts another value there; undefined
   * where nothing of the variable can be seen from `at`.
   */
  #recordOf(variable: Variable, at: number, of: string): string | undefined {
    const known = this.#records.get(variable);
    if (known !== undefined) return known;
    const { name, scope } = variable;
    const isModules = scope.type === "module";
    if (!isModules && !this.#canTell(scope, at)) return undefined;
    const record = `${this.#slot}_${this.#next++}`;
    this.#records.set(variable, record);
    const named = [JSON.stringify(of), JSON.stringify(this.#named(variable)), this.#isCounted(variable)];
    const access = `() => ${name}, (value) => { ${name} = value; }`;
    const made = `${this.#slot}.variable?.(${named.join(", ")}, ${access})`;
    if (isModules) this.#prelude += ` const ${record} = ${made};`;
    else {
      const node = scope.block as AnyNode;
      const others = this.#recordsOf.get(node) ?? [];
      // A module that is required when it is used runs once all the same.
      const told = this.#wrappers.has(node) ? made : `${this.#slot}.owner === 0 ? ${made} : undefined`;
      this.#recordsOf.set(node, [...others, `const ${record} = ${told};`]);
    }
    return record;
  }

  /** Reports whether the scope of a variable can tell something at its begin that is seen from `at`. */
  #canTell({ type, block }: Scope, at: number): boolean {
    if (type === "block") return (block as AnyNode).type === "BlockStatement";
    if (type !== "function") return false;
    const { body } = block as unknown as FunctionNode;
    // In a parameter's default nothing of the body can be seen.
    return at >= body.start && at < body.end;
  }

  #noteCounted(node: AnyNode): void {
    if (node.type === "UpdateExpression" && node.operator === "++") this.#countedAt.add(node.argument);
    if (node.type !== "AssignmentExpression") return;
    const { left, operator, right } = node;
    const isSum = operator === "=" && right.type === "BinaryExpression" && right.operator === "+" &&
      this.#textOf(left) === this.#textOf(right.left);
    if (isSum || operator === "+=") this.#countedAt.add(left);
  }

  #textOf = ({ start, end }: AnyNode): string => this.#code.slice(start, end);

  #isCounted({ references }: Variable): boolean {
    return references.every((each) =>
      !each.isWrite() || each.init === true || this.#countedAt.has(each.identifier)
    );
  }

  /**
   * Returns the name of the variable by which a function knows its owner; undefined where none can be seen from `at`.
   */
  #ownerOf(scope: Scope, at: number): string | undefined {
    if (scope.type !== "function" && scope.type !== "class-static-block") return undefined;
    const node = scope.block as unknown as FunctionNode | StaticBlock;
    const body = node.type === "StaticBlock" ? node : node.body;
    // In a parameter's default nothing of the body can be seen.
    if (at < body.start || at >= body.end) return undefined;
    let name = this.#owners.get(node);
    if (name === undefined) this.#owners.set(node, name = `${this.#slot}_${this.#next++}`);
    return name;
  }

  /** Has the arguments of a bound function told: nobody else can see them (MS3). */
  #tellBound({ callee, arguments: given, start }: CallExpression): void {
    if (callee.type !== "MemberExpression" || callee.computed || nameOf(callee.property) !== "bind") return;
    const [first, last] = [given.at(0), given.at(-1)];
    const origin = this.#sources.originAt(start);
    if (first === undefined || last === undefined || origin.kind !== "own") return;
    const before = `...${this.#slot}_bound(${JSON.stringify(origin.name)}, [`;
    this.#wraps.push({ start: first.start, end: last.end, before, after: "])" });
    this.#binds = true;
  }

  /** Has the target of a Proxy told: nobody else can see it (MS3). An older site has no such question. */
  #tellProxy(callee: AnyNode): void {
    const origin = this.#sources.originAt(callee.start);
    if (origin.kind !== "own" || this.#references.get(callee)?.resolved) return;
    const before = `(${this.#slot}.proxy?.(${JSON.stringify(origin.name)}) ?? `;
    this.#wraps.push({ ...range(callee), before, after: ")" });
  }

  /** Notes `Promise.resolve().then(() => (init_x(), x_exports))`, which an `import()` is made to (MS6). */
  #noteLate({ body, params }: Extract<AnyNode, { type: "ArrowFunctionExpression" }>): void {
    if (params.length > 0 || body.type === "BlockStatement") return;
    const text = this.#code.slice(body.start, body.end);
    const [, name] = /^(?:\(|__toESM\()*((?:init|require)_[\w$]*)\(\)/.exec(text) ?? [];
    if (name !== undefined && this.#loaders.has(name)) this.#late.add(text);
  }

  #loadsLate(): string {
    const each = [...this.#late].map((text) => `await (${text});`);
    return each.length === 0 ? "" : `if (${this.#slot}.isShared) { ${each.join(" ")} }\n`;
  }

  /** Has a catch clause tell what it was given (MS5). */
  #tellCaught({ start, param, body }: CatchClause): void {
    const after = start + "catch".length, drawn = `${this.#slot}_caught`;
    if (param !== null && param !== undefined && param.type !== "Identifier") {
      // What a pattern takes apart is thrown once more, for the clause as it was written.
      const before = ` (${drawn}) { ${this.#slot}.caught?.(${drawn}); try { throw ${drawn}; } catch`;
      this.#wraps.push({ start: after, end: body.end, before, after: " }" });
      return;
    }
    const name = param?.name ?? drawn;
    if (!param) this.#wraps.push({ start: after, end: after, before: ` (${name})`, after: "" });
    // An older site has no such question.
    this.#insert(body.start + 1, `${this.#slot}.caught?.(${name});`);
  }

  /**
   * Has an error told that passes a `finally` (MS5): it sees how far the code came, too, and may end in something else
   * than what was thrown.
   */
  #tellPassed({ start, block, handler, finalizer }: TryStatement): void {
    if (!finalizer) return;
    const passed = `${this.#slot}_passed`;
    const tells = ` catch (${passed}) { ${this.#slot}.caught?.(${passed}); throw ${passed}; }`;
    if (!handler) this.#wraps.push({ start: block.end, end: block.end, before: tells, after: "" });
    else this.#wraps.push({ start, end: handler.end, before: "try { ", after: ` }${tells}` });
  }

  /** Has a function tell the error that it fails with (MS5). */
  #tellFailed(node: AnyNode | undefined): void {
    // The bundler keeps the names of functions by it.
    if (node?.type === "CallExpression" && nameOf(node.callee) === "__name") {
      return this.#tellFailed(node.arguments[0]);
    }
    if (node?.type !== "FunctionExpression" && node?.type !== "ArrowFunctionExpression") return;
    const { body } = node;
    if (body.type !== "BlockStatement") this.#failing.add(node);
    else if (body.body.length > 0) {
      const begin = afterDirectives(body.body, body.start);
      this.#wraps.push({ start: begin, end: body.end - 1, before: " try {", after: this.#failed() });
    }
  }

  /** Returns the end of the text that tells of a function's error. */
  #failed(): string {
    const passed = `${this.#slot}_passed`;
    return ` } catch (${passed}) { ${this.#slot}.caught?.(${passed}); throw ${passed}; } `;
  }

  /**
   * Notes names of properties that are assigned to anywhere: a prototype that has one of them too must let that happen.
   */
  #noteAssigned(node: AnyNode): void {
    this.#noteTouched(node);
    if (node.type !== "MemberExpression" || node.computed || node.property.type !== "Identifier") return;
    this.#assigned.add(node.property.name);
    const of = node.object;
    const isPrototypes = of.type === "MemberExpression" && of.property.type === "Identifier" &&
      of.property.name === "prototype";
    if (isPrototypes) this.#methods.add(node.property.name);
  }

  /** Notes names of properties that are assigned to, by the origin of the code (MS2). */
  #noteTouched(target: AnyNode): void {
    for (const member of membersIn(target)) {
      const { computed, property, start } = member;
      const name = property.type === "Literal" ? property.value : computed ? undefined : nameOf(property);
      if (typeof name !== "string") continue;
      const origin = this.#sources.originAt(start);
      if (origin.kind === "own") this.#changed.add(name);
      if (origin.kind !== "package") continue;
      this.#touched.add(name);
      if (this.#begunAt.has(member)) continue;
      const key = JSON.stringify([origin.name, name]);
      this.#countedProperties.set(
        key,
        this.#countedAt.has(member) && this.#countedProperties.get(key) !== false,
      );
    }
  }

  /** Notes `Body.idCounter = 0;` where modules load, which is no change (MS2). */
  #noteBegun(): void {
    const bodies: (readonly AnyNode[])[] = [this.#program.body];
    for (const wrapper of this.#wrappers) {
      const { body } = wrapper as FunctionNode;
      if (body?.type === "BlockStatement") bodies.push(body.body);
    }
    for (const statement of bodies.flat()) {
      if (statement.type !== "ExpressionStatement" || statement.expression.type !== "AssignmentExpression") {
        continue;
      }
      const { left, right } = statement.expression;
      if (right.type === "Literal") this.#begunAt.add(left);
    }
  }

  // Private members (MS1, MS3)

  #askForPrivates(): void {
    const sessions = new Set<Class>(sessionClasses(this.#program).map(({ node }) => node));
    const within = (node: AnyNode, scope: readonly PrivateNames[]): void => {
      let inner = scope;
      if (node.type === "ClassDeclaration" || node.type === "ClassExpression") {
        const names = this.#privatesOf(node, sessions.has(node));
        if (names !== undefined) inner = [names, ...scope];
      }
      const targets = node.type === "AssignmentExpression"
        ? membersIn(node.left)
        : node.type === "UpdateExpression"
        ? membersIn(node.argument as Pattern)
        : [];
      for (const { property } of targets) {
        if (property.type !== "PrivateIdentifier" || this.#code[property.start - 1] !== ".") continue;
        const asked = inner.map((names) => names.get(property.name)).find((asked) => asked !== undefined);
        if (asked === undefined || asked === "") continue;
        const at = property.start - 1;
        this.#wraps.push({ start: at, end: at, before: `.${asked}("#${property.name}")`, after: "" });
      }
      for (const child of childrenOf(node)) within(child, inner);
    };
    within(this.#program, []);
  }

  /** Returns the private fields of a class, each with the method that asks for it ("" where none does). */
  #privatesOf(node: Class, isSession: boolean): PrivateNames | undefined {
    const members = node.body.body.filter((member) =>
      member.type === "PropertyDefinition" && member.key.type === "PrivateIdentifier"
    );
    const origin = this.#sources.originAt(node.start);
    if (members.length === 0) {
      const mayBeGiven = origin.kind !== "platform" && !isSession && node.superClass &&
        hasPrivateMethod(node);
      if (mayBeGiven) this.#askForGiven(node, this.#next++);
      return undefined;
    }
    const names = new Map<string, string>();
    for (const isStatic of [false, true]) {
      const own = members.flatMap((member) =>
        member.type === "PropertyDefinition" && member.static === isStatic &&
          member.key.type === "PrivateIdentifier"
          ? [member.key.name]
          : []
      );
      if (own.length === 0) continue;
      const id = this.#next++;
      if (origin.kind !== "own" || (isSession && !isStatic)) {
        for (const name of own) names.set(name, "");
        const mayBeGiven = origin.kind === "package" && !isStatic && !isSession && node.superClass;
        if (mayBeGiven) this.#askForGiven(node, id);
        continue;
      }
      const [owner, ask] = [`#${this.#slot}_${id}`, `#${this.#slot}_${id}_ask`];
      for (const name of own) names.set(name, ask);
      const word = isStatic ? "static " : "";
      const file = JSON.stringify(origin.name);
      const told = own.map((name) => `[${JSON.stringify(`#${name}`)}, () => this.#${name}]`).join(", ");
      // MS7. An older site has no such question.
      const given = isStatic || !node.superClass ? "" : `${this.#slot}.given?.(this), `;
      const text =
        ` ${word}${owner} = ${this.#slot}.owner === 0 ? ${this.#slot}.made(${file}, [${told}]) : ` +
        `(${given}${this.#slot}.owner); ${word}${ask}(name) { this.${owner} === ${this.#slot}.owner || ` +
        `${this.#slot}.refuse(this.${owner}, name, ${file}); return this; }`;
      const at = node.body.start + 1;
      this.#wraps.push({ start: at, end: at, before: text, after: "" });
    }
    return names;
  }

  /** Has a class with members that nobody asks for ask before it gives an object private fields (MS7). */
  #askForGiven(node: Class, id: number): void {
    const asks = `${this.#slot}.given?.(this)`;
    const at = node.body.start + 1;
    this.#wraps.push({ start: at, end: at, before: ` #${this.#slot}_${id} = ${asks};`, after: "" });
  }

  // Telling (MS3)

  #tell(scope: Scope): void {
    const node = scope.block as ScopeNode;
    if (UNTOLD.has(scope.type)) return;
    const origin = this.#sources.originAt(node.start);
    if (origin.kind === "package") return this.#tellPackages(scope, origin.name);
    if (origin.kind !== "own") return;
    const outlive = scope.variables.filter((variable: Variable) =>
      variable.defs.length > 0 &&
      variable.references.some((reference) => functionOf(reference.from) !== functionOf(scope))
    );
    const told = outlive.length === 0
      ? undefined
      : `${this.#slot}.made(${JSON.stringify(origin.name)}, ${this.#thunks(outlive)})`;
    if (scope.type === "function" || scope.type === "class-static-block") {
      return this.#tellFunction(node as unknown as FunctionNode | StaticBlock, told);
    }
    this.#tellBlock(scope, told);
  }

  /** Has the functions and blocks of packages tell their records and objects (MS2). */
  #tellPackages(scope: Scope, of: string): void {
    const block = scope.block as AnyNode;
    const records = this.#recordsOf.get(block) ?? [];
    if (scope.type === "block" && records.length > 0) this.#insert(block.start + 1, records.join(" "));
    if (scope.type !== "function") return;
    const node = block as FunctionNode;
    const isWrapper = this.#wrappers.has(node);
    const held = scope.variables.filter((variable: Variable) =>
      isSeenWithin(variable, node) && (isWrapper || holdsObject(variable)) &&
      variable.references.some((reference) => functionOf(reference.from) !== scope)
    );
    const texts = [...records];
    if (held.length > 0) {
      texts.push(
        `${this.#slot}.owner === 0 && ${this.#slot}.held?.(${JSON.stringify(of)}, ${this.#thunks(held)});`,
      );
    }
    if (texts.length > 0) this.#tellAtBegin(node, texts.join(" "));
  }

  #tellFunction(node: FunctionNode | StaticBlock, told: string | undefined): void {
    const owner = this.#owners.get(node);
    if (owner === undefined && told === undefined) return;
    const loading = `${this.#slot}.owner === 0`;
    const text = owner === undefined
      ? `${loading} && ${told};`
      : told === undefined
      ? `const ${owner} = ${this.#slot}.owner;`
      : `const ${owner} = ${loading} ? ${told} : ${this.#slot}.owner;`;
    if (node.type === "StaticBlock") return this.#insert(this.#code.indexOf("{", node.start) + 1, text);
    this.#tellAtBegin(node, text);
  }

  #tellAtBegin(node: FunctionNode, text: string): void {
    if (node.body.type === "BlockStatement") {
      return this.#insert(afterDirectives(node.body.body, node.body.start), text);
    }
    const arrow = this.#code.lastIndexOf("=>", node.body.start) + 2;
    const isTold = this.#failing.delete(node);
    const before = isTold ? ` { ${text} try { return (` : ` { ${text} return (`;
    this.#wraps.push({ start: arrow, end: node.end, before, after: `);${isTold ? this.#failed() : " "}}` });
  }

  #tellBlock(scope: Scope, told: string | undefined): void {
    if (told === undefined) return;
    const node = scope.block as ScopeNode;
    const block = node.type === "BlockStatement" ? node : node.body;
    if (block === undefined || Array.isArray(block) || (block as AnyNode).type !== "BlockStatement") return;
    this.#insert((block as AnyNode).start + 1, `${this.#slot}.owner === 0 && ${told};`);
  }

  #insert(at: number, text: string): void {
    this.#wraps.push({ start: at, end: at, before: ` ${text}`, after: "" });
  }

  #named({ name, defs: [def] }: Variable): string {
    return (def && this.#sources.nameAt((def.name as unknown as AnyNode).start)) ?? name;
  }

  /** Returns text with the names of variables and functions that return their values. */
  #thunks(variables: readonly Variable[]): string {
    const each = variables.map((variable) =>
      `[${JSON.stringify(this.#named(variable))}, () => ${variable.name}]`
    );
    return `[${each.join(", ")}]`;
  }

  /** Returns text with all that the modules have at their top. */
  #held(): string {
    const own: Variable[] = [];
    const packages: Variable[] = [];
    /** Values of packages, beyond what an app's module imports of them (MS2). */
    const from: string[] = [];
    const builtins: Variable[] = [];
    const platform: Variable[] = [];
    const declared: Variable[] = [];
    const module = this.#scopes.find(({ type }) => type === "module");
    for (const variable of module?.variables ?? []) {
      const [def] = variable.defs;
      if (def === undefined) continue;
      if (def.type === "ImportBinding") {
        builtins.push(variable);
        continue;
      }
      const origin = this.#sources.originAt((def.name as unknown as AnyNode).start);
      if (origin.kind === "package") {
        from.push(
          `[${JSON.stringify(origin.name)}, ${
            JSON.stringify(this.#named(variable))
          }, () => ${variable.name}]`,
        );
      }
      if (origin.kind === "platform") platform.push(variable);
      const isPackage = origin.kind !== "own" || isInterop(def.node as unknown as AnyNode);
      (isPackage ? packages : own).push(variable);
      if (origin.kind === "own" && isDeclared(def.node as unknown as AnyNode)) declared.push(variable);
    }
    const assigned = [...this.#assigned].filter((name) => this.#methods.has(name));
    const held = { own, packages, builtins, platform, declared };
    const lists = Object.entries(held).map(([name, variables]) => `${name}: ${this.#thunks(variables)}`);
    const names = Object.entries({ assigned, touched: [...this.#touched], changed: [...this.#changed] })
      .map(([name, each]) => `${name}: ${JSON.stringify(each)}`);
    const counted = [...this.#countedProperties].filter(([, isCounted]) => isCounted).map(([key]) => key);
    names.push(`counted: [${counted.join(", ")}]`);
    return `{ ${lists.join(", ")}, ${names.join(", ")}, from: [${from.join(", ")}], meta: import.meta }`;
  }
}

/** Reports whether a class gives its objects a private method or accessor. */
const hasPrivateMethod = ({ body }: Class): boolean =>
  body.body.some((member) =>
    member.type === "MethodDefinition" && !member.static && member.key.type === "PrivateIdentifier"
  );

/** Reports whether the language calls a method of this name, and may keep its failing to itself. */
const isKeptToItself = (key: AnyNode): boolean =>
  key.type === "Identifier" && /^(?:return|then)$/.test(key.name);

const nameOf = (node: AnyNode): string | undefined => node.type === "Identifier" ? node.name : undefined;

/** Reports whether a variable is declared in the body, or is a parameter that the body sees. */
const isSeenWithin = ({ defs: [def], name }: Variable, { body }: FunctionNode): boolean =>
  def !== undefined && name !== "arguments" && body.type === "BlockStatement";

/** Reports whether a variable begins with an object, an array, or what a class makes (MS2). */
function holdsObject({ defs }: Variable): boolean {
  return defs.some(({ node }) => {
    const { type, init } = node as unknown as { readonly type: string; readonly init?: AnyNode | null };
    if (type !== "VariableDeclarator" || !init) return false;
    const isMade = init.type === "CallExpression" && init.callee.type === "MemberExpression" &&
      nameOf(init.callee.property) === "create";
    return isMade || ["ObjectExpression", "ArrayExpression", "NewExpression"].includes(init.type);
  });
}

/** Private names of a class, each with the method that asks. */
type PrivateNames = ReadonlyMap<string, string>;

const range = ({ start, end }: { readonly start: number; readonly end: number }) => ({ start, end });

/** Returns a name that the code does not have. */
function unused(name: string, code: string): string {
  let free = name;
  while (code.includes(free)) free += "_";
  return free;
}

/** Returns the function, module or initialiser that a scope's variables live in. */
const functionOf = (scope: Scope): Scope => scope.variableScope;

/** Returns the names `require_x` and `init_x` of the functions that the bundler put around modules. */
function loadersOf(program: Program): ReadonlySet<string> {
  const found = new Set<string>();
  for (const statement of program.body) {
    if (statement.type !== "VariableDeclaration") continue;
    for (const { id, init } of statement.declarations) {
      const isLoader = init?.type === "CallExpression" && init.callee.type === "Identifier" &&
        /^__(commonJS|esm)/.test(init.callee.name);
      if (isLoader && id.type === "Identifier") found.add(id.name);
    }
  }
  return found;
}

/** Returns the functions of `var require_x = __commonJS({ "x.js"(exports) { … } })`, and of `__esm`. */
function wrappersOf(program: Program): ReadonlySet<AnyNode> {
  const found = new Set<AnyNode>();
  for (const statement of program.body) {
    if (statement.type !== "VariableDeclaration") continue;
    for (const { init } of statement.declarations) {
      if (init?.type !== "CallExpression" || init.callee.type !== "Identifier") continue;
      if (!/^__(commonJS|esm)/.test(init.callee.name)) continue;
      for (const argument of init.arguments) {
        found.add(argument);
        if (argument.type !== "ObjectExpression") continue;
        for (const property of argument.properties) {
          if (property.type === "Property") found.add(property.value);
        }
      }
    }
  }
  return found;
}

/** Reports whether a node is `var import_x = __toESM(require_x())`: a package, as the app's module sees it. */
const isInterop = (node: AnyNode): boolean =>
  node.type === "VariableDeclarator" && node.init?.type === "CallExpression" &&
  node.init.callee.type === "Identifier" && /^(__toESM|require_)/.test(node.init.callee.name);

/** Reports whether a node is a class or a function, also one that the bundler has in a variable. */
function isDeclared(node: AnyNode): boolean {
  if (node.type === "ClassDeclaration" || node.type === "FunctionDeclaration") return true;
  return node.type === "VariableDeclarator" && node.init?.type === "ClassExpression";
}

/** Returns the offset behind "use strict" and the like, which count only as a function's first statements. */
function afterDirectives(statements: readonly AnyNode[], bodyStart: number): number {
  let at = bodyStart + 1;
  for (const statement of statements) {
    if (statement.type !== "ExpressionStatement" || statement.directive === undefined) break;
    at = statement.end;
  }
  return at;
}

/** Returns the variables that a target of assignments names. */
function namesIn(target: AnyNode): AnyNode[] {
  switch (target.type) {
    case "Identifier":
      return [target];
    default:
      return partsOf(target).flatMap(namesIn);
  }
}

/** Returns the members that a target of assignments names. */
function membersIn(target: AnyNode): Extract<AnyNode, { type: "MemberExpression" }>[] {
  return target.type === "MemberExpression" ? [target] : partsOf(target).flatMap(membersIn);
}

/** Returns the parts that a pattern is made of. */
function partsOf(pattern: AnyNode): AnyNode[] {
  switch (pattern.type) {
    case "ObjectPattern":
      return pattern.properties.map((each) => each.type === "Property" ? each.value : each.argument);
    case "ArrayPattern":
      return pattern.elements.flatMap((each) => each === null ? [] : [each]);
    case "RestElement":
      return [pattern.argument];
    case "AssignmentPattern":
      return [pattern.left];
    default:
      return [];
  }
}

function childrenOf(node: AnyNode): AnyNode[] {
  const children: AnyNode[] = [];
  for (const value of Object.values(node) as unknown[]) {
    for (const each of Array.isArray(value) ? value as unknown[] : [value]) {
      if (typeof each === "object" && each !== null && typeof (each as AnyNode).type === "string") {
        children.push(each as AnyNode);
      }
    }
  }
  return children;
}

/**
 * Returns wraps as cuts in the order in which they stand: at one place what ends there comes first, the inner before
 * the outer.
 */
function insertions(wraps: readonly Wrap[]): Cut[] {
  const all = wraps.flatMap((wrap) => [
    ...(wrap.after === "" ? [] : [{ at: wrap.end, isEnd: true, wrap, text: wrap.after }]),
    { at: wrap.start, isEnd: false, wrap, text: wrap.before },
  ]);
  const isAlone = ({ start, end }: Wrap) => Number(start === end);
  all.sort((a, b) =>
    a.at - b.at || Number(b.isEnd) - Number(a.isEnd) || isAlone(b.wrap) - isAlone(a.wrap) ||
    (a.isEnd ? b.wrap.start - a.wrap.start : b.wrap.end - a.wrap.end)
  );
  return all.map(({ at, text }) => ({ start: at, end: at, text }));
}
