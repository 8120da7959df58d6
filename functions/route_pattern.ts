/**
 * The patterns of routes: the pathname syntax of the URLPattern standard, matched in a time that grows with the path
 * and not with its square or worse. URLPattern itself runs patterns as backtracking expressions: one that an app
 * declares could hold its site for as long as it likes.
 *
 * RP1  A pattern matches the paths that URLPattern matches (part 1.6 to 2.2 of the standard), by an automaton (RE2).
 * RP2  A group with an expression of its own, `:id(\\d+)`, is refused: an automaton of a few characters can be large. A
 *      pattern that was deployed before this was known is matched where its automaton is small, and never where it is
 *      not.
 * RP4  All patterns of an app have STATES_MAX states together, beside those of the text that each begins with: that
 *      many states are looked at for each character of a path, at worst.
 * RP3  A path of more than {@link MATCHED_CHARS_MAX} characters is matched by no automaton: the caller refuses it.
 */
import { RE2JS } from "re2js";

/**
 * Characters of a path: twice what browsers' tables of contents, paths of packages and signed links have; then a few µs
 * a pattern.
 */
export const MATCHED_CHARS_MAX = 4096;
/**
 * Routes of an app that an automaton has to look at; a path that is text is compared as text, and there may be any
 * number of those.
 */
export const PATTERNS_MAX = 64;
/**
 * States of an app's patterns: those of 64 patterns such as `/users/:id/posts/:post`; a path that touches them all
 * takes two tenths of a second.
 */
export const STATES_MAX = 1_024;
/** Characters of a pattern; its automaton has as many states, or few more. */
export const PATTERN_CHARS_MAX = 1024;
/** States of the automaton of an expression that was deployed before: ten times what `\\d+` and `a|b|c` have. */
const EXPRESSION_STATES_MAX = 300;
/** Characters of a path on which such an expression is tried, once it is known to be small. */
const EXPRESSION_CHARS_MAX = 512;

/** Part of a pattern, as the standard has it. */
interface Part {
  readonly prefix: string;
  /** Regular expression of the part; null: a text that is `prefix`. */
  readonly expression: string | null;
  readonly suffix: string;
  /** Modifier: `?`, `*`, `+` or "". */
  readonly modifier: string;
}

/** Pattern that paths are matched with. */
export interface RoutePattern {
  /** Text that every path begins with which the pattern matches. */
  readonly lead: string;
  /** Number of states of its automaton, beside those of `lead` (RP4). */
  readonly states: number;
  /** True where it has a group with an expression of its own (RP2). */
  readonly hasExpression: boolean;
  /** Reports whether it matches a path as `URL.pathname` has it. */
  matches(path: string): boolean;
}

const SEGMENT = "[^/]+?", ALL = ".*";
const NAME_START = /[$_\p{ID_Start}]/u, NAME_PART = /[$_\u200c\u200d\p{ID_Continue}]/u;

/**
 * Reads a pattern.
 *
 * @throws TypeError for a text that is no pattern, RE2JSException for an expression that no automaton matches.
 */
export function routePattern(text: string): RoutePattern {
  // The standard's own reader decides what is a pattern, and writes it in one form.
  const { pathname, hasRegExpGroups } = new URLPattern({ pathname: text });
  const parts = new Parser(pathname).parts();
  const [first] = parts;
  const lead = first?.expression === null && first.modifier === "" ? first.prefix : "";
  const automaton = RE2JS.compile(`^(?:${parts.map(expressionOf).join("")})$`, RE2JS.DOTALL);
  const states = automaton.programSize() - lead.length;
  if (!hasRegExpGroups) {
    const matches = (path: string) => path.startsWith(lead) && automaton.test(path);
    return { lead, states, hasExpression: false, matches };
  }
  const isSmall = automaton.programSize() <= EXPRESSION_STATES_MAX;
  return {
    lead,
    states,
    hasExpression: true,
    matches: (path) =>
      isSmall && path.length <= EXPRESSION_CHARS_MAX && path.startsWith(lead) && automaton.test(path),
  };
}

/** Returns a path in the one form that URLs have it in: escapes, `.` and `..` as the standard has them. */
export function canonicalPath(path: string): string {
  const url = new URL("http://localhost");
  url.pathname = path;
  return url.pathname;
}

/**
 * Pattern of a route that is a path, or the beginning of one and a final `*`: no character that patterns or URLs give a
 * meaning.
 */
const PLAIN_ROUTE = /^(?:\/(?!\.)[A-Za-z0-9_~.-]*)+\*?$/;

/** Reports whether a route's paths can be compared as text. */
export const isPlainRoute = (route: string): boolean => PLAIN_ROUTE.test(route);

