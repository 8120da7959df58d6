/**
 * The state of a checkpoint, where it lies beside it: byte strings, its parts, one after the other. The parts of the
 * next checkpoint are these and more, or others altogether. What they say is opaque here.
 *
 * Life at a keeper: uploaded, some at a time, for a base that is to come → kept, when that base comes → dropped, when a
 * base does not go on from it.
 *
 * SP1  A mark (how many parts, and a check over all of them) names parts: who has the same mark has the same bytes.
 *      A base goes on from parts here only where their mark is the one that it was made from.
 * SP2  Parts that no base has named are nobody's: they are not read, and the next ones take their place.
 */
import { checkBytes } from "../turn/rolling_check.ts";
import { STATE_BYTES_MAX, STATE_PARTS_MAX } from "./limits.ts";

/** Names the first `count` parts of a state. */
export interface StateMark {
  readonly count: number;
  /** 32 bits over them; 0 for none. */
  readonly check: number;
}

/** One part, without its bytes. */
export interface PartMark {
  readonly length: number;
  /** Over it and all before it. */
  readonly check: number;
}

/** No parts. */
export const NO_STATE: StateMark = { count: 0, check: 0 };

/** The marks of parts that come behind others. */
export function marksAfter(before: StateMark, parts: readonly Uint8Array[]): PartMark[] {
  let { check } = before;
  return parts.map((part) => ({ length: part.length, check: check = checkBytes(check, part) }));
}

/** The mark of parts that come behind others. */
export const markAfter = (before: StateMark, parts: readonly Uint8Array[]): StateMark => ({
  count: before.count + parts.length,
  check: marksAfter(before, parts).at(-1)?.check ?? before.check,
});

/** The mark of all of these. */
export const stateMarkOf = (marks: readonly PartMark[]): StateMark => ({
  count: marks.length,
  check: marks.at(-1)?.check ?? 0,
});

/** SP1: whether these begin with what a mark names. */
export const beginWith = (marks: readonly PartMark[], { count, check }: StateMark): boolean =>
  (count === 0 ? 0 : marks[count - 1]?.check) === check;

export const isSameState = (a: StateMark, b: StateMark): boolean =>
  a.count === b.count && a.check === b.check;

/** Bytes of parts. */
export const lengthOfParts = (marks: readonly { readonly length: number }[]): number =>
  marks.reduce((sum, { length }) => sum + length, 0);

/** Whether a state may be so. */
export const isWithin = (marks: readonly PartMark[]): boolean =>
  marks.length <= STATE_PARTS_MAX && lengthOfParts(marks) <= STATE_BYTES_MAX;

/** As many parts from `first` on as go in `bytesMax`, one at least; where the next ones begin. */
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
