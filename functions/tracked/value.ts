/**
 * The tracked value: a checkpoint holds it only where it changed. It is for what is large and changes seldom; small
 * things are as well off in plain fields.
 *
 * A segment: flag, whether it is whole, or only has the changes inside the structure that is the value. A whole one: a
 * page of one value. Else the sized segment of that structure.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import { Container, readThrough } from "./container.ts";
import type { Held } from "./owned.ts";
import type { Put, TrackedValue } from "./structures.ts";
import { type Cell, PagedValue, PageWriter, readEncodedPage } from "./pages.ts";
import { corrupt, isPart, KIND, PATH_OF, READ, register, WRITE } from "./part.ts";

/** Tracked value, as its holder and an app see it. */
export class ValuePart<T> extends Container implements TrackedValue<T> {
  override get [KIND](): "value" {
    return "value";
  }
  #cell: Cell;
  /** True where the value was set since the last write. */
  #isSet = true;

  constructor(initial: Put<T>) {
    super();
    this.#cell = this.admit(initial, () => "value");
  }

  get(): Held<T> {
    return readThrough(this.#cell, (cell) => this.#cell = cell) as Held<T>;
  }

  set(value: Put<T>): void {
    if (isPart(value) && value === this.#cell) return;
    const cell = this.admit(value, () => this.path);
    this.release(this.#cell);
    this.#cell = cell;
    this.#isSet = true;
    this.touch();
  }

  update(change: (value: Held<T>) => Put<T>): void {
    this.set(change(this.get()));
  }

  toJSON(): Held<T> {
    return this.get();
  }

  override [PATH_OF](): string {
    return this.path;
  }

  protected override write(isWhole: boolean): Uint8Array {
    const isAll = isWhole || this.#isSet;
    const w = new Writer(64).flag(isAll);
    if (isAll) new PageWriter(w).write([this.#cell]);
    else if (isPart(this.#cell)) w.bytes(this.#cell[WRITE](false));
    this.#isSet = false;
    this.allWritten();
    return w.done();
  }

  protected override read(segment: Uint8Array): void {
    const r = new Reader(segment);
    if (r.flag()) {
      const { page, slots, parts: [inside] } = readEncodedPage(r);
      if (slots !== 1) throw corrupt(`a value is one, and not ${slots}`);
      this.release(this.#cell);
      this.#cell = inside === undefined ? new PagedValue(page, 0) : this.adopt(inside[1]);
    } else if (isPart(this.#cell)) this.#cell[READ](r.view());
    else throw corrupt("a value that is no structure has changed inside");
    r.end();
    this.#isSet = false;
    this.allWritten();
  }
}

register("value", () => new ValuePart<unknown>(undefined));

/**
 * Declares a tracked value as a field of a Session class.
 *
 * @throws AppError `value_invalid` for a value that no checkpoint can hold.
 */
export function value<T>(initial: Put<T>): TrackedValue<T> {
  return new ValuePart<T>(initial);
}
