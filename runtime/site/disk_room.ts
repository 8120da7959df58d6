/**
 * Bytes of rows that a site may hold, by the room on its disk: rows that can be fetched again are dropped before the
 * disk is full, so that what must be written down still can be.
 *
 * R1  The site never holds more than its file allows, nor more than fits while {@link RESERVE_BYTES} of the disk (a
 *     fifth of a small one) stay free for the journal.
 * R2  The limit is lowered once for each time that the files have grown: a database keeps the room of dropped rows, and
 *     where another program fills the disk, dropping more would not help.
 * R3  Where the disk has room again, half of that room is added to the limit.
 */
import { statfsSync } from "node:fs";

/** Bytes of the disk that stay free: some seconds of a busy site's commits, and what dropping rows itself writes. */
const RESERVE_BYTES = 64 * 1024 * 1024;
const RESERVE_SHARE = 0.2;
/** Milliseconds between two looks at the disk, and where it is nearly full. A look is some 50 µs. */
const LOOK_MS = 250, LOOK_MS_MIN = 50;
const NEAR_RESERVES = 3;
/** Part of the rows that stays when the limit is lowered: the next look comes before so much has been written. */
const STEP_SHARE = 0.8;
/** Bytes below which the limit does not go: the least that a site file may say. */
const ROWS_BYTES_MIN = 1024 * 1024;

/** Sizes seen by one look at a disk. */
export interface DiskLook {
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Bytes of the store's files. */
  readonly fileBytes: number;
  /** Bytes of the rows in the store's files. */
  readonly rowBytes: number;
}

/** The limit of a site's rows; see the file's header. */
export class DiskRoom {
  readonly #maxBytes: number;
  #bytes: number;
  /** Bytes of the files when the limit was lowered last. */
  #fileBytes = 0;

  /** @param maxBytes what the site file allows. */
  constructor(maxBytes: number) {
    this.#maxBytes = this.#bytes = maxBytes;
  }

  /** Returns the bytes of rows that the site may hold from now on. */
  after(look: DiskLook): number {
    const { freeBytes, fileBytes, rowBytes } = look, reserve = reserveOf(look);
    if (freeBytes < reserve) {
      if (fileBytes > this.#fileBytes) {
        this.#fileBytes = fileBytes;
        this.#bytes = Math.max(ROWS_BYTES_MIN, Math.min(this.#bytes, rowBytes * STEP_SHARE));
      }
    } else if (freeBytes > 2 * reserve && this.#bytes < this.#maxBytes) {
      this.#fileBytes = 0;
      this.#bytes = Math.min(this.#maxBytes, this.#bytes + (freeBytes - 2 * reserve) / 2);
    }
    return Math.floor(this.#bytes);
  }
}

/**
 * Returns the milliseconds until the next look. A small disk is filled in a second: it is looked at more often while
 * there is little room.
 */
export function nextLookMs(look: DiskLook | null): number {
  return look !== null && look.freeBytes < NEAR_RESERVES * reserveOf(look) ? LOOK_MS_MIN : LOOK_MS;
}

/** Returns the bytes that are to stay free (R1). */
const reserveOf = ({ totalBytes }: DiskLook): number => Math.min(RESERVE_BYTES, totalBytes * RESERVE_SHARE);

/** Looks at the disk under a store's folder; null where it can't be looked at. */
export function lookAt(folder: string, rowBytes: number): DiskLook | null {
  try {
    const { bavail, blocks, bsize } = statfsSync(folder);
    let fileBytes = 0;
    for (const { name, isFile } of Deno.readDirSync(folder)) {
      if (isFile) fileBytes += Deno.statSync(`${folder}/${name}`).size;
    }
    return { totalBytes: blocks * bsize, freeBytes: bavail * bsize, fileBytes, rowBytes };
  } catch {
    return null; // a file went meanwhile, or the folder has gone: the next commit says so
  }
}
