/**
 * The configuration that an app is bundled with: its own import map (its nearest deno.json), over what every app
 * finds without one (`hono`, `zod`), with `sojourn` always the installed copy, so that apps outside of the
 * checkout work.
 */
import { dirname, join } from "node:path";
import { z } from "zod";
import { fromFileUrl, toFileUrl } from "./file_url.ts";

const INSTALLED = new URL("../../deno.json", import.meta.url);
const CONFIG_NAMES = ["deno.json", "deno.jsonc"];

const importMap = z.looseObject({
  imports: z.record(z.string(), z.string()).optional(),
  scopes: z.record(z.string(), z.record(z.string(), z.string())).optional(),
  compilerOptions: z.record(z.string(), z.unknown()).optional(),
});

/** A configuration for one app. */
export interface AppConfig {
  /** What to write into a configuration file of its own, or the path of one that does as it is. */
  readonly kind: "path" | "text";
  readonly value: string;
}

/**
 * The configuration for the app with this entry module.
 *
 * @throws Error for a deno.json that is not one.
 */
export async function appConfig(entry: string): Promise<AppConfig> {
  const installedPath = fromFileUrl(INSTALLED);
  const own = await nearestConfig(dirname(entry));
  if (own === undefined || own === installedPath) return { kind: "path", value: installedPath };
  const installed = await readConfig(installedPath);
  const config = await readConfig(own);
  const base = toFileUrl(own);
  const text = JSON.stringify({
    nodeModulesDir: "none",
    imports: {
      ...absolute(installed.imports ?? {}, INSTALLED),
      ...absolute(config.imports ?? {}, base),
      sojourn: new URL("functions/mod.ts", INSTALLED).href,
      "cloudflare:workers": new URL("functions/cloudflare_workers.ts", INSTALLED).href,
    },
    scopes: Object.fromEntries(
      Object.entries(config.scopes ?? {}).map((
        [scope, map],
      ) => [new URL(scope, base).href, absolute(map, base)]),
    ),
    ...(config.compilerOptions ? { compilerOptions: config.compilerOptions } : {}),
  });
  return { kind: "text", value: text };
}

/** Relative targets of an import map, as URLs. */
function absolute(map: Readonly<Record<string, string>>, base: URL): Record<string, string> {
  return Object.fromEntries(
    Object.entries(map).map((
      [name, target],
    ) => [name, /^\.{0,2}\//.test(target) ? new URL(target, base).href : target]),
  );
}

async function nearestConfig(folder: string): Promise<string | undefined> {
  for (let at = folder;; at = dirname(at)) {
    for (const name of CONFIG_NAMES) {
      const path = join(at, name);
      const found = await Deno.stat(path).catch(() => undefined); // absent, or not ours to see
      if (found?.isFile) return path;
    }
    if (dirname(at) === at) return undefined;
  }
}

async function readConfig(path: string): Promise<z.infer<typeof importMap>> {
  const text = await Deno.readTextFile(path);
  let value: unknown;
  try {
    // Comments and trailing commas, which deno.jsonc may have, outside of strings.
    value = JSON.parse(
      text.replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, "$1").replace(
        /("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g,
        "$1",
      ),
    );
  } catch (error) {
    throw new Error(`${path} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const parsed = importMap.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${path}: ${issue?.path.join(".")}: ${issue?.message}`);
}
