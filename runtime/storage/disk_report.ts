/** Events and errors by which a storage tells of its disk, as it is opened and used. */
import { StoreUnavailable } from "../../store/api/api.ts";

/** Findings of a check of everything on a disk. */
export interface Checked {
  /** Number of rows whose bytes do not fit their checksums. */
  readonly damaged: number;
  /** True where indexes were built anew. */
  readonly isReindexed: boolean;
}

/** Callbacks for events of a disk. */
export interface DiskReport {
  /** Called after a sync, with its milliseconds. */
  synced?(ms: number): void;
  /** Called when damage was found at the open. */
  damaged?(found: Checked): void;
}

/** Error for files that differ from what was written there, in ways that can't be told of single rows. */
export class Spoiled extends Error {}

/** Error for a folder whose files differ from what was written there: some of it is lost, or all of them are older. */
export class FilesSpoiled extends StoreUnavailable {
  constructor(readonly folder: string, readonly why: string) {
    super("disk_failed", `${why}, in ${folder}`);
  }
}

/** Pattern of SQLite's messages for spoiled files. */
const SPOILED = /malformed|not a database|unsupported file format|no such (?:table|column)/;

/** Returns the error of a failed open: {@link FilesSpoiled} where the files are spoiled. */
export function openFailure(folder: string, error: unknown): Error {
  if (error instanceof StoreUnavailable) return error;
  const why = error instanceof Error ? error.message : String(error);
  return error instanceof Spoiled || SPOILED.test(why)
    ? new FilesSpoiled(folder, `the files are not what was written there: ${why}`)
    : new StoreUnavailable("disk_failed", `cannot open the store in ${folder}: ${why}`);
}

/**
 * Bytes of the largest file that is compared whole as it is opened: that takes some 7 µs a row, half a second or so.
 */
export const CHECK_AT_OPEN_BYTES = 64 * 1024 * 1024;
