/**
 * Setting aside of a site's folder whose files differ from what was written there, or hold an older state than was
 * synced, or than neighbours have had: the site then goes on as after the loss of that disk.
 *
 * Life: `store` → found to be spoiled, or older → renamed to `store.lost`, with the reason in it (`store.2.lost` where one
 * lies there) → looked at and removed, or put back, by an operator.
 *
 * LF1  A folder that was set aside is never opened by the site again, and is never changed or removed, also where more
 *      are set aside later: it may be all that is left of something.
 * LF2  A folder that no other site can make up for, and whose loss would be taken for a blank beginning, is not set
 *      aside: the root's rows, the arbiter's, and what origins have answered. Damage of these stops the site, with a
 *      message.
 * LF3  A site that set a folder aside tells of it: in the log, by an alert for as long as the folder lies there, and to
 *      all whose sessions saw what is gone.
 * LF4  A folder of which neighbours have had more than it holds is marked first, and set aside at the next start:
 *      nothing of it is open then.
 */
import { replaceFile } from "../../functions/client/replace_file.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import { FilesSpoiled } from "../storage/disk_report.ts";

/** A folder that was set aside. */
export interface LostFolder {
  /** Name of the folder in the site's data folder. */
  readonly folder: string;
  readonly why: string;
}

const LOST = ".lost", WHY_FILE = "WHY", OLDER_FILE = "OLDER";
/** Milliseconds between two looks at the folder: a status is asked for each second, by several. */
const LOOK_MS = 10_000;

/** Returns the path of the file that counts a folder's commits outside of it. */
export const witnessOf = (folder: string): string => `${folder}.commits`;

/** Returns the error of a folder that can't be set aside (LF2). */
export function notOpened({ folder, why }: FilesSpoiled): StoreUnavailable {
  return new StoreUnavailable(
    "disk_failed",
    `${why}, in ${folder}: restore the tree from a backup. To go on with what is left of it instead, which nobody is ` +
      `told of, remove the files ${folder}/commits and ${
        witnessOf(folder)
      }; to go on without it, remove it and the second`,
  );
}

/** Sets a folder aside (LF1). @returns where it lies. */
export async function setAside(folder: string, why: string): Promise<string> {
  const aside = await freeName(folder);
  await Deno.rename(folder, aside);
  (await replaceFile(Deno, `${aside}/${WHY_FILE}`, why + "\n")).close();
  await removed(witnessOf(folder));
  return aside;
}

async function freeName(folder: string): Promise<string> {
  for (let number = 1;; number++) {
    const name = number === 1 ? folder + LOST : `${folder}.${number}${LOST}`;
    if (!await Deno.stat(name).then(() => true, () => false)) return name;
  }
}

/** Marks a folder of which neighbours know that it is an older copy (LF4). */
export async function markOlder(folder: string, why: string): Promise<void> {
  (await replaceFile(Deno, `${folder}/${OLDER_FILE}`, why + "\n")).close();
}

/** Returns the reason why a folder was marked; null: it was not. */
export async function olderMark(folder: string): Promise<string | null> {
  try {
    return (await Deno.readTextFile(`${folder}/${OLDER_FILE}`)).trim();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

async function removed(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Folders that were set aside in a site's data folder. */
export class LostFolders {
  readonly #data: string;
  #found: readonly LostFolder[] = [];
  #lookedMs = -Infinity;

  constructor(data: string) {
    this.#data = data;
  }

  all(): readonly LostFolder[] {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs < LOOK_MS) return this.#found;
    this.#lookedMs = nowMs;
    return this.#found = this.#look();
  }

  #look(): LostFolder[] {
    try {
      return [...Deno.readDirSync(this.#data)]
        .filter(({ name, isDirectory }) => isDirectory && name.endsWith(LOST))
        .map(({ name }) => ({ folder: name, why: this.#why(name) }))
        .sort((a, b) => a.folder < b.folder ? -1 : 1);
    } catch {
      return []; // there is no folder: rows are in memory
    }
  }

  #why(name: string): string {
    try {
      return Deno.readTextFileSync(`${this.#data}/${name}/${WHY_FILE}`).trim();
    } catch {
      return "nobody knows why"; // the file with the reason was not written any more
    }
  }
}
