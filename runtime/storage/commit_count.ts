/**
 * How many commits of a storage are on disk, in a file beside it: what the database has forgotten, this file knows.
 *
 * CC1  It is written after the sync of the commit that it counts, and never before: a count beyond the database's
 *      proves that the database lost what was on disk.
 * CC2  It is not synced itself. A power cut may take it back or tear it: then it proves nothing.
 */
import { bytesSum } from "./checksum.ts";

const COUNT_BYTES = 8;
const FILE_BYTES = 12;

/** See the file's header. */
export class CommitCount {
  readonly #file: Deno.FsFile;
  readonly #bytes = new Uint8Array(FILE_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  /** As the file had it when it was opened; 0 where it had none that is whole. */
  readonly last: number;

  constructor(path: string) {
    this.#file = Deno.openSync(path, { read: true, write: true, create: true, mode: 0o600 });
    const length = this.#file.readSync(this.#bytes);
    const isWhole = length === FILE_BYTES && this.#view.getUint32(COUNT_BYTES) === this.#sum();
    this.last = isWhole ? this.#view.getFloat64(0) : 0;
  }

  #sum(): number {
    return bytesSum(this.#bytes.subarray(0, COUNT_BYTES));
  }

  /** So many are on disk. */
  set(count: number): void {
    this.#view.setFloat64(0, count);
    this.#view.setUint32(COUNT_BYTES, this.#sum());
    this.#file.seekSync(0, Deno.SeekMode.Start);
    this.#file.writeSync(this.#bytes);
  }

  close(): void {
    this.#file.close();
  }
}
