/**
 * The bootstraps of isolates, each as one JavaScript file: bundled once for the sources as they are, and kept beside
 * other versions under a name that says which sources it came from.
 *
 * An isolate process starts with the right to read its main module and nothing else, so the bootstrap must not
 * import anything by file; and one file of plain JavaScript starts faster than thirty of TypeScript.
 */
import { createHash } from "node:crypto";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { fromFileUrl } from "../bundle/file_url.ts";
import { runDenoBundle } from "../bundle/deno_bundle.ts";

const REPOSITORY = new URL("../../", import.meta.url);
/** Folders in which everything lies that the bootstrap imports. */
const SOURCE_FOLDERS = ["functions", "store", "runtime/bundle", "runtime/isolate"];

/** Folder in which the files are kept unless the site says otherwise: beside the sources they are made of. */
const DEFAULT_FOLDER = fromFileUrl(new URL(".cache/isolates", REPOSITORY));
/**
 * Milliseconds after which files of earlier sources are removed: a site that runs from them has read them long before.
 */
const KEPT_MS = 24 * 3_600_000;

/** Kind of a bootstrap: for serving, for reading a manifest at a deploy, and for stateful sessions. */
export type Bootstrap = "serve" | "evaluate" | "stateful";

const made = new Map<string, Promise<string>>();

/** Returns the path of a bootstrap's file in a folder; it is made when it is first asked for. */
export function bootstrapFile(bootstrap: Bootstrap, folder = DEFAULT_FOLDER): Promise<string> {
  const name = `${folder}/${bootstrap}`;
  let file = made.get(name);
  if (file === undefined) {
    file = make(folder, bootstrap);
    file.catch(() => made.delete(name));
    made.set(name, file);
  }
  return file;
}

async function make(folder: string, bootstrap: Bootstrap): Promise<string> {
  await Deno.mkdir(folder, { recursive: true });
  const path = `${folder}/${bootstrap}-${sourceStamp()}.js`;
  try {
    await Deno.stat(path);
    return path;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const source = fromFileUrl(new URL(`runtime/isolate/inside/${bootstrap}.ts`, REPOSITORY));
  const result = await runDenoBundle({
    entry: source,
    config: fromFileUrl(new URL("deno.json", REPOSITORY)),
    minify: true,
  });
  if (result.kind === "failed") {
    throw new Error(`the isolate bootstrap could not be bundled: ${result.message}`);
  }
  // Several sites may start at the same time on one machine.
  const aside = `${path}.${crypto.randomUUID()}`;
  (await replaceFile(Deno, path, result.code, { aside })).close();
  await removeOld(folder);
  return path;
}

async function removeOld(folder: string): Promise<void> {
  const beforeMs = Date.now() - KEPT_MS;
  for await (const { name } of Deno.readDir(folder)) {
    if (!name.includes(".js")) continue;
    const path = `${folder}/${name}`;
    // Another site may be doing the same.
    const found = await Deno.stat(path).catch(() => undefined);
    if (found?.mtime && found.mtime.getTime() < beforeMs) await Deno.remove(path).catch(() => {});
  }
}

/**
 * Returns a digest that names the state of the sources by path, size and time of change. Synchronous: hundreds of files
 * take 5 ms so, and ten times that where each is waited for, which is what an app's first answer at a site would wait
 * for too.
 */
function sourceStamp(): string {
  const hash = createHash("sha256").update(Deno.version.deno);
  for (const folder of SOURCE_FOLDERS) stampFolder(fromFileUrl(new URL(folder, REPOSITORY)), hash);
  return hash.digest("hex").slice(0, 16);
}

function stampFolder(folder: string, hash: ReturnType<typeof createHash>): void {
  const entries = [...Deno.readDirSync(folder)];
  for (const { name, isDirectory } of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
    const path = `${folder}/${name}`;
    if (isDirectory) {
      stampFolder(path, hash);
      continue;
    }
    if (!name.endsWith(".ts") || name.endsWith("_test.ts")) continue;
    const { size, mtime } = Deno.statSync(path);
    hash.update(`${path} ${size} ${mtime?.getTime() ?? 0}\n`);
  }
}
