/**
 * The segments of a state (state.ts), oldest first, as they were written: what a checkpoint goes on from, and what an
 * object is made again from.
 *
 * SS1  They are never rewritten: a checkpoint is what was added. When more of them is void than is not they are merged,
 *      and written as one; or when that writes hardly more than the last one by itself, and more than that is void.
 */
import { AppError } from "../vocabulary/errors.ts";
import { mergeState, sizesOf } from "./state.ts";

/** So much may be void, beside as much as is not: a small state is not written whole each time. */
const VOID_BYTES_MIN = 1024;
/** Segments between two that are whole: each is a part of its own at the keepers (functions/sessions/log/limits.ts). */
const SEGMENTS_MAX = 1024;
/** Of the last segment, what may be written again with it: then a merge is free, and an opening reads nothing void. */
const AGAIN_SHARE_MAX = 1 / 16;
/** What an object, its segments and one more copy may take of an isolate, and what keepers take of a state. */
const STATE_BYTES_MAX = 120 << 20;

/** See the file's header. */
export class StateSegments {
  /** Never changed: who asked for all of them has them as they were. */
  #segments: readonly Uint8Array[] = [];
  /** Bytes of each field that are not void; null: of one segment all are, and most sessions have no more. */
  #live: Map<string, number> | null = null;
  #bytes = 0;
  #liveBytes = 0;
  /** Of the last one. */
  #lastBytes = 0;

  /** @throws AppError `value_corrupt`, `limit_value` */
  constructor(segments: readonly Uint8Array[] = []) {
    for (const segment of segments) this.add(segment);
  }

  get all(): readonly Uint8Array[] {
    return this.#segments;
  }

  get length(): number {
    return this.#segments.length;
  }

  /** What they take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws AppError `value_corrupt`; `limit_value` where it is more than a state may have. */
  add(segment: Uint8Array): void {
    const [first] = this.#segments;
    if (first === undefined) this.#liveBytes = this.#lastBytes = segment.length;
    else {
      if (this.#live === null) {
        this.#liveBytes = 0;
        this.#count(this.#live = new Map(), first);
      }
      this.#lastBytes = this.#count(this.#live, segment);
    }
    if (this.#liveBytes > STATE_BYTES_MAX) {
      throw new AppError(
        "limit_value",
        `the state of a stateful session has at most ${STATE_BYTES_MAX} bytes; this one has ${this.#liveBytes}`,
      );
    }
    this.#segments = [...this.#segments, segment];
    this.#bytes += segment.length;
  }

  /** What it takes. */
  #count(live: Map<string, number>, segment: Uint8Array): number {
    let bytes = 0;
    for (const { name, isFresh, length } of sizesOf(segment)) {
      const before = live.get(name) ?? 0;
      const after = isFresh ? length : before + length;
      live.set(name, after);
      this.#liveBytes += after - before;
      bytes += length;
    }
    return bytes;
  }

  /** SS1 */
  get isWasteful(): boolean {
    if (this.#segments.length <= 1) return false;
    const again = this.#liveBytes - this.#lastBytes, voided = this.#bytes - this.#liveBytes;
    return voided > this.#liveBytes + VOID_BYTES_MIN || this.#segments.length > SEGMENTS_MAX ||
      (voided > again + VOID_BYTES_MIN && again <= AGAIN_SHARE_MAX * this.#lastBytes);
  }

  /** The same in one. */
  merged(): StateSegments {
    return new StateSegments([mergeState(...this.#segments)]);
  }
}
