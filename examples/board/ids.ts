/**
 * Ids without a central counter: 9 digits of time, then 8 random ones, in an alphabet that sorts as its values
 * do. So ids sort by age, any site can draw them at once, and a span of time is a range of keys.
 */

/** Crockford's base 32, in ASCII order. */
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
/** 45 bits of milliseconds: until the year 3084. */
const TIME_DIGITS = 9;
/** 40 random bits: two of a thousand ids drawn in one millisecond collide once in two million times. */
const RANDOM_DIGITS = 8;

/** Matches ids. */
export const ID_PATTERN = /^[0-9a-hjkmnp-tv-z]{17}$/;

/** A new id; made at `nowMs`. */
export function newId(nowMs: number): string {
  const random = crypto.getRandomValues(new Uint8Array(RANDOM_DIGITS));
  let id = idAt(nowMs);
  for (const byte of random) id += DIGITS[byte & 31];
  return id;
}

/** The lower bound of all ids made at a time or later. */
export function idAt(timeMs: number): string {
  let digits = "";
  for (
    let i = 0, rest = Math.max(0, Math.floor(timeMs));
    i < TIME_DIGITS;
    i++, rest = Math.floor(rest / 32)
  ) {
    digits = DIGITS[rest % 32] + digits;
  }
  return digits;
}

/** When an id was made, in milliseconds since 1970. */
export function timeOf(id: string): number {
  let timeMs = 0;
  for (const digit of id.slice(0, TIME_DIGITS)) timeMs = timeMs * 32 + DIGITS.indexOf(digit);
  return timeMs;
}
