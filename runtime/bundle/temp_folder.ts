/**
 * Folders for a moment, which are removed when they are no longer used, and also when the process is told to end
 * meanwhile.
 */

const open = new Set<string>();

/** Makes a folder, gives it to `use`, and removes it. */
export async function withTempFolder<T>(prefix: string, use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await Deno.makeTempDir({ prefix });
  open.add(folder);
  try {
    return await use(folder);
  } finally {
    open.delete(folder);
    await Deno.remove(folder, { recursive: true }).catch(() => {}); // gone already, or the system's to clear
  }
}

/** Removes the folders that are in use: the process ends now. */
export function removeTempFolders(): void {
  for (const folder of open) {
    try {
      Deno.removeSync(folder, { recursive: true });
    } catch {
      // A child still writes there: the system clears its folder for temporary files.
    }
  }
}
