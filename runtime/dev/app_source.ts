/** Search for an app named on the command line: its module, and the folder to watch. */
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../cli/mod.ts";
import { isEnvFile } from "./env_file.ts";

/** An app that was found. */
export interface AppSource {
  /** Name of the app when neither its module nor the command says one. */
  readonly fallback: string;
  readonly module: string;
  /** Folder below which changes redeploy the app. */
  readonly folder: string;
}

const EXAMPLES = resolve(import.meta.dirname ?? ".", "..", "..", "examples");

/**
 * Finds an app: a module, a folder with `app.ts`, or a name in `examples/`.
 *
 * @throws UsageError
 */
export async function findApp(named: string): Promise<AppSource> {
  for (const path of [resolve(named), join(EXAMPLES, named)]) {
    const module = await moduleAt(path);
    if (module !== null) {
      const folder = dirname(module);
      return { fallback: basename(folder).toLowerCase(), module, folder };
    }
  }
  throw new UsageError(
    `${JSON.stringify(named)} is no module, no folder with app.ts, and no name in examples/`,
  );
}

async function moduleAt(path: string): Promise<string | null> {
  try {
    const found = await Deno.stat(path);
    if (found.isFile) return path;
    const inside = join(path, "app.ts");
    return (await Deno.stat(inside)).isFile ? inside : null;
  } catch {
    return null;
  }
}

/** Milliseconds until changes count as settled: a burst of them, as an editor makes when it saves, is one. */
const SETTLE_MS = 80;
/** Folders whose changes are not the app's. */
const IGNORED = /(^|\/)(node_modules|\.git|\.sojourn|\.cache)(\/|$)/;

/** Files to watch. */
export interface WatchedFiles {
  readonly folder: string;
  /** A folder whose changes do not count: the cluster's data may lie within the app's folder. */
  readonly except: string;
  /** The only file whose changes count, where there is one. */
  readonly only?: string;
  readonly signal: AbortSignal;
}

/** Calls back after changes below a folder, one call at a time, until the signal aborts. */
export async function watchFolder(watched: WatchedFiles, changed: () => Promise<void>): Promise<void> {
  const { folder, except, only, signal } = watched;
  if (signal.aborted) return;
  const counts = (path: string) =>
    (only === undefined ? !isEnvFile(path) : path === only) && !IGNORED.test(path.slice(folder.length)) &&
    path !== except && !path.startsWith(except + "/");
  const watcher = Deno.watchFs(folder, { recursive: only === undefined });
  const close = () => watcher.close();
  signal.addEventListener("abort", close, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> = Promise.resolve();
  for await (const event of watcher) {
    if (event.kind === "access" || !event.paths.some(counts)) continue;
    clearTimeout(timer);
    timer = setTimeout(() => running = running.then(changed), SETTLE_MS);
  }
  clearTimeout(timer);
  await running;
}
