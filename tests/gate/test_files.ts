/** Files of tests below folders, as `deno test` finds them. */

/** Folders that hold no tests of this project (deno.json `exclude`, and what begins with a dot). */
const SKIPPED: ReadonlySet<string> = new Set(["node_modules", "coverage", "tests/packages"]);

/**
 * Lists files `*_test.ts`, in the order of their paths.
 *
 * @param paths files and folders, relative to the working folder.
 */
export function testFiles(paths: readonly string[]): string[] {
  const found: string[] = [];
  const walk = (path: string) => {
    if (SKIPPED.has(path)) return;
    if (!Deno.statSync(path).isDirectory) return void found.push(path);
    const names = [...Deno.readDirSync(path)].filter(({ name }) => !name.startsWith("."));
    for (const { name, isDirectory } of names.sort((a, b) => a.name < b.name ? -1 : 1)) {
      if (isDirectory || name.endsWith("_test.ts")) walk(path === "." ? name : `${path}/${name}`);
    }
  };
  for (const path of paths) walk(path);
  return found;
}
