/**
 * The simulation over production code of which one place reads otherwise: for rules that no wrapper from outside can
 * break. The changed file lies in a folder of its own, and an import map puts it in the place of the one that it was made
 * from; nothing in the tree is touched.
 *
 * RW1  The place is there exactly once, or the variant has gone stale: that fails it, and does not count as caught. What a
 *      comment says behind a line is no part of it.
 */
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** What reads otherwise. */
export interface Rewriting {
  /** From the root of the repository. */
  readonly file: string;
  /** What it says there, and is to say. */
  readonly says: string;
  readonly becomes: string;
  /** Where two places hold one rule, each alone: the other one. */
  readonly also?: { readonly says: string; readonly becomes: string };
}

/** What `main.ts --first` says. */
export interface FirstWrong {
  readonly seed: number;
  readonly checkers: readonly string[];
  readonly message: string;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The first of so many seeds in which a checker says something; null: none does. */
export async function firstWrong(
  rewriting: Rewriting | null,
  { from = 0, to, plan }: { readonly from?: number; readonly to: number; readonly plan: string },
): Promise<FirstWrong | null> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-rewritten-" });
  try {
    const map = await importMap(folder, rewriting);
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", `--import-map=${map}`, "tests/sites/main.ts"],
        ...[`${from}`, `${to}`, plan, "--first"],
      ],
      cwd: ROOT,
      stdin: "null",
    }).output();
    const text = new TextDecoder();
    if (code !== 0) throw new Error(`the simulation ends with ${code}: ${text.decode(stderr).slice(-2_000)}`);
    return JSON.parse(text.decode(stdout).trim().split("\n").at(-1) ?? "null") as FirstWrong | null;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function importMap(folder: string, rewriting: Rewriting | null): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json"))) as {
    readonly imports: Record<string, string>;
  };
  const absolute = (path: string) => path.startsWith("./") ? pathToFileURL(join(ROOT, path)).href : path;
  const all = Object.fromEntries(Object.entries(imports).map(([name, path]) => [name, absolute(path)]));
  if (rewriting !== null) {
    all[pathToFileURL(join(ROOT, rewriting.file)).href] = await rewrite(folder, rewriting);
  }
  const map = join(folder, "map.json");
  await Deno.writeTextFile(map, JSON.stringify({ imports: all }));
  return map;
}

/** RW1 */
async function rewrite(folder: string, { file, also, ...first }: Rewriting): Promise<string> {
  const path = join(ROOT, file);
  let text = (await Deno.readTextFile(path)).replaceAll(/(?<=\S) \/\/ .*$/gm, "");
  for (const { says, becomes } of also === undefined ? [first] : [first, also]) {
    const times = text.split(says).length - 1;
    if (times !== 1) throw new Error(`${file} has this ${times} times: ${says}`);
    text = text.replace(says, () => becomes);
  }
  const imported = (_: string, lead: string, specifier: string) =>
    `${lead}"${pathToFileURL(join(dirname(path), specifier)).href}"`;
  const rewritten = join(folder, "rewritten.ts");
  await Deno.writeTextFile(rewritten, text.replace(/(from |import\()"(\.[^"]+)"/g, imported));
  return pathToFileURL(rewritten).href;
}
