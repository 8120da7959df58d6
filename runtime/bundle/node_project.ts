/**
 * Reads what a project made for npm says about its modules: `dependencies` of its package.json, as an import map, and
 * JSX and `paths` of its tsconfig.json. So a Workers or Hono project bundles as it is, without node_modules.
 */
import { dirname, join } from "node:path";
import { z } from "zod";
import { toFileUrl } from "./file_url.ts";
import { parseJsonc } from "./jsonc.ts";

/** The parts of a bundle's configuration that a project adds. */
export interface NodeProject {
  readonly imports: Record<string, string>;
  readonly compilerOptions: Record<string, unknown>;
}

const versions = z.record(z.string(), z.string()).default({});
const packageFile = z.looseObject({ dependencies: versions, devDependencies: versions });
const JSX_OPTIONS = ["jsx", "jsxImportSource", "jsxFactory", "jsxFragmentFactory"] as const;
const tsconfigFile = z.looseObject({
  compilerOptions: z.looseObject({
    baseUrl: z.string().optional(),
    paths: z.record(z.string(), z.array(z.string())).default({}),
  }).default({ paths: {} }),
});

/**
 * Reads the nearest package.json and tsconfig.json of a folder, not those above `top`.
 *
 * @throws Error for one that is none.
 */
export async function nodeProject(folder: string, top?: string): Promise<NodeProject | undefined> {
  const [packagePath, tsconfigPath] = await Promise.all([
    nearestFile(folder, ["package.json"], top),
    nearestFile(folder, ["tsconfig.json"], top),
  ]);
  if (packagePath === undefined) return undefined; // a tsconfig.json alone is of no npm project
  const { dependencies, devDependencies } = await read(packagePath, packageFile);
  const project: NodeProject = {
    imports: { ...packageImports(devDependencies), ...packageImports(dependencies) },
    compilerOptions: {},
  };
  if (tsconfigPath === undefined) return project;
  const { compilerOptions } = await read(tsconfigPath, tsconfigFile);
  Object.assign(project.imports, pathImports(compilerOptions, dirname(tsconfigPath)));
  for (const name of JSX_OPTIONS) {
    const value = compilerOptions[name];
    if (typeof value === "string") project.compilerOptions[name] = value;
  }
  return project;
}

/** Finds the nearest file of these names, in a folder or above it, up to `top`. */
export async function nearestFile(
  folder: string,
  names: readonly string[],
  top?: string,
): Promise<string | undefined> {
  for (let at = folder;; at = dirname(at)) {
    for (const name of names) {
      const path = join(at, name);
      const found = await Deno.stat(path).catch(() => undefined); // absent, or not ours to see
      if (found?.isFile) return path;
    }
    if (at === top || dirname(at) === at) return undefined;
  }
}

async function read<S extends z.ZodType>(path: string, schema: S): Promise<z.infer<S>> {
  const parsed = schema.safeParse(parseJsonc(await Deno.readTextFile(path), path));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${path}: ${issue?.path.join(".")}: ${issue?.message}`);
}

/**
 * Returns imports of the registry's packages; those from elsewhere (a folder, git) are left for the bundler to miss.
 */
function packageImports(dependencies: Readonly<Record<string, string>>): Record<string, string> {
  const imports: Record<string, string> = {};
  for (const [name, range] of Object.entries(dependencies)) {
    const aliased = /^npm:(.+)$/.exec(range)?.[1];
    if (aliased === undefined && /[:/]/.test(range)) continue;
    const found = aliased ?? `${name}@${range}`;
    imports[name] = `npm:${found}`;
    imports[`${name}/`] = `npm:/${found}/`;
  }
  return imports;
}

/** Returns `"@/*": ["./src/*"]` as an import map has it; a pattern with several targets takes the first. */
function pathImports(
  options: { baseUrl?: string | undefined; paths: Record<string, string[]> },
  folder: string,
): Record<string, string> {
  const base = join(folder, options.baseUrl ?? ".");
  return Object.fromEntries(
    Object.entries(options.paths).flatMap(([pattern, [target]]) =>
      target === undefined || pattern === "*"
        ? []
        : [[pattern.replace(/\*$/, ""), toFileUrl(join(base, target.replace(/\*$/, ""))).href]]
    ),
  );
}
