/** Seeded changes of bytes, texts and JSON: the same for the same dice. */

/** splitmix32: the same numbers for the same seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** The dice of one mutation: any one of a run can be repeated alone. */
  static of(seed: number, at: number): Dice {
    return new Dice(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(at + 1, 0x85ebca6b));
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) % limit;
  }

  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }
}

const CHANGES_MAX = 3;
/** Where readers of numbers go wrong. */
const BORDER_BYTES = [
  [0],
  [1],
  [0x7f],
  [0x80],
  [0xff],
  [0x00, 0x00],
  [0xff, 0xff],
  [0x7f, 0xff, 0xff, 0xff],
  [0x80, 0x00, 0x00, 0x00],
  [0xff, 0xff, 0xff, 0xff],
  [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], // a varint of 2^53 − 1
  [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10], // … and of 2^53
  [0x80, 0x00],
];

/** Flips, cuts, repeats, inserts, splices with another, sets border numbers; the result differs from the original. */
export function mutateBytes(dice: Dice, original: Uint8Array, other: Uint8Array = original): Uint8Array {
  for (;;) {
    let bytes = original;
    for (let times = 1 + dice.below(CHANGES_MAX); times > 0; times--) bytes = changed(dice, bytes, other);
    if (bytes.length === 0) bytes = new Uint8Array(1);
    if (!same(bytes, original)) return bytes;
  }
}

function changed(dice: Dice, bytes: Uint8Array, other: Uint8Array): Uint8Array {
  const at = dice.below(bytes.length + 1);
  const length = 1 + dice.below(dice.pick([1, 4, 64]));
  const from = dice.below(other.length + 1);
  switch (dice.below(8)) {
    case 0:
    case 1: {
      const out = bytes.slice();
      if (out.length > 0) out[at % out.length] = (out[at % out.length] ?? 0) ^ (1 << dice.below(8));
      return out;
    }
    case 2:
      return spliced(bytes, at, length, NONE);
    case 3:
      return spliced(bytes, at, 0, bytes.subarray(at, at + length));
    case 4:
      return spliced(bytes, at, 0, Uint8Array.from({ length }, () => dice.below(256)));
    case 5: {
      const border = Uint8Array.from(dice.pick(BORDER_BYTES));
      return spliced(bytes, at, dice.below(2) * border.length, border);
    }
    case 6:
      return bytes.slice(0, at);
    default:
      return spliced(bytes, at, dice.below(2) * length, other.subarray(from, from + length));
  }
}

const NONE = new Uint8Array(0);

function spliced(bytes: Uint8Array, at: number, remove: number, insert: Uint8Array): Uint8Array {
  const tail = bytes.subarray(Math.min(bytes.length, at + remove));
  const out = new Uint8Array(at + insert.length + tail.length);
  out.set(bytes.subarray(0, at));
  out.set(insert, at);
  out.set(tail, at + insert.length);
  return out;
}

/** Whether two byte arrays are equal. */
export const same = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i]);

const BORDER_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  0.5,
  1e308,
  5e-324,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  -(2 ** 53),
  "",
  " ",
  "\0",
  "a",
  "0",
  "\ud800",
  "a".repeat(41),
  "a".repeat(70_000),
  "../../etc/passwd",
  "http://[::1",
  "/(((((((((((",
  [],
  {},
  [[]],
  { "": null },
];
const STRANGE_NAMES = [
  "",
  "__proto__",
  "constructor",
  "toString",
  "unknown",
  "0",
  "id",
  "name",
  "a".repeat(300),
];

/** Changes JSON: values at borders, fields removed, renamed, doubled, moved from another; 1 in 4 as text. */
export function mutateJson(dice: Dice, original: unknown, other: unknown): unknown {
  if (dice.below(4) === 0) return throughText(dice, original, other);
  const whole = { whole: structuredClone(original) };
  for (let times = 1 + dice.below(CHANGES_MAX); times > 0; times--) {
    const [holder, name] = dice.pick(slotsOf(whole));
    changeSlot(dice, holder, name, other);
  }
  return whole.whole;
}

/** @throws SyntaxError where the changed text is no JSON. */
function throughText(dice: Dice, original: unknown, other: unknown): unknown {
  const [text, more] = [original, other].map((each) => new TextEncoder().encode(JSON.stringify(each)));
  const bytes = mutateBytes(dice, text ?? NONE, more);
  return JSON.parse(new TextDecoder().decode(bytes));
}

type Slot = readonly [holder: Record<string, unknown>, name: string];

function slotsOf(value: unknown): Slot[] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as Record<string, unknown>;
  return Object.keys(holder).flatMap((name): Slot[] => [[holder, name], ...slotsOf(holder[name])]);
}

function changeSlot(dice: Dice, holder: Record<string, unknown>, name: string, other: unknown): void {
  const set = (field: string, value: unknown) =>
    Object.defineProperty(holder, field, { value, writable: true, enumerable: true, configurable: true });
  const value = holder[name];
  const isWhole = name === "whole";
  switch (dice.below(isWhole ? 3 : 7)) {
    case 0:
      return void set(name, structuredClone(dice.pick(BORDER_VALUES)));
    case 1: {
      const slots = slotsOf(other);
      const [from, field] = slots.length === 0 ? [{ other }, "other"] : dice.pick(slots);
      return void set(name, structuredClone((from as Record<string, unknown>)[field]));
    }
    case 2:
      if (typeof value === "string") return void set(name, changedText(dice, value));
      if (typeof value === "number") return void set(name, value + dice.pick([-1, 1, 0.5, 2 ** 32]));
      return void set(name, dice.below(2) === 0 ? [value] : { [dice.pick(STRANGE_NAMES)]: value });
    case 3:
      if (Array.isArray(holder)) return void holder.splice(Number(name), 1);
      return void delete holder[name];
    case 4:
      if (Array.isArray(holder)) return void holder.push(structuredClone(value));
      return void set(dice.pick(STRANGE_NAMES), structuredClone(value));
    case 5:
      if (Array.isArray(holder)) return void holder.reverse();
      delete holder[name];
      return void set(dice.below(2) === 0 ? changedText(dice, name) : dice.pick(STRANGE_NAMES), value);
    default:
      return void set(changedText(dice, name), structuredClone(dice.pick(BORDER_VALUES)));
  }
}

function changedText(dice: Dice, text: string): string {
  const at = dice.below(text.length + 1);
  const character = dice.pick(["", "-", ".", "/", ":", "*", "A", "é", "\0", "\u202e", " ", "9", "{", "("]);
  return text.slice(0, at) + character + text.slice(at + dice.below(2));
}
