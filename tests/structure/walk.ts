/**
 * The files below a folder, sorted, without what tools generate.
 */
const GENERATED = new Set([".sojourn", ".cache", "node_modules", "coverage"]);

/** Paths from `root`, with forward slashes; none where there is no such folder. */
export async function* walk(root: URL, folder: string): AsyncGenerator<string> {
  const entries: Deno.DirEntry[] = [];
  if (await Deno.stat(new URL(folder, root)).then((found) => found.isDirectory, () => false)) {
    for await (const entry of Deno.readDir(new URL(folder, root))) entries.push(entry);
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory && !GENERATED.has(entry.name)) yield* walk(root, path);
    if (entry.isFile) yield path;
  }
}
