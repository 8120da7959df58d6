/** Starts the processes of one pool, in a folder of their own. */
import { type Bootstrap, bootstrapFile } from "./bootstrap_file.ts";
import type { IsolateCgroups } from "./cgroups.ts";
import { makeIsolatesFolder, removeIsolatesFolder } from "./isolates_folder.ts";
import type { ProcessSizes } from "./limits.ts";
import { type IsolateProcess, startProcess } from "./process.ts";

/** Options of a pool's processes. */
export interface ProcessStarterOptions {
  /** Folder in which the bootstraps are kept between starts; `.cache/isolates` of the installation by default. */
  readonly cacheFolder?: string;
  /** Groups that bound each process, where the operator has lent a cgroup. */
  readonly cgroups?: IsolateCgroups | undefined;
}

/** Starts processes; their folder is made for the first, and removed by `close`. */
export class ProcessStarter {
  readonly #options: ProcessStarterOptions;
  #folder: Promise<string> | undefined;

  constructor(options: ProcessStarterOptions) {
    this.#options = options;
  }

  /** Starts a process whose bootstrap waits for an app. @throws Error where that can't be done. */
  async start(
    bootstrap: Bootstrap,
    { heapMib, buffersMib }: ProcessSizes,
    givesWay = false,
  ): Promise<IsolateProcess> {
    const { cacheFolder, cgroups } = this.#options;
    const folder = await (this.#folder ??= makeIsolatesFolder());
    const path = await bootstrapFile(bootstrap, cacheFolder);
    return await startProcess({ bootstrap: path, folder, heapMib, buffersMib, cgroups, givesWay });
  }

  /** Removes the folder, when the processes have ended. */
  async close(): Promise<void> {
    if (this.#folder !== undefined) await removeIsolatesFolder(await this.#folder);
  }
}
