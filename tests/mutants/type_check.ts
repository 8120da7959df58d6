/**
 * Whether a mutant has types: what the compiler refuses never reaches a test, and needs none.
 *
 * TC1  Only the mutant's own file is looked at, and what it says beside what it said unchanged counts. Packages are not
 *      resolved: what comes from one has any type.
 */
import ts from "typescript";

const LIBRARY = "/deno.d.ts";
/** The language's own, as the compiler's package has them beside it. */
const LANGUAGE = new URL("lib.esnext.d.ts", import.meta.resolve("typescript")).pathname;

/** Types of the files of a tree. */
export class TypeCheck {
  readonly #root: string;
  readonly #service: ts.LanguageService;
  /** Texts of files that differ from the disk, with the number of the change. */
  readonly #changed = new Map<string, { readonly text: string; readonly version: number }>();
  readonly #before = new Map<string, ReadonlyMap<string, number>>();
  readonly #texts = new Map<string, string | undefined>();
  #version = 0;

  /**
   * @param root of the tree, with a slash at its end
   * @param files from the root
   * @param library what `deno types` prints
   */
  constructor(root: string, files: readonly string[], library: string) {
    this.#root = root;
    this.#texts.set(LIBRARY, library);
    const names = [LIBRARY, ...files.map((file) => root + file)];
    this.#service = ts.createLanguageService({
      getCompilationSettings: () => OPTIONS,
      getScriptFileNames: () => names,
      getScriptVersion: (name) => `${this.#changed.get(name)?.version ?? 0}`,
      getScriptSnapshot: (name) => {
        const text = this.#read(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => root,
      getDefaultLibFileName: () => LANGUAGE,
      fileExists: (name) => this.#read(name) !== undefined,
      readFile: (name) => this.#read(name),
      resolveModuleNameLiterals: (literals, from) =>
        literals.map(({ text }) => ({ resolvedModule: this.#resolve(text, from) })),
    }, ts.createDocumentRegistry());
  }

  /** What the compiler says of a file with this text that it does not say of the file as it is. */
  newErrors(file: string, text: string): string[] {
    const name = this.#root + file;
    const before = this.#before.get(name) ?? counted(this.#errors(name));
    this.#before.set(name, before);
    this.#changed.set(name, { text, version: ++this.#version });
    const after = counted(this.#errors(name));
    this.#changed.set(name, { text: this.#texts.get(name) ?? "", version: ++this.#version });
    return [...after].filter(([message, count]) => count > (before.get(message) ?? 0)).map(([message]) =>
      message
    );
  }

  #errors(name: string): string[] {
    const found = [
      ...this.#service.getSyntacticDiagnostics(name),
      ...this.#service.getSemanticDiagnostics(name),
    ];
    return found.map(({ code, messageText }) =>
      `TS${code}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`
    );
  }

  #read(name: string): string | undefined {
    const changed = this.#changed.get(name);
    if (changed !== undefined) return changed.text;
    if (!this.#texts.has(name)) this.#texts.set(name, readOrNothing(name));
    return this.#texts.get(name);
  }

  #resolve(specifier: string, from: string): ts.ResolvedModuleFull | undefined {
    const path = specifier === "sojourn"
      ? `${this.#root}functions/mod.ts`
      : specifier.startsWith(".")
      ? new URL(specifier, `file://${from}`).pathname
      : null;
    if (path === null || this.#read(path) === undefined) return undefined;
    return { resolvedFileName: path, extension: ts.Extension.Ts, isExternalLibraryImport: false };
  }
}

/** Those of deno.json, and of Deno itself. */
const OPTIONS: ts.CompilerOptions = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noImplicitOverride: true,
  verbatimModuleSyntax: true,
  noFallthroughCasesInSwitch: true,
  allowImportingTsExtensions: true,
  isolatedModules: true,
  noEmit: true,
  lib: ["lib.esnext.d.ts"],
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  useDefineForClassFields: true,
  skipLibCheck: true,
  types: [],
};

function readOrNothing(name: string): string | undefined {
  try {
    return Deno.readTextFileSync(name);
  } catch {
    return undefined;
  }
}

function counted(messages: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const message of messages) counts.set(message, (counts.get(message) ?? 0) + 1);
  return counts;
}
