/**
 * The random streams of a stateful session: ChaCha20 (RFC 8439, section 2.3) under the session's seed. What is drawn is
 * in no log: seed and position determine all that a stream will ever give.
 *
 * R1  The same seed, nonce and position give the same bytes at every site.
 * R2  Two streams of one session, which differ in their nonce, have nothing in common.
 */

/** Bytes of a ChaCha20 block. */
const BLOCK_BYTES = 64;
/** The text "expand 32-byte k" as the four words that begin every initial state. */
const SIGMA = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] as const;

const state = new Uint32Array(16);
const work = new Uint32Array(16);
/** Bytes of `work`. The CPU must be little-endian, as the algorithm is: asserted when the module loads. */
const workBytes = new Uint8Array(work.buffer);
if (new Uint8Array(Uint32Array.of(1).buffer)[0] !== 1) {
  throw new Error("ChaCha20 here needs a little-endian CPU");
}

function quarter(x: Uint32Array, a: number, b: number, c: number, d: number): void {
  let [va, vb, vc, vd] = [x[a] ?? 0, x[b] ?? 0, x[c] ?? 0, x[d] ?? 0];
  va = (va + vb) | 0;
  vd ^= va;
  vd = (vd << 16) | (vd >>> 16);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb << 12) | (vb >>> 20);
  va = (va + vb) | 0;
  vd ^= va;
  vd = (vd << 8) | (vd >>> 24);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb << 7) | (vb >>> 25);
  x[a] = va;
  x[b] = vb;
  x[c] = vc;
  x[d] = vd;
}

/** Computes one block: 64 bytes that stay valid until the next call. */
export function chachaBlock(
  key: Uint8Array,
  counter: number,
  nonce: readonly [number, number, number],
): Uint8Array {
  const view = new DataView(key.buffer, key.byteOffset, 32);
  state.set(SIGMA);
  for (let i = 0; i < 8; i++) state[4 + i] = view.getUint32(i * 4, true);
  state[12] = counter;
  state.set(nonce, 13);
  work.set(state);
  for (let round = 0; round < 10; round++) {
    quarter(work, 0, 4, 8, 12);
    quarter(work, 1, 5, 9, 13);
    quarter(work, 2, 6, 10, 14);
    quarter(work, 3, 7, 11, 15);
    quarter(work, 0, 5, 10, 15);
    quarter(work, 1, 6, 11, 12);
    quarter(work, 2, 7, 8, 13);
    quarter(work, 3, 4, 9, 14);
  }
  for (let i = 0; i < 16; i++) work[i] = (work[i] ?? 0) + (state[i] ?? 0);
  return workBytes;
}

/**
 * Purposes of the streams: `Math.random` goes on over epochs, `crypto` begins anew with each (STATEFUL). A stream for a
 * form is begun where the session stands, and dropped.
 */
export const STREAM = { math: 1, crypto: 2, forms: 3 } as const;

/** One stream: a position under a seed, and the block at that position while the stream is in use. */
export class RandomStream {
  readonly #seed: Uint8Array;
  readonly #purpose: number;
  #epoch: number;
  #block: Uint8Array<ArrayBuffer> | undefined;
  #blockIndex = -1;
  /** Number of bytes drawn so far: with the seed, all of the stream's state. */
  position: number;

  constructor(seed: Uint8Array, purpose: number, epoch = 0, position = 0) {
    this.#seed = seed;
    this.#purpose = purpose;
    this.#epoch = epoch;
    this.position = position;
  }

  /** Begins the stream of another epoch. */
  restart(epoch: number): void {
    this.#epoch = epoch;
    this.position = 0;
    this.#blockIndex = -1;
  }

  /** Drops the block: an idle session needs none. */
  rest(): void {
    this.#block = undefined;
    this.#blockIndex = -1;
  }

  fill(into: Uint8Array): void {
    for (let at = 0; at < into.length;) {
      const offset = this.position % BLOCK_BYTES;
      const part = this.#blockAt(Math.floor(this.position / BLOCK_BYTES)).subarray(
        offset,
        offset + into.length - at,
      );
      into.set(part, at);
      at += part.length;
      this.position += part.length;
    }
  }

  /** Draws a number from 0 up to and without 1, of 53 bits. */
  float(): number {
    // Eight bytes at a time, never over the edge of a block.
    this.position = Math.ceil(this.position / 8) * 8;
    const block = this.#blockAt(Math.floor(this.position / BLOCK_BYTES));
    const view = new DataView(block.buffer, this.position % BLOCK_BYTES, 8);
    this.position += 8;
    return ((view.getUint32(0, true) >>> 5) * 2 ** 26 + (view.getUint32(4, true) >>> 6)) / 2 ** 53;
  }

  #blockAt(index: number): Uint8Array<ArrayBuffer> {
    this.#block ??= new Uint8Array(BLOCK_BYTES);
    if (this.#blockIndex !== index) {
      const high = this.#purpose * 2 ** 24 + Math.floor(index / 2 ** 32);
      this.#block.set(chachaBlock(this.#seed, index % 2 ** 32, [
        high,
        this.#epoch % 2 ** 32,
        Math.floor(this.#epoch / 2 ** 32),
      ]));
      this.#blockIndex = index;
    }
    return this.#block;
  }
}
