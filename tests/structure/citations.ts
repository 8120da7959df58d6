/**
 * Who cites the numbered rules of production code: asserts, and errors that are thrown, in their texts; tests in names
 * and comments. Read with patterns, like sources.ts.
 *
 * CI1  Many files have one label. It is that of the file named before it (`hosted.ts H5`), there or anywhere else in that
 *      test; else the test file's own; else that of the first of these which has it: the file that the test mirrors,
 *      files that it imports, the folder that it mirrors, what is below that, files behind a `mod.ts` that it imports,
 *      all. Where several of one kind have it, the one in the mirrored folder; else nobody is cited, and the test
 *      has to name one.
 * CI2  A label that a page of docs/protocol has, and a file repeats, is cited by who names the page with it
 *      (`homes.md H5`, `PROTOCOL I9`), where the file or its folder's `mod.ts` names that page.
 * CI3  A text of a test counts where it is said to a reader: the label stands in brackets, or begins it; or is an
 *      assert's whole message, or what a broken variant names as its `rule`.
 */
import { definitions } from "../mutants/rules.ts";
import type { Source } from "./sources.ts";

const ID = /\b([A-Z]{1,3})(\d{1,2}[a-z]?)\b/g;
const LABEL = /^[A-Z]{1,3}\d{1,2}[a-z]?$/;
/** `W3 to W5`, `C1–C4`. */
const SPAN = /\b([A-Z]{1,3})(\d{1,2})\s?(?:–|-|to)\s?([A-Z]{1,3})(\d{1,2})\b/g;
/** What may stand between a file's name and the last of its labels. */
const NAMED = /([\w/]+\.(?:ts|md))(?:,|:)? (?:[A-Z]{1,3}\d+[a-z]?(?:, | and | to |–))*$/;
const STRING = /"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;
/** A call that only a broken rule makes, up to its text. */
const BROKEN = /(?:\b(?:assert|fail|invariant|must)[\w.]*\(|\bnew [A-Z]\w*\()[^;{}]*$/;

/** Rules, by `path LABEL`, and whether anybody cites each. */
export interface Rules {
  readonly all: readonly string[];
  readonly uncited: readonly string[];
  /** Citations as `test file: LABEL` that several files may be meant by, so that they count for none. */
  readonly ambiguous: readonly string[];
  /** Of each rule, who cites it. */
  readonly citedBy: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Finds the rules of a project, and who cites them; `pages` are names and texts of docs/protocol. */
export function citationsOf(
  sources: ReadonlyMap<string, Source>,
  pages: ReadonlyMap<string, string>,
): Rules {
  return new Citations(sources, pages).found();
}

/** Reports whether a file is production code. */
export const isProduction = (path: string): boolean =>
  /^(?:store|functions|runtime)\//.test(path) && !path.endsWith("_test.ts");

class Citations {
  readonly #labels = new Map<string, ReadonlySet<string>>();
  readonly #byName = new Map<string, string[]>();
  readonly #byFolder = new Map<string, string[]>();
  readonly #citedBy = new Map<string, Set<string>>();
  readonly #ambiguous = new Set<string>();

  constructor(
    readonly sources: ReadonlyMap<string, Source>,
    readonly pages: ReadonlyMap<string, string>,
  ) {
    for (const { path, text } of sources.values()) {
      this.#labels.set(path, new Set(labelsOf(text)));
      const name = path.slice(path.lastIndexOf("/") + 1);
      this.#byName.set(name, [...this.#byName.get(name) ?? [], path]);
      const folder = folderOf(path);
      this.#byFolder.set(folder, [...this.#byFolder.get(folder) ?? [], path]);
    }
  }

  found(): Rules {
    for (const source of this.sources.values()) {
      if (isProduction(source.path)) this.#readProduction(source);
      else if (/^tests\/|_test\.tsx?$/.test(source.path)) this.#readTest(source);
    }
    const all = [...this.#labels].filter(([path]) => isProduction(path))
      .flatMap(([path, labels]) => [...labels].map((label) => `${path} ${label}`)).sort();
    return {
      all,
      uncited: all.filter((rule) => !this.#citedBy.has(rule)),
      ambiguous: [...this.#ambiguous].sort(),
      citedBy: this.#citedBy,
    };
  }

  #readProduction(source: Source): void {
    for (const match of source.code.matchAll(STRING)) {
      if (!isBroken(source.code, match.index)) continue;
      for (const { label, named } of citedIn(match[0].slice(1, -1))) {
        if (named === null && this.#has(source.path, label)) this.#count(source.path, label, source.path);
        else if (named !== null) this.#countNamed(source.path, named, label);
      }
    }
  }

  #readTest(source: Source): void {
    const texts = [
      ...commentsOf(source.text),
      ...[...source.code.matchAll(STRING)].flatMap((match) => {
        const said = match[0].slice(1, -1);
        const isWhole = LABEL.test(said) &&
          /\bassert\b[^;]*, $/.test(source.code.slice(Math.max(0, match.index - 400), match.index));
        return isSaid(said) || isWhole || /\brule: $/.test(source.code.slice(0, match.index).slice(-9))
          ? said
          : [];
      }),
    ];
    const cited = texts.flatMap((text) => [...citedIn(text)]);
    const elsewhere = new Set(cited.flatMap(({ label, named }) => named === null ? [] : [label]));
    for (const { label, named } of cited) {
      if (named !== null) this.#countNamed(source.path, named, label);
      else if (!this.#has(source.path, label) && !elsewhere.has(label)) this.#resolve(source, label);
    }
  }

  /** CI1 */
  #resolve({ path, imports }: Source, label: string): void {
    const mirrored = path.replace(/^tests\//, "").replace(/_test\.tsx?$/, ".ts");
    const mirroredFolder = folderOf(mirrored);
    const imported = imports.flatMap((each) => each.path ?? []);
    const passedOn = imported.filter((file) => file.endsWith("/mod.ts"))
      .flatMap((file) => this.sources.get(file)?.imports.flatMap((each) => each.path ?? []) ?? []);
    const kinds = [
      () => [mirrored],
      () => imported,
      () => this.#byFolder.get(mirroredFolder) ?? [],
      () => [...this.#labels.keys()].filter((file) => file.startsWith(`${mirroredFolder}/`)),
      () => passedOn,
      () => [...this.#labels.keys()],
    ];
    for (const [n, kind] of kinds.entries()) {
      const having = [...new Set(kind())].filter((file) => this.#has(file, label));
      if (having.length === 0) continue;
      const near = having.filter((file) => folderOf(file) === mirroredFolder);
      const [only = "", another] = having.length > 1 && near.length > 0 ? near : having;
      if (another === undefined) this.#count(only, label, path);
      else if (n < kinds.length - 1) this.#ambiguous.add(`${path}: ${label}: ${having.join(", ")}`);
      return;
    }
  }

  #countNamed(from: string, name: string, label: string): void {
    if (name.endsWith(".md")) return this.#countPage(from, name, label);
    const beside = `${folderOf(from)}/${name}`;
    const all = (this.#byName.get(name.slice(name.lastIndexOf("/") + 1)) ?? [])
      .filter((path) => (path === name || path.endsWith(`/${name}`)) && this.#has(path, label));
    const imports = new Set(this.sources.get(from)?.imports.map((each) => each.path));
    const mirroredFolder = folderOf(from.replace(/^tests\//, ""));
    const found = all.length < 2 ? all[0] : all.find((path) => path === beside) ??
      all.find((path) => imports.has(path)) ?? all.find((path) => folderOf(path) === mirroredFolder);
    if (found !== undefined) this.#count(found, label, from);
    else if (all.length > 1) this.#ambiguous.add(`${from}: ${label}: ${all.join(", ")}`);
  }

  /** CI2 */
  #countPage(from: string, name: string, label: string): void {
    const page = name.slice(name.lastIndexOf("/") + 1);
    if (!this.pages.get(page)?.includes(`**${label}`)) return;
    for (const path of this.#labels.keys()) {
      if (!isProduction(path) || !this.#has(path, label)) continue;
      const speaks = [path, `${folderOf(path)}/mod.ts`].some((file) =>
        this.sources.get(file)?.text.includes(page) ?? false
      );
      if (speaks) this.#count(path, label, from);
    }
  }

  #has(path: string, label: string): boolean {
    return this.#labels.get(path)?.has(label) ?? false;
  }

  #count(path: string, label: string, by: string): void {
    if (!isProduction(path)) return;
    const rule = `${path} ${label}`;
    this.#citedBy.set(rule, (this.#citedBy.get(rule) ?? new Set()).add(by));
  }
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** Labels that a file's doc comments define. */
export function labelsOf(text: string): string[] {
  return [...text.matchAll(/^[ \t]*\/\*\*[\s\S]*?\*\//gm)].flatMap(([comment]) =>
    definitions(comment).map(({ id }) => id)
  );
}

/** Texts of comments, each as one line. */
function commentsOf(text: string): string[] {
  const found: string[] = [];
  let open: string[] = [];
  for (const line of [...text.split("\n"), ""]) {
    const whole = /^\s*(?:\/\*\*?|\*\/?|\/\/)\s?(.*?)(?:\*\/)?\s*$/.exec(line)?.[1];
    if (whole !== undefined) {
      open.push(whole.trim());
      continue;
    }
    if (open.length > 0) found.push(open.join(" "));
    open = [];
    const trailing = /\s\/\/ (.*)$/.exec(line)?.[1];
    if (trailing !== undefined) found.push(trailing);
  }
  return found;
}

/** Whether a text stands in a call that says what is wrong. */
const isBroken = (code: string, at: number): boolean => BROKEN.test(code.slice(Math.max(0, at - 400), at));

/** CI3 */
const isSaid = (text: string): boolean =>
  /\([^()]*\b[A-Z]{1,3}\d{1,2}[a-z]?\b[^()]*\)/.test(text) ||
  /^[A-Z]{1,3}\d{1,2}[a-z]?[:,] /.test(text) ||
  NAMED.test(text.replace(/[A-Z]{1,3}\d{1,2}[a-z]?$/, ""));

interface Cited {
  readonly label: string;
  /** The file or page that is named with it. */
  readonly named: string | null;
}

function* citedIn(text: string): Generator<Cited> {
  const at = (index: number, label: string): Cited => {
    const before = text.slice(0, index);
    const named = /PROTOCOL(?:'s)? $/.test(before) ? "replication.md" : NAMED.exec(before)?.[1] ?? null;
    return { label, named };
  };
  for (const { index, 1: lead = "", 2: from = "", 3: end = "", 4: to = "" } of text.matchAll(SPAN)) {
    if (lead !== end) continue;
    for (let n = Number(from) + 1; n < Number(to); n++) yield at(index, `${lead}${n}`);
  }
  for (const match of text.matchAll(ID)) yield at(match.index, match[0]);
}
