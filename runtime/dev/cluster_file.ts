/**
 * The file by which commands find the cluster: in the cluster's data folder, and, for a cluster whose data is removed
 * when it ends, also in the folder where commands look.
 *
 * Life: `write`, as often as processes change → `remove`.
 *
 * CF1  In the folder where commands look, the file of another cluster that runs is left as it is; a cluster that began
 *      later may replace ours.
 */
import { join } from "node:path";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { CLUSTER_FILE, type ClusterFile, readCluster } from "../cli/mod.ts";

/** Milliseconds in which a dev process on the same machine answers, also a busy one. */
const DOOR_MS = 1_000;

/** Places of the cluster file. */
export class ClusterFilePlaces {
  readonly #data: string;
  readonly #found: string | null;

  /** @param found folder where commands look, if that is not the data folder. */
  constructor(data: string, found: string | null) {
    this.#data = data;
    this.#found = found === data ? null : found;
  }

  /** Writes the file; false where another cluster is found instead (CF1). */
  async write(file: ClusterFile): Promise<boolean> {
    await this.#writeIn(this.#data, file);
    if (this.#found === null) return true;
    if (await isOfAnother(this.#found)) return false;
    await Deno.mkdir(this.#found, { recursive: true, mode: 0o700 });
    await this.#writeIn(this.#found, file);
    return true;
  }

  async #writeIn(folder: string, file: ClusterFile): Promise<void> {
    const text = JSON.stringify(file, null, 2) + "\n";
    (await replaceFile(Deno, join(folder, CLUSTER_FILE), text, { mode: 0o600 })).close();
  }

  /**
   * Removes the file from the folder where commands look, as the cluster has ended. In its data folder the file stays,
   * and tells which one has.
   */
  async remove(): Promise<void> {
    if (this.#found === null) return;
    const file = await readCluster(this.#found).catch(() => null);
    if (file?.pid === Deno.pid) await Deno.remove(join(this.#found, CLUSTER_FILE));
  }
}

/** Reports whether a folder has the file of another cluster that runs. */
async function isOfAnother(folder: string): Promise<boolean> {
  const file = await readCluster(folder).catch(() => null);
  if (file === null || file.pid === Deno.pid || file.controlUrl === undefined) return false;
  try {
    const answer = await fetch(file.controlUrl, { signal: AbortSignal.timeout(DOOR_MS) });
    await answer.body?.cancel();
    return true;
  } catch {
    return false;
  }
}
