/**
 * The mark of whose turn it is in an isolate of stateful sessions, in a file that outlives its process: of triples of a
 * count, a channel and the number of an event (u32 each, little endian) the one with the largest count. The file begins
 * anew when it is full.
 */

/** The turn that began last. */
export interface LastTurn {
  /** Channel of its session; 0 where there was no turn. */
  readonly channel: number;
  /** Number of the newest event that had come to that session when the turn began; 0 for none. */
  readonly received: number;
}

const MARK_BYTES = 12;
/** Number of triples before the file begins anew: 96 KiB. */
const MARKS_MAX = 8 * 1024;

/** Writes the mark. */
export class TurnMark {
  readonly #file: Pick<Deno.FsFile, "seekSync" | "writeSync">;
  readonly #bytes = new Uint8Array(MARK_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);
  #count = 0;
  #channel = 0;
  #received = 0;

  constructor(file: Pick<Deno.FsFile, "seekSync" | "writeSync">) {
    this.#file = file;
  }

  write(channel: number, received: number): void {
    if (channel === this.#channel && received === this.#received) return;
    this.#channel = channel;
    this.#received = received;
    if (this.#count % MARKS_MAX === 0) this.#file.seekSync(0, 0);
    this.#view.setUint32(0, ++this.#count, true);
    this.#view.setUint32(4, channel, true);
    this.#view.setUint32(8, received, true);
    this.#file.writeSync(this.#bytes);
  }
}

/** Reads the mark. */
export function readTurnMark(file: Deno.FsFile): LastTurn {
  const bytes = new Uint8Array(file.statSync().size);
  file.seekSync(0, Deno.SeekMode.Start);
  const length = file.readSync(bytes) ?? 0;
  const view = new DataView(bytes.buffer);
  let last = 0, found: LastTurn = { channel: 0, received: 0 };
  for (let at = 0; at + MARK_BYTES <= length; at += MARK_BYTES) {
    const count = view.getUint32(at, true);
    if (count <= last) continue;
    last = count;
    found = { channel: view.getUint32(at + 4, true), received: view.getUint32(at + 8, true) };
  }
  return found;
}