/** Returns why a route's pattern can't be taken behind others of the same app; null where it can. */
export function routeProblem(text: string, all: RoutePatterns): string | null {
  if (!text.startsWith("/")) return "it does not begin with /";
  if (text.length > PATTERN_CHARS_MAX) return `it has more than ${PATTERN_CHARS_MAX} characters`;
  try {
    if (!all.read(text).hasExpression) return null;
    return "it has a group with an expression, such as (\\d+): leave that out, and let the function look";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Reader of the patterns of one app, as long as there is room for them (RP4). */
export class RoutePatterns {
  #left = STATES_MAX;

  /**
   * Reads a pattern.
   *
   * @throws TypeError for one that there is no room for, and for all after it; as {@link routePattern}
   */
  read(text: string): RoutePattern {
    const pattern = this.#left === 0 ? null : routePattern(text);
    if (pattern === null || pattern.states > this.#left) {
      this.#left = 0;
      throw new TypeError(
        "it and those before it are too long together for paths to be compared with them in time",
      );
    }
    this.#left -= pattern.states;
    return pattern;
  }
}

/** Returns the expression for a part: the standard's "generate a regular expression and name list", without names. */
function expressionOf({ prefix, expression, suffix, modifier }: Part): string {
  const [before, after] = [quoted(prefix), quoted(suffix)];
  if (expression === null) return modifier === "" ? before : `(?:${before})${modifier}`;
  if (prefix === "" && suffix === "") return `(?:${expression})${modifier}`;
  if (modifier === "" || modifier === "?") return `(?:${before}(?:${expression})${after})${modifier}`;
  const again = `(?:${after}${before}(?:${expression}))*`;
  return `(?:${before}(?:${expression})${again}${after})${modifier === "*" ? "?" : ""}`;
}

const quoted = (text: string): string => text.replace(/[^A-Za-z0-9/_~%-]/g, (unit) => RE2JS.quote(unit));

/** Parser of a pattern: the standard's "parse a pattern string", of a text that is a pattern. */
class Parser {
  readonly #text: readonly string[];
  readonly #parts: Part[] = [];
  #at = 0;
  /** Text that belongs to no part yet. */
  #fixed = "";

  constructor(text: string) {
    this.#text = [...text];
  }

  parts(): readonly Part[] {
    while (this.#at < this.#text.length) this.#next();
    this.#flush();
    return this.#parts;
  }

  #next(): void {
    const before = this.#at;
    const character = this.#character();
    const expression = this.#expression();
    if (expression !== null) {
      // A slash before a group belongs to it: `/:id?` matches with it or without.
      const prefix = character === "/" ? "/" : "";
      if (prefix === "") this.#fixed += character ?? "";
      this.#flush();
      this.#parts.push({ prefix, expression, suffix: "", modifier: this.#modifier() });
    } else if (character !== null) this.#fixed += character;
    else this.#group();
    if (this.#at === before) {
      throw new TypeError(`the pattern ${this.#text.join("")} can't be read at ${before}`);
    }
  }

  /** Reads a group, `{…}`. */
  #group(): void {
    this.#flush();
    this.#take("{");
    const prefix = this.#characters();
    const expression = this.#expression();
    const suffix = this.#characters();
    this.#take("}");
    this.#parts.push({ prefix, expression, suffix, modifier: this.#modifier() });
  }

  #flush(): void {
    if (this.#fixed !== "") {
      this.#parts.push({ prefix: this.#fixed, expression: null, suffix: "", modifier: "" });
    }
    this.#fixed = "";
  }

  #characters(): string {
    let text = "";
    for (let next = this.#character(); next !== null; next = this.#character()) text += next;
    return text;
  }

  /** Reads a character that stands for itself; null where something else comes. */
  #character(): string | null {
    const next = this.#text[this.#at];
    if (next === undefined || "{}()*+?".includes(next)) return null;
    if (next === ":" && NAME_START.test(this.#text[this.#at + 1] ?? "")) return null;
    this.#at++;
    return next === "\\" ? this.#text[this.#at++] ?? "" : next;
  }

  /** Reads `:name`, `:name(…)`, `(…)` or `*`; null where something else comes. */
  #expression(): string | null {
    if (this.#isNext(":")) {
      this.#at += 2;
      while (NAME_PART.test(this.#text[this.#at] ?? "")) this.#at++;
      return this.#isNext("(") ? this.#own() : SEGMENT;
    }
    if (this.#isNext("(")) return this.#own();
    if (!this.#isNext("*")) return null;
    this.#at++;
    return ALL;
  }

  /** Reads `(…)`: within it a group is `(?:…)`. */
  #own(): string {
    const from = this.#at;
    let depth = 0;
    do {
      const next = this.#text[this.#at++];
      if (next === "\\") this.#at++;
      else if (next === "(") depth++;
      else if (next === ")") depth--;
      else if (next === undefined) {
        throw new TypeError(`the pattern ${this.#text.join("")} ends within a group`);
      }
    } while (depth > 0);
    return this.#text.slice(from + 1, this.#at - 1).join("");
  }

  #modifier(): string {
    const next = this.#text[this.#at] ?? "";
    if (next === "" || !"?*+".includes(next)) return "";
    this.#at++;
    return next;
  }

  #isNext(character: string): boolean {
    return this.#text[this.#at] === character;
  }

  #take(character: string): void {
    if (!this.#isNext(character)) {
      throw new TypeError(`the pattern ${this.#text.join("")} has no ${character} at ${this.#at}`);
    }
    this.#at++;
  }
}
