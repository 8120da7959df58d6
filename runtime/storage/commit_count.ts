/**
 * Count of the commits of a storage that are on disk, in files beside it: it shows commits that the database has lost.
 *
 * CC1  The count is written after the sync of the commit that it counts, and never before: a count beyond the
 *      database's proves that the database lost what was on disk.
 * CC2  The count is not synced itself. A power cut may take it back or tear it: then it proves nothing.
 * CC3  The count is in the storage's own folder and, where its host names one more file, there too: an older copy of
 *      the folder, with the count in it, is found out by the other file.
 */
import { bytesSum } from "./checksum.ts";

const COUNT_BYTES = 8;
const FILE_BYTES = 12;

/** The count of a storage's commits. */
export class CommitCount {
  readonly #files: readonly Deno.FsFile[];
  readonly #bytes = new Uint8Array(FILE_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  /** Largest count that a file had when it was opened; 0 where none had one that is whole. */
  readonly last: number;

  constructor(...paths: readonly string[]) {
    const options = { read: true, write: true, create: true, mode: 0o600 };
    this.#files = paths.map((path) => Deno.openSync(path, options));
    this.last = Math.max(...this.#files.map((file) => this.#read(file)));
  }

  #read(file: Deno.FsFile): number {
    const length = file.readSync(this.#bytes);
    const isWhole = length === FILE_BYTES && this.#view.getUint32(COUNT_BYTES) === this.#sum();
    const count = this.#view.getFloat64(0);
    return isWhole && Number.isSafeInteger(count) ? count : 0;
  }

  #sum(): number {
    return bytesSum(this.#bytes.subarray(0, COUNT_BYTES));
  }

  /** Writes the number of commits that are on disk. */
  set(count: number): void {
    this.#view.setFloat64(0, count);
    this.#view.setUint32(COUNT_BYTES, this.#sum());
    for (const file of this.#files) {
      file.seekSync(0, Deno.SeekMode.Start);
      file.writeSync(this.#bytes);
    }
  }

  close(): void {
    for (const file of this.#files) file.close();
  }
}
