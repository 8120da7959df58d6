/**
 * The segments of a state (state.ts), oldest first, as they were written: what a checkpoint goes on from, and what an
 * object is made again from.
 *
 * SS1  They are never rewritten: a checkpoint is what was added. When more of them is void than is not they are merged,
 *      and written as one.
 */
import { AppError } from "../errors.ts";
import { mergeState, sizesOf } from "./state.ts";

/** So much may be void, beside as much as is not: a small state is not written whole each time. */
const VOID_BYTES_MIN = 1024;
/** Segments between two that are whole: each is a part of its own at the keepers (functions/homes/limits.ts). */
const SEGMENTS_MAX = 1024;
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
    if (first === undefined) this.#liveBytes = segment.length;
    else {
      if (this.#live === null) {
        this.#liveBytes = 0;
        this.#count(this.#live = new Map(), first);
      }
      this.#count(this.#live, segment);
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

  #count(live: Map<string, number>, segment: Uint8Array): void {
    for (const { name, isFresh, length } of sizesOf(segment)) {
      const before = live.get(name) ?? 0;
      const after = isFresh ? length : before + length;
      live.set(name, after);
      this.#liveBytes += after - before;
    }
  }

  /** SS1 */
  get isWasteful(): boolean {
    return this.#segments.length > 1 &&
      (this.#bytes > 2 * this.#liveBytes + VOID_BYTES_MIN || this.#segments.length > SEGMENTS_MAX);
  }

  /** The same in one. */
  merged(): StateSegments {
    return new StateSegments([mergeState(...this.#segments)]);
  }
}
