/**
 * The segments of a state (state.ts), oldest first, as they were written: the next checkpoint adds to them, and an
 * object is made again from them.
 *
 * SS1  Segments are never rewritten: a checkpoint adds one. They are merged, and written as one, when more of their
 *      bytes are void than are not; or when that writes hardly more than the last segment by itself, and more than that
 *      is void.
 */
import { AppError } from "../vocabulary/errors.ts";
import { mergeState, sizesOf } from "./state.ts";

/** Bytes that may be void beyond those that are not: a small state is not written whole each time. */
const VOID_BYTES_MIN = 1024;
/**
 * Segments between two that are whole: each is a part of its own at the sites that keep it
 * (functions/sessions/log/limits.ts).
 */
const SEGMENTS_MAX = 1024;
/**
 * Share of the last segment that may be written again with it: then a merge costs nothing, and an opening reads nothing
 * void.
 */
const AGAIN_SHARE_MAX = 1 / 16;
/**
 * Bytes of a state: its object, its segments and one more copy have to fit an isolate, and the state the sites that
 * keep it.
 */
const STATE_BYTES_MAX = 120 << 20;

/** Segments of one state. */
export class StateSegments {
  /** Segments; the array is never changed: code that was given it has the segments as they were. */
  #segments: readonly Uint8Array[] = [];
  /**
   * Bytes of each field that are not void; null while there is one segment, of which all are: most sessions have no
   * more.
   */
  #live: Map<string, number> | null = null;
  #bytes = 0;
  #liveBytes = 0;
  /** Bytes of the last segment. */
  #lastBytes = 0;

  /** Takes segments, oldest first. @throws AppError `value_corrupt`, `limit_value` */
  constructor(segments: readonly Uint8Array[] = []) {
    for (const segment of segments) this.add(segment);
  }

  get all(): readonly Uint8Array[] {
    return this.#segments;
  }

  get length(): number {
    return this.#segments.length;
  }

  /** Bytes of all segments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a segment. @throws AppError `value_corrupt`; `limit_value` where the state is larger than it may be. */
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

  /** Counts the fields of a segment, and returns the segment's bytes. */
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

  /** True where the segments should be merged (SS1). */
  get isWasteful(): boolean {
    if (this.#segments.length <= 1) return false;
    const again = this.#liveBytes - this.#lastBytes, voided = this.#bytes - this.#liveBytes;
    return voided > this.#liveBytes + VOID_BYTES_MIN || this.#segments.length > SEGMENTS_MAX ||
      (voided > again + VOID_BYTES_MIN && again <= AGAIN_SHARE_MAX * this.#lastBytes);
  }

  /** Returns the same state in one segment. */
  merged(): StateSegments {
    return new StateSegments([mergeState(...this.#segments)]);
  }
}
