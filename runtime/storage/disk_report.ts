/** What a storage tells of its disk, as it is opened and used. */
import { StoreUnavailable } from "../../store/api/api.ts";

/** What a check of everything on a disk has found. */
export interface Checked {
  /** Rows whose bytes do not fit their checksums. */
  readonly damaged: number;
  /** Indexes were built anew. */
  readonly isReindexed: boolean;
}

/** See the file's header. */
export interface DiskReport {
  /** How long a sync took. */
  synced?(ms: number): void;
  /** Damage was found at the open. */
  damaged?(found: Checked): void;
}

/** Something in a storage's files is not what was written there, and it can't be said of single rows. */
export class Spoiled extends Error {}

/** The files of a folder are not what was written there: some of it is lost, or all of them are older. */
export class FilesSpoiled extends StoreUnavailable {
  constructor(readonly folder: string, readonly why: string) {
    super("disk_failed", `${why}, in ${folder}`);
  }
}

/** As SQLite says it. */
const SPOILED = /malformed|not a database|unsupported file format|no such (?:table|column)/;

/** What an open has failed with: {@link FilesSpoiled} where that is so. */
export function openFailure(folder: string, error: unknown): Error {
  if (error instanceof StoreUnavailable) return error;
  const why = error instanceof Error ? error.message : String(error);
  return error instanceof Spoiled || SPOILED.test(why)
    ? new FilesSpoiled(folder, `the files are not what was written there: ${why}`)
    : new StoreUnavailable("disk_failed", `cannot open the store in ${folder}: ${why}`);
}

/** So large a file is compared whole as it is opened: that takes some 7 µs a row, half a second or so. */
export const CHECK_AT_OPEN_BYTES = 64 * 1024 * 1024;
