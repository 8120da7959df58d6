/**
 * A cgroup (version 2) that the operator lends to a site's isolates: each gets one of its own below it, by which the
 * kernel bounds what the site otherwise has to look for (process_bounds.ts), and before it happens.
 *
 * CG1  A process is in its group before it is given an app: what runs until then is the bootstrap.
 * CG2  A group is removed with its process. Those of a site that was killed are removed by the next that starts.
 */
import { CORES_SUSTAINED, KERNEL_MIB, THREADS_MAX } from "./process_bounds.ts";
import type { ProcessSizes } from "./limits.ts";

/**
 * Controllers that the lent group has to give on: without one of them a bound would be missing that the operator counts
 * on.
 */
const CONTROLLERS = ["cpu", "memory", "pids"] as const;
const PREFIX = "sojourn-";
const OWNED = /^sojourn-(\d+)-\d+$/;
/** Microseconds in which `cpu.max` is counted: the kernel's own default. */
const PERIOD_US = 100_000;
/** Number of tries to remove a group: one whose process has just ended is busy for a moment. */
const REMOVE_TRIES = 20;
const REMOVE_PAUSE_MS = 50;

/** Number that makes names distinct: several sites of one process may share what is lent. */
let named = 0;

/** The group of one process. */
export interface ProcessGroup {
  /** Removes the group; resolves when it has gone. Called when its process has ended. */
  remove(): Promise<void>;
}

/** The groups of a site's isolates. */
export class IsolateCgroups {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Takes a lent group into use, and removes what a killed site has left there (CG2).
   *
   * @param path of the cgroup that is lent: nothing else runs in it, and its controllers are given on to its children.
   * @throws Error that says what is missing.
   */
  static async open(path: string): Promise<IsolateCgroups> {
    const given = await Deno.readTextFile(`${path}/cgroup.subtree_control`).catch(() => {
      throw new Error(`${path} is no cgroup (version 2) that this user can read`);
    });
    const missing = CONTROLLERS.filter((name) => !given.trim().split(/\s+/).includes(name));
    if (missing.length > 0) {
      throw new Error(
        `${path} does not give its children the controllers ${missing.join(", ")}: ` +
          `write "${missing.map((name) => `+${name}`).join(" ")}" into its cgroup.subtree_control`,
      );
    }
    const groups = new IsolateCgroups(path);
    await groups.#removeLeftovers();
    return groups;
  }

  /** Puts a process into a group of its own (CG1). @throws Error where the system does not let it. */
  async hold(pid: number, { heapMib, buffersMib }: ProcessSizes): Promise<ProcessGroup> {
    const path = `${this.#path}/${PREFIX}${Deno.pid}-${named++}`;
    await Deno.mkdir(path);
    const group = { remove: () => removeGroup(path) };
    const memoryBytes = (heapMib + buffersMib + KERNEL_MIB) * 1024 * 1024;
    try {
      await Deno.writeTextFile(`${path}/cpu.max`, `${CORES_SUSTAINED * PERIOD_US} ${PERIOD_US}`);
      await Deno.writeTextFile(`${path}/memory.max`, `${memoryBytes}`);
      await Deno.writeTextFile(`${path}/memory.swap.max`, "0").catch(() => {}); // a kernel without swap accounting
      await Deno.writeTextFile(`${path}/pids.max`, `${THREADS_MAX}`);
      await Deno.writeTextFile(`${path}/cgroup.procs`, `${pid}`);
      return group;
    } catch (error) {
      await group.remove();
      throw error;
    }
  }

  /** Removes groups of sites that are no more (CG2). */
  async #removeLeftovers(): Promise<void> {
    for await (const { name, isDirectory } of Deno.readDir(this.#path)) {
      const pid = OWNED.exec(name)?.[1];
      if (!isDirectory || pid === undefined) continue;
      const lives = await Deno.stat(`/proc/${pid}`).then(() => true, () => false);
      if (!lives) await removeGroup(`${this.#path}/${name}`);
    }
  }
}

async function removeGroup(path: string): Promise<void> {
  for (let tries = 0; tries < REMOVE_TRIES; tries++) {
    try {
      await Deno.remove(path);
      return;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      await new Promise((resolve) => setTimeout(resolve, REMOVE_PAUSE_MS));
    }
  }
}
