/**
 * The file by which commands find the cluster: in its data folder, and for one whose data goes when it ends also where
 * commands look.
 *
 * Life: `write`, as often as processes change → `remove`.
 *
 * CF1  Where commands look, the file of another cluster that runs is left as it is; one that began later may take ours.
 */
import { join } from "node:path";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { CLUSTER_FILE, type ClusterFile, readCluster } from "../cli/mod.ts";

/** A dev process on the same machine answers within this, also a busy one. */
const DOOR_MS = 1_000;

/** See the file's header. */
export class ClusterFilePlaces {
  readonly #data: string;
  readonly #found: string | null;

  /** @param found where commands look, if that is not the data folder. */
  constructor(data: string, found: string | null) {
    this.#data = data;
    this.#found = found === data ? null : found;
  }

  /** Writes it; false where another cluster is found instead (CF1). */
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

  /** The cluster has ended: where commands look there is none. In its data folder it says which one has. */
  async remove(): Promise<void> {
    if (this.#found === null) return;
    const file = await readCluster(this.#found).catch(() => null);
    if (file?.pid === Deno.pid) await Deno.remove(join(this.#found, CLUSTER_FILE));
  }
}

/** Whether a folder has the file of another cluster that runs. */
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
