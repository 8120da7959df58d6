/**
 * The keys and values of a run: numbers of the history on one side, packed keys and tagged bytes on the other.
 *
 * A set value says which write made it. Each `sum` adds a power of four of its own, so that the total tells
 * which writes are in it, and which are in it twice.
 */
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { resolve } from "../../store/model/merge.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import type { Seen } from "./history.ts";
import type { Plan } from "./topology.ts";

/** A u64 has 32 digits to the base of four. */
const SUMS_PER_KEY_MAX = 32;
const APP = ["a", "sim"] as const;

const utf8 = new TextEncoder();
const text = new TextDecoder();

/** The keys of a run; sum keys are the last ones, in a group of their own. */
export class Keyspace {
  readonly keys: readonly Key[];
  readonly groups: readonly { readonly range: Range; readonly keys: readonly number[] }[];
  readonly #numbers = new Map<string, number>();
  readonly #firstSum: number;
  readonly #padding: string;
  /** Per sum key, its writes in the order of their digits. */
  readonly #sums = new Map<number, number[]>();

  constructor(plan: Plan) {
    const keys: Key[] = [];
    const groups: { range: Range; keys: number[] }[] = [];
    const add = (group: string, count: number) => {
      const numbers: number[] = [];
      for (let i = 0; i < count; i++) numbers.push(keys.push(packKey([...APP, group, i])) - 1);
      groups.push({ range: prefixRange(packKey([...APP, group])), keys: numbers });
    };
    for (let group = 0; group < plan.groups; group++) add(`g${group}`, plan.keysPerGroup);
    this.#firstSum = keys.length;
    if (plan.sumKeys > 0) add("sum", plan.sumKeys);
    this.keys = keys;
    this.groups = groups;
    for (const [number, key] of keys.entries()) this.#numbers.set(key, number);
    this.#padding = " ".repeat(plan.valueBytes);
  }

  get size(): number {
    return this.keys.length;
  }

  /** How many keys take sets and deletions: numbers below this. */
  get plain(): number {
    return this.#firstSum;
  }

  isSum(key: number): boolean {
    return key >= this.#firstSum;
  }

  key(number: number): Key {
    const key = this.keys[number];
    if (key === undefined) throw new RangeError(`a run has no key ${number}`);
    return key;
  }

  /** As an app has it that names rows by group and number. */
  name(number: number): string {
    const [group, at] = unpackKey(this.key(number)).slice(APP.length);
    return `${group}/${at}`;
  }

  number(key: string): number | undefined {
    return this.#numbers.get(key);
  }

  value(write: number): Uint8Array {
    const body = utf8.encode(`${write}${this.#padding}`);
    const out = new Uint8Array(body.length + 1);
    out[0] = VALUE_TAG.text;
    out.set(body, 1);
    return out;
  }

  /** The amount of a sum write; null where the key has had as many as a u64 can tell apart. */
  amount(key: number, write: number): Uint8Array | null {
    const sums = this.#sums.get(key) ?? [];
    this.#sums.set(key, sums);
    if (sums.length >= SUMS_PER_KEY_MAX) return null;
    const out = new Uint8Array(9);
    out[0] = VALUE_TAG.u64;
    new DataView(out.buffer).setBigUint64(1, 4n ** BigInt(sums.length), true);
    sums.push(write);
    return out;
  }

  /** A row as clients and checkers see it; undefined for rows that are none of theirs. */
  seen(row: Row): Seen | undefined {
    const key = this.number(row.key);
    if (key === undefined) return undefined;
    const stamp = versionstamp(row);
    const value = resolve(row.value);
    if (value === null) return { key, write: null, stamp };
    if (!this.isSum(key)) {
      const write = Number(text.decode(value.subarray(1)).trim());
      return { key, write: Number.isSafeInteger(write) ? write : -1, stamp };
    }
    return { key, write: null, stamp, sums: this.#decodeSums(key, value) };
  }

  absent(key: number): Seen {
    return this.isSum(key) ? { key, write: null, stamp: "", sums: [] } : { key, write: null, stamp: "" };
  }

  #decodeSums(key: number, value: Uint8Array): number[] {
    let left = new DataView(value.buffer, value.byteOffset + 1, 8).getBigUint64(0, true);
    const writes: number[] = [];
    for (const write of this.#sums.get(key) ?? []) {
      for (let times = left % 4n; times > 0n; times--) writes.push(write);
      left /= 4n;
    }
    return left === 0n ? writes : [...writes, -1];
  }
}
