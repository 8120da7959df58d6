/**
 * `deno bundle` as a function: one ES module out of an entry and all that it imports.
 *
 * Deno's own bundler resolves what Deno resolves (`npm:` specifiers, import maps, text, JSON and WASM imports)
 * from Deno's cache, without a `node_modules` folder; a bundler of our own would have to rebuild that.
 */

import { dirname } from "node:path";
import { portableMap, portableName } from "./portable_map.ts";
import { withTempFolder } from "./temp_folder.ts";
import { type Locate, locator } from "./source_places.ts";

/** The options of a run of the bundler. */
export interface BundleRun {
  /** Path of the entry module. */
  readonly entry: string;
  /** Path of the configuration whose import map applies. */
  readonly config: string;
  readonly minify?: boolean;
  /** Platform that the bundle is to run on; an isolate by default. */
  readonly platform?: "deno" | "browser";
}

/** The outcome of a run of the bundler. */
export type BundleOutcome =
  | {
    readonly kind: "bundled";
    readonly code: Uint8Array<ArrayBuffer>;
    readonly locate: Locate;
    /** The source map, as it is kept with the bundle. */
    readonly map: Uint8Array<ArrayBuffer>;
    /** The same map as the bundler wrote it. */
    readonly sourceMap: string;
    /** Returns the name of a module that the bundle's comments name, the same wherever it was bundled. */
    readonly moduleNamed: (path: string) => string;
    /** Returns both forms of another map of the same sources. */
    readonly placed: (sourceMap: string) => Placed;
  }
  | { readonly kind: "failed"; readonly message: string };

/**
 * Milliseconds after which a run is given up. A bundle takes a second or two; once in hundreds of runs the bundler
 * stood still for good.
 */
const LIMIT_MS = 40_000;
const TRIES = 2;
/**
 * Message of the bundler where another process puts Deno's bundler into the cache for the first time, at the same
 * moment.
 */
const BEING_PUT = "failed to copy esbuild binary";
const BEING_PUT_MS = 1_000;

/** A source map in the form that tells places, and in the form that is kept. */
export interface Placed {
  readonly locate: Locate;
  readonly map: Uint8Array<ArrayBuffer>;
}

/** Bundles a module. An error that the bundler finds comes back as a message. */
export async function runDenoBundle(run: BundleRun): Promise<BundleOutcome> {
  for (let tried = 1;; tried++) {
    const late = AbortSignal.timeout(LIMIT_MS);
    const outcome = await runOnce(run, late);
    if (outcome.kind === "bundled") return outcome;
    if (outcome.message.includes(BEING_PUT) && tried < TRIES) {
      await new Promise((resolve) => setTimeout(resolve, BEING_PUT_MS));
      continue;
    }
    if (!late.aborted) return outcome;
    if (tried === TRIES) {
      return {
        kind: "failed",
        message: `the bundler gave no answer in ${LIMIT_MS / 1000} s, ${TRIES} times`,
      };
    }
  }
}

function runOnce(run: BundleRun, signal: AbortSignal): Promise<BundleOutcome> {
  return withTempFolder("sojourn-bundle-", async (folder) => {
    const output = `${folder}/bundle.js`;
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      signal,
      args: [
        "bundle",
        "--quiet",
        "--no-lock",
        "--node-modules-dir=none",
        `--platform=${run.platform ?? "deno"}`,
        "--format=esm",
        `--config=${run.config}`,
        ...(run.minify ? ["--minify"] : ["--keep-names"]),
        "--sourcemap=external",
        `--output=${output}`,
        run.entry,
      ],
      // The bundle names its modules relative to here: one app has one bundle, wherever it is deployed from.
      cwd: dirname(run.entry),
      env: { NO_COLOR: "1" },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).output();
    if (!success) return { kind: "failed", message: readableMessage(new TextDecoder().decode(stderr)) };
    const sourceMap = await Deno.readTextFile(`${output}.map`);
    const placed = (text: string) => ({
      locate: locator(text, folder),
      map: portableMap(text, folder, dirname(run.entry)),
    });
    const here = dirname(run.entry);
    const moduleNamed = (path: string) => portableName(path, here, here);
    const code = await Deno.readFile(output);
    return { kind: "bundled", code, ...placed(sourceMap), sourceMap, moduleNamed, placed };
  });
}

/** Returns the bundler's message without the parts that say nothing to the author of a module. */
function readableMessage(stderr: string): string {
  const text = stderr.replace(/\nStack backtrace:[\s\S]*$/, "").replace(/^error: bundling failed\s*$/m, "");
  return text.replace(/^error: /, "").trim();
}
