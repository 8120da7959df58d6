/**
 * The configuration that an app is bundled with: its own import map (its nearest deno.json, or the dependencies of
 * its package.json), over what every app finds without one (`hono`, `zod`), with `sojourn` always the installed
 * copy, so that apps outside of the checkout work.
 */
import { dirname } from "node:path";
import { z } from "zod";
import { fromFileUrl, toFileUrl } from "./file_url.ts";
import { parseJsonc } from "./jsonc.ts";
import { nearestFile, nodeProject } from "./node_project.ts";

const INSTALLED = new URL("../../deno.json", import.meta.url);
const CONFIG_NAMES = ["deno.json", "deno.jsonc"];

const importMap = z.looseObject({
  imports: z.record(z.string(), z.string()).optional(),
  scopes: z.record(z.string(), z.record(z.string(), z.string())).optional(),
  compilerOptions: z.record(z.string(), z.unknown()).optional(),
});

/** A configuration for one app. */
export interface AppConfig {
  /** Text to write into a configuration file of its own, or the path of one that does as it is. */
  readonly kind: "path" | "text";
  readonly value: string;
}

/**
 * Returns the configuration for the app with this entry module.
 *
 * @throws Error for a deno.json, package.json or tsconfig.json that is none.
 */
export async function appConfig(entry: string): Promise<AppConfig> {
  const installedPath = fromFileUrl(INSTALLED);
  const folder = dirname(entry);
  const own = await nearestFile(folder, CONFIG_NAMES);
  const project = await nodeProject(folder, own === undefined ? undefined : dirname(own));
  if (project === undefined && (own === undefined || own === installedPath)) {
    return { kind: "path", value: installedPath };
  }
  const installed = await readConfig(installedPath);
  const config = own === undefined || own === installedPath ? {} : await readConfig(own);
  const base = own === undefined ? INSTALLED : toFileUrl(own);
  const text = JSON.stringify({
    nodeModulesDir: "none",
    imports: {
      ...absolute(installed.imports ?? {}, INSTALLED),
      ...project?.imports,
      ...absolute(config.imports ?? {}, base),
      sojourn: new URL("functions/mod.ts", INSTALLED).href,
      "sojourn/client": new URL("functions/client/mod.ts", INSTALLED).href,
      "cloudflare:workers": new URL("functions/cloudflare_workers.ts", INSTALLED).href,
    },
    scopes: Object.fromEntries(
      Object.entries(config.scopes ?? {}).map((
        [scope, map],
      ) => [new URL(scope, base).href, absolute(map, base)]),
    ),
    compilerOptions: { ...project?.compilerOptions, ...config.compilerOptions },
    // Node's bundlers find `./page` and `./pages` too.
    ...(project === undefined ? {} : { unstable: ["sloppy-imports"] }),
  });
  return { kind: "text", value: text };
}

/** Returns the relative targets of an import map as URLs. */
function absolute(map: Readonly<Record<string, string>>, base: URL): Record<string, string> {
  return Object.fromEntries(
    Object.entries(map).map((
      [name, target],
    ) => [name, /^\.{0,2}\//.test(target) ? new URL(target, base).href : target]),
  );
}

async function readConfig(path: string): Promise<z.infer<typeof importMap>> {
  const parsed = importMap.safeParse(parseJsonc(await Deno.readTextFile(path), path));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${path}: ${issue?.path.join(".")}: ${issue?.message}`);
}
