/** What a storage tells of its disk, as it is opened and used. */

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

/** So large a file is compared whole as it is opened: that takes some 7 µs a row, half a second or so. */
export const CHECK_AT_OPEN_BYTES = 64 * 1024 * 1024;
