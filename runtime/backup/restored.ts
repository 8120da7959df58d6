/**
 * What a site's data folder says of the backup that it was restored from: `restored.json`.
 *
 * RS1  Data that was restored takes part under no secret that was in force when its backup was made, or before: whoever
 *      had seen more of that site, neighbours and clients, has such a secret or a token of one, and meets nothing of it.
 *      So nothing that was said after the backup is contradicted, and nobody who has seen it is shown the past.
 * RS2  Below the root it serves nobody, and opens no log, before it has heard that the root was restored from the same moment
 *      (site/restored_tree.ts): one that was restored alone, beside a tree that lives, shows nobody what was before, and
 *      takes nothing that would never be anywhere else.
 */
import { z } from "zod";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import { fingerprintOf } from "./archive.ts";

/** The file's name. */
export const RESTORED = "restored.json";
/** Lies in data whose restoring was cut off (restore.ts RT3). */
export const RESTORING = "RESTORING";

const schema = z.object({
  cut: z.string(),
  /** When the backup was made, and when it was restored. */
  at: z.string(),
  restoredAt: z.string(),
  /** Fingerprints of secrets that it may not take part under. */
  formerSecrets: z.array(z.string()),
  /** Drawn as it was restored: what tells two restores of one backup apart. */
  copy: z.string(),
  /** Fingerprints of the secrets that it was restored for. */
  secrets: z.array(z.string()),
  /** It has joined the tree since (RS2). */
  joined: z.boolean(),
});
/** What the file says. */
export type Restored = z.infer<typeof schema>;

/**
 * What the file says; null: the data was never restored.
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

/** Fingerprints of secrets that data was restored from under. */
export const formerSecrets = async (data: string): Promise<readonly string[]> =>
  (await readRestored(data))?.formerSecrets ?? [];

/** RS1: those of these secrets that were in force before, by their place. */
export function secretsOfBefore(
  secrets: readonly Uint8Array[],
  { formerSecrets }: Pick<Restored, "formerSecrets">,
): number[] {
  return secrets.flatMap((secret, index) => formerSecrets.includes(fingerprintOf(secret)) ? [index] : []);
}
