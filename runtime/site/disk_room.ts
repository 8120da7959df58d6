/**
 * How many bytes of rows a site may hold, by what its disk has room for: rows that can be fetched again are given back
 * before the disk is full, so that what must be written down still can be.
 *
 * R1  Never more than the site file allows, nor more than fits while {@link RESERVE_BYTES} of the disk (a fifth of a small
 *     one) stay free for the journal.
 * R2  It is taken back once for each time that the files have grown: a database keeps the room of rows that went, and the
 *     disk may be filled by somebody else, whom giving back more would not help.
 * R3  Where the disk has room again, half of that comes back.
 */
import { statfsSync } from "node:fs";

/** Some seconds of a busy site's commits, and what giving rows back itself writes. */
const RESERVE_BYTES = 64 * 1024 * 1024;
const RESERVE_SHARE = 0.2;
/** A look is some 50 µs. */
const LOOK_MS = 250, LOOK_MS_MIN = 50;
const NEAR_RESERVES = 3;
/** What is given back at a time: the next look comes before so much has been written. */
const STEP_SHARE = 0.8;
/** As the least that a site file may say. */
const ROWS_BYTES_MIN = 1024 * 1024;

/** A look at a disk. */
export interface DiskLook {
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Of the store's files. */
  readonly fileBytes: number;
  /** Of the rows in them. */
  readonly rowBytes: number;
}

/** See the file's header. */
export class DiskRoom {
  readonly #maxBytes: number;
  #bytes: number;
  /** What the files had when room was taken back last. */
  #fileBytes = 0;

  /** @param maxBytes what the site file allows. */
  constructor(maxBytes: number) {
    this.#maxBytes = this.#bytes = maxBytes;
  }

  /** What the site may hold from now on, in bytes of rows. */
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

/** When it is to be looked at again, in ms. A small disk is filled in a second: it is watched while there is little room. */
export function nextLookMs(look: DiskLook | null): number {
  return look !== null && look.freeBytes < NEAR_RESERVES * reserveOf(look) ? LOOK_MS_MIN : LOOK_MS;
}

/** R1 */
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
