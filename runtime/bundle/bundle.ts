/**
 * An app's module and all that it imports, as one ES module that an isolate can run.
 *
 * Stages: configuration → `deno bundle` → CommonJS loader and paths replaced, and, in an app with stateful sessions,
 * the code that changes the state of modules made to ask first (module_state.ts) → size and imports checked.
 */
import type { Comment } from "acorn";
import { appConfig } from "./app_config.ts";
import { type BundleOutcome, runDenoBundle } from "./deno_bundle.ts";
import { moduleComments, splice } from "./cuts.ts";
import { type BundleIssue, checkImports, forbiddenImports, parseModule } from "./imports.ts";
import { withTempFolder } from "./temp_folder.ts";
import { processCuts } from "./node_process.ts";
import { privateSessionFields } from "./session_fields.ts";
import { moduleStateCuts, type Sources } from "./module_state.ts";
import { shiftedMap, sourcesOf } from "./shifted_map.ts";
import { sharedBindings } from "./shared_bindings.ts";
import { absentRequires, requireCuts } from "./node_require.ts";
import type { Locate } from "./source_places.ts";

/** Bytes of a bundle: the limit of docs/http.md; a site holds every live version's bundle in its replica. */
export const BUNDLE_BYTES_MAX = 10 * 1024 * 1024;

/** The outcome of bundling an app. */
export type BundleResult =
  | {
    readonly kind: "bundled";
    readonly code: Uint8Array<ArrayBuffer>;
    /** Tells places in the bundle (of a stack, of a message) as places in its modules. */
    readonly locate: Locate;
    /** Messages about what may go wrong with the bundle, each with its place in the modules. */
    readonly warnings: readonly string[];
    /** The source map with portable names, compressed (portable_map.ts). */
    readonly map: Uint8Array<ArrayBuffer>;
  }
  /** `message` names file, line and column where there is a place. */
  | { readonly kind: "failed"; readonly message: string };

/**
 * Bundles the app whose entry module is at a path.
 *
 * `npm:` specifiers, import maps, text, JSON and WASM imports are resolved as Deno does.
 */
export async function bundleApp(entry: string): Promise<BundleResult> {
  const found = await Deno.stat(entry).catch(() => undefined);
  if (!found?.isFile) return { kind: "failed", message: `there is no module at ${entry}` };
  try {
    return await withTempFolder("sojourn-config-", async (folder) => {
      const config = await appConfig(entry);
      const path = config.kind === "path" ? config.value : `${folder}/deno.json`;
      if (config.kind === "text") await Deno.writeTextFile(path, config.value);
      const outcome = await runDenoBundle({ entry, config: path });
      return outcome.kind === "failed" ? outcome : finish(outcome);
    });
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

function finish(outcome: Extract<BundleOutcome, { kind: "bundled" }>): BundleResult {
  const { locate } = outcome;
  const bundled = new TextDecoder().decode(outcome.code);
  const comments: Comment[] = [];
  const program = parseModule(bundled, comments);
  if ("message" in program) return { kind: "failed", message: locate(describe(program)) };
  const loader = [...requireCuts(program), ...processCuts(program)];
  let read: Sources | undefined;
  const sources = (): Sources => read ??= sourcesOf(outcome, bundled, comments);
  const asking = moduleStateCuts(bundled, program, sources);
  const cuts = [...asking, ...loader, ...moduleComments(comments, bundled)];
  const code = splice(bundled, cuts);
  // Parsing a large bundle takes long: once is enough where no import was replaced.
  const [issue] = [
    ...loader.length === 0 ? forbiddenImports(program, bundled) : checkImports(code),
    ...privateSessionFields(program, bundled),
  ];
  if (issue !== undefined) return { kind: "failed", message: locate(describe(issue)) };
  const out = new TextEncoder().encode(code);
  if (out.length <= BUNDLE_BYTES_MAX) {
    const originAt = (offset: number): string => {
      const origin = sources().originAt(offset);
      if (origin.kind === "platform") return "a module";
      return origin.kind === "package" ? `the package ${origin.name}` : origin.name;
    };
    const told = [...sharedBindings(program, bundled), ...absentRequires(program, bundled, originAt)];
    const warnings = told.map((issue) => locate(describe(issue)));
    const shifted = asking.length === 0
      ? outcome
      : outcome.placed(shiftedMap(outcome.sourceMap, bundled, cuts));
    return { kind: "bundled", code: out, locate: shifted.locate, warnings, map: shifted.map };
  }
  return { kind: "failed", message: `the bundle has ${out.length} bytes; ${BUNDLE_BYTES_MAX} are accepted` };
}

const describe = (issue: BundleIssue): string =>
  issue.line === undefined ? issue.message : `${issue.message} (bundle:${issue.line}:${issue.column})`;
