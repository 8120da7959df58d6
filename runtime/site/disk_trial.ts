/**
 * Trials of a failed disk: its site tries it again and again, and ends when it works, so that whoever started it starts
 * it anew: what it had not committed is gone with the process, as after a crash.
 *
 * T1  A trial writes and syncs as a commit does, and leaves nothing.
 */
import { join } from "node:path";

/** Bytes of a trial: some batches of a busy site; with less room it would fail again at once. */
const TRIAL_BYTES = 4 * 1024 * 1024;
const TRIAL_EVERY_MS = 2_000;

/** Resolves when the disk under a folder takes writes again; never where it is stopped before. */
export async function diskWorks(folder: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, TRIAL_EVERY_MS));
    if (!signal.aborted && await tryDisk(join(folder, "trial"))) return;
  }
  await new Promise<void>(() => {});
}

/** Reports whether a trial succeeds (T1). */
async function tryDisk(path: string): Promise<boolean> {
  try {
    using file = await Deno.open(path, { write: true, create: true, truncate: true });
    const block = new Uint8Array(64 * 1024);
    for (let written = 0; written < TRIAL_BYTES;) written += await file.write(block);
    await file.syncData();
    return true;
  } catch {
    return false;
  } finally {
    await Deno.remove(path).catch(() => {});
  }
}
