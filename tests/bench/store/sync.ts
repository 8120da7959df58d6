/** What the disk under the cluster takes to sync, right now: asked for beside every figure that waits for it. */

const BLOCK = new Uint8Array(4096);

/** Appends 4 KiB to a file beside the cluster's data, and syncs it. */
export async function syncMs(file: Deno.FsFile): Promise<number> {
  const begunMs = performance.now();
  await file.write(BLOCK);
  await file.syncData();
  return performance.now() - begunMs;
}
