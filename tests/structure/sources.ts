/**
 * The project's own TypeScript, as text, and the imports between its files. Read with patterns, not a compiler:
 * the formatter guarantees that an import begins its line, and that a comment line begins with its mark.
 */
import { walk } from "./walk.ts";

/** One source file. */
export interface Source {
  /** From the root of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** The text without comment lines and trailing comments. */
  readonly code: string;
  readonly imports: readonly Import[];
}

/** One import, of a file or of a package. */
export interface Import {
  /** As written. */
  readonly specifier: string;
  /** The file of ours that it names, or null. */
  readonly path: string | null;
}

/** Top-level statements; `[^;]` keeps a match within one statement. */
const STATEMENT = /^(?:import|export)\s(?:[^;"'`]*?\sfrom\s+)?"([^"]+)"/gm;
const EXPRESSION = /\bimport\(\s*"([^"]+)"\s*\)/g;
const FOLDERS = ["store", "placement", "functions", "runtime", "examples", "tests"];

/** All TypeScript files of the project, by path. */
export async function readSources(root: URL): Promise<Map<string, Source>> {
  const sources = new Map<string, Source>();
  for (const folder of FOLDERS) {
    for await (const path of walk(root, folder)) {
      if (!path.endsWith(".ts") && !path.endsWith(".tsx")) continue;
      sources.set(path, sourceOf(path, await Deno.readTextFile(new URL(path, root))));
    }
  }
  return sources;
}

/** A file's code and imports. */
export function sourceOf(path: string, text: string): Source {
  const code = text.split("\n")
    .filter((line) => !/^\s*(?:\*|\/\*|\/\/)/.test(line))
    .map((line) => line.replace(/\s\/\/ .*$/, ""))
    .join("\n");
  const specifiers = [...code.matchAll(STATEMENT), ...code.matchAll(EXPRESSION)].map((match) =>
    match[1] ?? ""
  );
  return {
    path,
    text,
    code,
    imports: specifiers.map((specifier) => ({ specifier, path: fileOf(path, specifier) })),
  };
}

function fileOf(importer: string, specifier: string): string | null {
  if (specifier === "sojourn") return "functions/mod.ts";
  if (specifier === "sojourn/client") return "functions/client/mod.ts";
  if (!specifier.startsWith(".")) return null;
  return new URL(specifier, `file:///${importer}`).pathname.slice(1);
}
