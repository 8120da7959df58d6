/**
 * The pages of values in segments. A page is decoded when one of its values is first read: loading a large structure
 * takes the time of its keys, and values that are never read stay as compact as they came.
 *
 * A page: varint number of slots; sized bytes: the array of its values, encoded (null where a structure is); a list of
 * the structures among them: varint slot, byte kind, sized segment.
 */
import type { Reader, Writer } from "../../store/model/codec.ts";
import { decodeContent, encodeContent } from "./content.ts";
import { handOut, type KeptValue, originalOf, takeOver, Unshared } from "./owned.ts";
import { corrupt, isPart, KIND, KIND_BYTE, type Part, partOfByte, READ, WRITE } from "./part.ts";

/**
 * Bytes at which a page is cut, roughly: it is what the first read of one value costs (some 30 µs), against the 100
 * bytes or so that a page costs itself.
 */
const PAGE_BYTES_TARGET = 8 * 1024;
/** Slots of the first page, when nothing is known of the values. */
const FIRST_SLOTS = 16;
const SLOTS_MAX = 1024;

/**
 * Values that came in one page, encoded until one of them is read. Until then the page itself stands in each of its
 * values' places, and the structure that has it there knows the slot: a list by the place, as long as no item moves; a
 * map by the key.
 */
export class EncodedPage {
  /** Place of the first value, in a list. */
  begin = 0;
  /** Keys by slot, in a map. */
  keys: readonly unknown[] = [];
  /** Slot after that of the last key: keys are mostly asked for one after the other. */
  #nextKey = 0;
  #bytes: Uint8Array | undefined;
  readonly #slots: number;
  #values: unknown[] | undefined;

  constructor(bytes: Uint8Array, slots: number) {
    this.#bytes = bytes;
    this.#slots = slots;
  }

  /** Returns the value of a key. */
  ofKey(key: unknown): PagedValue {
    const { keys } = this;
    let slot = this.#nextKey;
    if (keys[slot] !== key) slot = keys.indexOf(key);
    if (slot < 0) slot = keys.findIndex((each) => Object.is(each, key)); // NaN is a key, too
    this.#nextKey = slot + 1;
    return new PagedValue(this, slot);
  }

  /** Returns the value in a place. */
  ofPlace(place: number): PagedValue {
    return new PagedValue(this, place - this.begin);
  }

  /** Returns the value in a slot as it was encoded: for encoding only. */
  original(slot: number): unknown {
    if (this.#values === undefined) {
      const values = this.#bytes === undefined ? [] : decodeContent(this.#bytes);
      if (!Array.isArray(values) || values.length !== this.#slots) {
        throw corrupt(`a page has not ${this.#slots} values`);
      }
      this.#values = values;
      this.#bytes = undefined;
    }
    return this.#values[slot];
  }
}

/** Value that is still in its page. */
export class PagedValue {
  readonly #page: EncodedPage;
  readonly #slot: number;
  constructor(page: EncodedPage, slot: number) {
    this.#page = page;
    this.#slot = slot;
  }
  /** Decodes the value. To be called once: the caller keeps what it gets. */
  take(): KeptValue {
    return takeOver(this.original());
  }
  /** Returns the value as it was encoded: for encoding only. */
  original(): unknown {
    return this.#page.original(this.#slot);
  }
}

/** Content of one place of a structure: a value, one that is still in its page, that page, or another structure. */
export type Cell = KeptValue | PagedValue | EncodedPage | Part;

/** Writer that cuts cells into pages, by the bytes that the last ones took. */
export class PageWriter {
  readonly #w: Writer;
  #slots = FIRST_SLOTS;

  constructor(w: Writer) {
    this.#w = w;
  }

  /** Number of cells in the next page. */
  get slots(): number {
    return this.#slots;
  }

  write(cells: readonly Cell[]): void {
    const before = this.#w.length;
    const parts: [number, Part][] = [];
    let isTree = true;
    const values = cells.map((cell, slot) => {
      if (isPart(cell)) {
        parts.push([slot, cell]);
        return null;
      }
      isTree &&= !(cell instanceof PagedValue || cell instanceof Unshared);
      return cell instanceof PagedValue ? cell.original() : originalOf(cell);
    });
    this.#w.uint(cells.length).bytes(encodeContent(values, isTree));
    this.#w.list(parts, ([slot, part]) => {
      this.#w.uint(slot).byte(KIND_BYTE[part[KIND]]).bytes(part[WRITE](true));
    });
    const each = (this.#w.length - before) / Math.max(1, cells.length);
    this.#slots = Math.max(1, Math.min(SLOTS_MAX, Math.round(PAGE_BYTES_TARGET / each)));
  }
}

/** Page as it lies in a segment. */
export interface ReadPage {
  readonly page: EncodedPage;
  readonly slots: number;
  /** Structures among the page's values, by their slots, which rise. */
  readonly parts: readonly (readonly [slot: number, part: Part])[];
}

/** Reads a page, and decodes none of its values. */
export function readEncodedPage(r: Reader): ReadPage {
  const slots = r.uint();
  if (slots > SLOTS_MAX) throw corrupt(`a page has ${slots} values, more than ${SLOTS_MAX}`);
  const bytes = r.view();
  // Each value takes a byte or more: a forged number can't make this allocate much.
  if (slots > bytes.length) throw corrupt(`${slots} values are not in ${bytes.length} bytes`);
  const page = new EncodedPage(bytes, slots);
  const parts = r.list(() => readPart(r));
  let next = 0;
  for (const [slot] of parts) {
    if (slot < next || slot >= slots) throw corrupt(`a page has no place ${slot} behind ${next - 1}`);
    next = slot + 1;
  }
  return { page, slots, parts };
}

function readPart(r: Reader): [number, Part] {
  const slot = r.uint();
  const part = partOfByte(r.byte());
  part[READ](r.view());
  return [slot, part];
}

/** Returns what an app reads in a cell that is no longer in its page. */
export const read = (cell: Cell): unknown => isPart(cell) ? cell : handOut(cell);
