/**
 * State of a checkpoint, where it lies beside it: byte strings, its parts, one after the other. The parts of the next
 * checkpoint are these and more, or others altogether. Their contents are opaque here.
 *
 * Life at a keeper: uploaded, some at a time, for a base that is to come → kept, when that base comes → dropped, when a
 * base does not go on from it.
 *
 * SP1  A mark (how many parts, and a check over all of them) names parts: parts with the same mark have the same bytes.
 *      A base goes on from parts here only where their mark is the one that it was made from.
 * SP2  Parts that no base has named belong to none: they are not read, and the next ones take their place.
 */
import { checkBytes } from "../turn/rolling_check.ts";
import { STATE_BYTES_MAX, STATE_PARTS_MAX } from "./limits.ts";

/** Mark that names the first `count` parts of a state. */
export interface StateMark {
  readonly count: number;
  /** Check of 32 bits over them; 0 for none. */
  readonly check: number;
}

/** Length and check of one part, without its bytes. */
export interface PartMark {
  readonly length: number;
  /** Check over this part and all before it. */
  readonly check: number;
}

/** Mark of no parts. */
export const NO_STATE: StateMark = { count: 0, check: 0 };

/** Returns the marks of parts that come behind others. */
export function marksAfter(before: StateMark, parts: readonly Uint8Array[]): PartMark[] {
  let { check } = before;
  return parts.map((part) => ({ length: part.length, check: check = checkBytes(check, part) }));
}

/** Returns the mark of parts that come behind others. */
export const markAfter = (before: StateMark, parts: readonly Uint8Array[]): StateMark => ({
  count: before.count + parts.length,
  check: marksAfter(before, parts).at(-1)?.check ?? before.check,
});

/** Returns the mark of all of these parts. */
export const stateMarkOf = (marks: readonly PartMark[]): StateMark => ({
  count: marks.length,
  check: marks.at(-1)?.check ?? 0,
});

/** Reports whether parts begin with what a mark names (SP1). */
export const beginWith = (marks: readonly PartMark[], { count, check }: StateMark): boolean =>
  (count === 0 ? 0 : marks[count - 1]?.check) === check;

export const isSameState = (a: StateMark, b: StateMark): boolean =>
  a.count === b.count && a.check === b.check;

/** Returns the bytes of parts. */
export const lengthOfParts = (marks: readonly { readonly length: number }[]): number =>
  marks.reduce((sum, { length }) => sum + length, 0);

/** Reports whether a state is within its limits. */
export const isWithin = (marks: readonly PartMark[]): boolean =>
  marks.length <= STATE_PARTS_MAX && lengthOfParts(marks) <= STATE_BYTES_MAX;

/** Returns where the next batch begins after as many parts from `first` on as go in `bytesMax`, at least one. */
export function batchFrom(
  parts: readonly { readonly length: number }[],
  first: number,
  bytesMax: number,
): number {
  let bytes = 0, next = first;
  for (; next < parts.length; next++) {
    bytes += parts[next]?.length ?? 0;
    if (next > first && bytes > bytesMax) break;
  }
  return next;
}
