/**
 * Record of the backup that a site's data was restored from: `restored.json` in its data folder.
 *
 * RS1  Restored data takes part under no secret that was in force when its backup was made, or before: neighbours and
 *      clients that had seen more of that site have such a secret or a token of one, and never meet the restored data.
 *      So nothing that the site told after the backup is contradicted, and nobody who has seen it is shown the past.
 * RS2  A restored site below the root serves nobody, and opens no log, before it has heard that the root was restored
 *      from the same moment (site/restored_tree.ts): a site that was restored alone, beside a tree that lives, shows
 *      nobody its old state, and takes no write that would never reach any other site.
 */
import { z } from "zod";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import { fingerprintOf } from "./archive.ts";

/** Name of the file. */
export const RESTORED = "restored.json";
/** Name of the file that lies in data whose restoring was cut off (restore.ts RT3). */
export const RESTORING = "RESTORING";

const schema = z.object({
  cut: z.string(),
  /** Times at which the backup was made, and restored. */
  at: z.string(),
  restoredAt: z.string(),
  /** Fingerprints of secrets that the data may not take part under. */
  formerSecrets: z.array(z.string()),
  /** Random text drawn at the restore: it tells two restores of one backup apart. */
  copy: z.string(),
  /** Fingerprints of the secrets that the data was restored for. */
  secrets: z.array(z.string()),
  /** True when the site has joined the tree since (RS2). */
  joined: z.boolean(),
});
/** Contents of the file. */
export type Restored = z.infer<typeof schema>;

/**
 * Reads the file; null: the data was never restored.
 *
 * @throws StoreUnavailable where it can't be read, or restoring was cut off.
 */
export async function readRestored(data: string): Promise<Restored | null> {
  const path = `${data}/${RESTORED}`;
  if (await Deno.stat(`${data}/${RESTORING}`).then(() => true, () => false)) {
    throw new StoreUnavailable(
      "disk_failed",
      `restoring ${data} from a backup was cut off: run \`sojourn restore\` again, with --replace`,
    );
  }
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new StoreUnavailable(
      "disk_failed",
      `${path} is not what \`sojourn restore\` left there: restore the backup again`,
    );
  }
}

/** Writes the file into a folder. */
export async function keepRestored(folder: string, restored: Restored): Promise<void> {
  (await replaceFile(Deno, `${folder}/${RESTORED}`, JSON.stringify(restored) + "\n", { mode: 0o600 }))
    .close();
}

/** Returns the fingerprints of secrets under which the data was restored from a backup and may not take part. */
export const formerSecrets = async (data: string): Promise<readonly string[]> =>
  (await readRestored(data))?.formerSecrets ?? [];

/** Returns those of these secrets that were in force before, by their index (RS1). */
export function secretsOfBefore(
  secrets: readonly Uint8Array[],
  { formerSecrets }: Pick<Restored, "formerSecrets">,
): number[] {
  return secrets.flatMap((secret, index) => formerSecrets.includes(fingerprintOf(secret)) ? [index] : []);
}
