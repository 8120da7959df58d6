/**
 * The folder of a site's isolates: sockets and marks that live a moment each. It is in the system's temporary
 * folder, because a socket's path has at most 107 bytes and a data folder may lie deep.
 *
 * L1  A folder names its process; one whose process is gone (killed: it could not tidy up) is removed by the next
 *     site that starts on this machine.
 */

const PREFIX = "sojourn-isolates-";
const OWNED = /^sojourn-isolates-(\d+)-/;

/** Makes this process's folder, and removes those that killed processes left behind. */
export async function makeIsolatesFolder(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: `${PREFIX}${Deno.pid}-` });
  await removeLeftovers(folder.slice(0, folder.lastIndexOf("/"))).catch(() => {}); // not ours to remove, then
  return folder;
}

/** Removes the folders of processes that are gone (L1). */
async function removeLeftovers(parent: string): Promise<void> {
  if (!await exists("/proc/self")) return; // no way to tell which processes live
  for await (const { name, isDirectory } of Deno.readDir(parent)) {
    const pid = OWNED.exec(name)?.[1];
    if (!isDirectory || pid === undefined || await exists(`/proc/${pid}`)) continue;
    await Deno.remove(`${parent}/${name}`, { recursive: true }).catch(() => {}); // another user's
  }
}

const exists = (path: string): Promise<boolean> => Deno.stat(path).then(() => true, () => false);

/** Removes a folder; somebody who clears the system's temporary files may have been there before. */
export async function removeIsolatesFolder(folder: string): Promise<void> {
  await Deno.remove(folder, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}
