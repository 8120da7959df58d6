/**
 * The state of a stateful session as checkpoints hold it: its tracked structures by their changes, its other fields as
 * a whole.
 *
 * The fields are the enumerable own properties of the instance with string names. A base class has to keep its own data
 * elsewhere (in `#private` fields, or as properties that are not enumerable). An app's own `#private` fields can't be
 * seen from outside, so no checkpoint has them; the bundler refuses a class with such.
 *
 * S1  load(segments) makes a new instance of the same class equal to the one that wrote them; and as a session
 *     continues after a checkpoint with the very fields that a load of it would give (its plain fields are replaced by
 *     their copies), no program can tell a session that went on from one that was loaded. The same holds for the
 *     fields' order, for what is frozen, and for which of them are objects that a module of the app holds. A field that
 *     the state knows nothing of stays as the class begins with it: other code may have written it.
 * S2  What can't be serialised is found before anything is written: `value_invalid` with its path. The state counts as
 *     not written then. `check` finds it too, and nothing else: the code that runs a session calls it at the end of
 *     each handler, so that what was answered can be written down.
 * S3  Segments of one state, in order, can be merged by a site that holds them without knowing what is in them
 *     ({@link mergeState}); a merged one is one segment.
 * S4  A state that other code has written is put in by name: a field that is a structure of one kind in the class, and
 *     of another kind or none in the state, is refused with its name, and so is one the other way round.
 *
 * A segment: a list of fields: text name; byte: kind of structure, or 0 for the plain fields (their name is ""), or 255
 * where the field is gone; flag, whether what was before is void; a list of sized bytes. For plain fields this list has
 * one element, and behind it, where a load would come to another order, their names in theirs, as content.ts writes a
 * list.
 */
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { AppError } from "../vocabulary/errors.ts";
import { decodeContent, encodeContent, encodePlain, isSame } from "./content.ts";
import { fieldsPass, isOfClass } from "./field_walk.ts";
import { checkField, step, unfit } from "./owned.ts";
import {
  ATTACH,
  CHANGED,
  corrupt,
  DETACH,
  isPart,
  KIND,
  KIND_BYTE,
  lock,
  type Part,
  PART_CHANGED,
  partOfByte,
  PATH_OF,
  READ,
  type StructureHolder,
  TOP,
  WRITE,
} from "./part.ts";

const PLAIN = 0;
const GONE = 255;

/**
 * Bytes that the changes of a structure may take at least before it is written as a whole. They may take as many as the
 * structure did when it was last written as a whole: a load reads twice the state at most, and a byte is written again
 * at most once for each that changed.
 */
const CHANGES_BYTES_MIN = 4 * 1024;
/** Bytes up to which plain fields are in each checkpoint: to keep them for comparing would cost more. */
const PLAIN_ALWAYS_BYTES = 512;

/** Bytes beyond which a written segment is not copied to its exact length. */
const COPIED_BYTES_MAX = 64 * 1024;

interface Bound {
  readonly part: Part;
  wholeBytes: number;
  changesBytes: number;
}

type Fields = Record<string, unknown>;

export class SessionState implements StructureHolder {
  readonly #instance: Fields;
  /** Structures as of the last checkpoint or load, by field. */
  readonly #bound = new Map<string, Bound>();
  /** Prototype of the session's class. */
  readonly #prototype: object | null;
  /**
   * Names of the fields that the class begins with. (`#initialParts`: those of them that are structures; `#gone`:
   * fields that are written as gone.)
   */
  readonly #initial: readonly string[];
  readonly #initialParts: ReadonlySet<string>;
  readonly #gone = new Set<string>();
  /** Names of the fields that were given up. */
  readonly #leftOut = new Set<string>();
  /** Plain fields as they were written last, where they are large. */
  #plain: Uint8Array | undefined;
  #order: Uint8Array | null = null;
  #isNew = true;

  /**
   * @param instance a session just constructed: its initialisers have run, none of its handlers.
   * @throws AppError `value_invalid` where a structure is in two fields.
   */
  constructor(instance: object) {
    this.#instance = instance as Fields;
    this.#prototype = Object.getPrototypeOf(instance);
    this.#initial = Object.keys(instance);
    this.#initialParts = new Set(this.#initial.filter((name) => isPart(this.#instance[name])));
    for (const [name, each] of Object.entries(this.#instance)) if (isPart(each)) this.#bind(name, each);
  }

  get [TOP](): this {
    return this;
  }

  [PART_CHANGED](): void {}

  [PATH_OF](part: Part): string {
    for (const [name, each] of Object.entries(this.#instance)) if (each === part) return name;
    return part[KIND];
  }

  /** Finds what a checkpoint could not hold. @throws AppError `value_invalid` (S2) */
  check(): void {
    const isOfClass = Object.getPrototypeOf(this.#instance) === this.#prototype;
    if (isOfClass && fieldsPass(this.#instance, this.#bound)) return;
    this.#checkPlain();
    this.#checkParts();
  }

  /**
   * Gives up the fields that a checkpoint could not hold, and returns the reason for each. A session that loads the
   * next checkpoint has these fields as its class begins with them.
   */
  leaveOut(): string[] {
    const why: string[] = [];
    for (const name of Reflect.ownKeys(this.#instance)) {
      try {
        this.#checkNamed(name);
      } catch (error) {
        // A field that can't be deleted can't be written down either, and the error says so.
        if (!(error instanceof AppError) || !Reflect.deleteProperty(this.#instance, name)) throw error;
        why.push(error.message);
        if (typeof name === "string") this.#leftOut.add(name);
      }
    }
    return why;
  }

  /** Checks that each structure is in one field, and in no other structure. */
  #checkParts(): void {
    const places = new Map<Part, string>();
    for (const [name, part] of Object.entries(this.#instance)) {
      // Most structures are where they were.
      if (!isPart(part) || this.#bound.get(name)?.part === part && !places.has(part)) continue;
      const other = places.get(part) ?? this.#placeOf(part, name);
      if (other !== undefined) throw twice(name, part, other);
      places.set(part, name);
      const top = part[TOP];
      const isIn = top === this ? this.#isOwn(part) : top === undefined || top === part;
      if (!isIn) throw twice(name, part, "another structure");
      lock(part, name);
    }
  }

  /** Returns another field that a structure is in. */
  #placeOf(part: Part, but: string): string | undefined {
    for (const [name, each] of Object.entries(this.#instance)) if (each === part && name !== but) return name;
    return undefined;
  }

  /** Reports whether a structure was in a field, under whatever name. */
  #isOwn(part: Part): boolean {
    for (const bound of this.#bound.values()) if (bound.part === part) return true;
    return false;
  }

  /** Checks the plain fields. @throws AppError `value_invalid` for one that can't be kept, with its path. */
  #checkPlain(): void {
    if (Object.getPrototypeOf(this.#instance) !== this.#prototype) {
      throw unfit("the session's class", "it was given another prototype, which no checkpoint has");
    }
    if (!Object.isExtensible(this.#instance)) {
      throw unfit(
        "the session's fields",
        "it was frozen, sealed, or kept from having more, which a load can't do",
      );
    }
    for (const name of Reflect.ownKeys(this.#instance)) this.#checkNamed(name);
  }

  /** Checks one field. @throws AppError `value_invalid` */
  #checkNamed(name: string | symbol): void {
    const found = Reflect.getOwnPropertyDescriptor(this.#instance, name);
    if (typeof name === "symbol") {
      throw unfit(
        `[${String(name)}]`,
        "a field whose name is a symbol, which no checkpoint has: name it by a text",
      );
    }
    const place = step(name).replace(/^\./, "");
    if (name === "__proto__" || isOfClass(this.#prototype, name)) {
      throw unfit(place, "a field with the name of what its class has: name it otherwise");
    }
    if (found === undefined) return;
    if (!("value" in found)) {
      throw unfit(
        place,
        "a field with a getter or setter, which no checkpoint has: make it one of the class",
      );
    }
    if (found.enumerable !== true) {
      throw unfit(place, "a field that is not enumerable, which no checkpoint has: assign it");
    }
    if (found.writable !== true) {
      throw unfit(place, "a field that can't be written, which a load has to do: assign it");
    }
    if (!isPart(found.value)) checkField(found.value, place);
  }

  /**
   * Returns a segment with what changed since the last one, or with all of the state. To be called only where no
   * handler runs: plain fields are replaced by copies (S1).
   *
   * @throws AppError `value_invalid` (S2), `limit_value`.
   */
  checkpoint(isWhole = false): Uint8Array {
    const isAll = isWhole || this.#isNew;
    const plain = this.#encodePlain();
    const fields: Field[] = [];
    // Fields may have changed places.
    for (const [name, { part }] of [...this.#bound]) {
      const now = this.#instance[name];
      if (isPart(now) && now !== part) this.#letGo(name);
    }
    for (const name of new Set([...this.#bound.keys(), ...this.#initial])) {
      const isBound = this.#bound.has(name);
      if (isBound ? isPart(this.#instance[name]) : Object.hasOwn(this.#instance, name)) continue;
      if (!isBound && this.#leftOut.has(name)) continue;
      this.#letGo(name);
      if (!isBound && !isAll && this.#gone.has(name)) continue;
      this.#gone.add(name);
      fields.push({ name, kind: GONE, isFresh: true, segments: [] });
    }
    for (const [name, each] of Object.entries(this.#instance)) {
      if (!isPart(each)) continue;
      const segment = this.#writePart(name, each, isAll);
      if (segment !== null) fields.push(segment);
    }
    const order = this.#encodeOrder();
    const isOrderSame = order === null
      ? this.#order === null
      : this.#order !== null && isSame(order, this.#order);
    if (isAll || plain.isChanged || !isOrderSame) {
      const segments = order === null ? [plain.bytes] : [plain.bytes, order];
      fields.push({ name: "", kind: PLAIN, isFresh: true, segments });
      this.#keepPlain(segments);
    }
    this.#isNew = false;
    this.#renew(plain.fields, plain.bytes);
    return encodeFields(fields);
  }

  /**
   * Makes the instance equal to the one that wrote these segments, oldest first. The segments are kept until their
   * content was read, and must not be changed.
   *
   * @throws AppError `value_corrupt`.
   */
  load(...segments: readonly Uint8Array[]): void {
    this.#load(merged(segments.map(decodeFields)));
  }

  /**
   * Does what `load` does with segments that other code has written.
   *
   * @throws AppError `value_invalid` (S4), `value_corrupt`.
   */
  loadOfOther(...segments: readonly Uint8Array[]): void {
    const fields = merged(segments.map(decodeFields));
    for (const { name, kind } of fields) if (kind !== GONE && kind !== PLAIN) this.#checkKind(name, kind);
    for (const { kind, segments } of fields) {
      if (kind === PLAIN) { for (const name of namesOf(segments)) this.#checkKind(name, PLAIN); }
    }
    this.#load(fields);
  }

  /** Lets all structures of the instance go: another object may have them. */
  release(): void {
    for (const name of [...this.#bound.keys()]) this.#letGo(name);
  }

  /** Checks that the class has a structure of that kind in a field, or none (S4). */
  #checkKind(name: string, kind: number): void {
    const own = this.#instance[name];
    const wanted = isPart(own) ? KIND_BYTE[own[KIND]] : own === undefined || own === null ? kind : PLAIN;
    if (wanted === kind) return;
    throw new AppError(
      "value_invalid",
      `can't read ${name}: the state has ${kindText(kind)} there, and this class ${kindText(wanted)}`,
    );
  }

  #load(fields: readonly Field[]): void {
    for (const { name, kind } of fields) {
      if (kind !== GONE) continue;
      this.#letGo(name);
      delete this.#instance[name];
      this.#gone.add(name);
    }
    for (const field of fields) if (field.kind !== GONE && field.kind !== PLAIN) this.#loadPart(field);
    for (const field of fields) if (field.kind === PLAIN) this.#loadPlain(field);
    this.#isNew = false;
  }

  #writePart(name: string, part: Part, isAll: boolean): Field | null {
    let bound = this.#bound.get(name);
    if (bound?.part !== part) {
      if (bound !== undefined) this.#letGo(name);
      bound = this.#bind(name, part);
    } else if (!isAll && !part[CHANGED]) return null;
    const isWhole = isAll || bound.wholeBytes < 0 ||
      bound.changesBytes > Math.max(CHANGES_BYTES_MIN, bound.wholeBytes);
    this.#gone.delete(name);
    const segment = part[WRITE](isWhole);
    if (isWhole) [bound.wholeBytes, bound.changesBytes] = [segment.length, 0];
    else bound.changesBytes += segment.length;
    return { name, kind: KIND_BYTE[part[KIND]], isFresh: isWhole, segments: [segment] };
  }

  #bind(name: string, part: Part): Bound {
    part[ATTACH](this);
    const bound = { part, wholeBytes: -1, changesBytes: 0 };
    this.#bound.set(name, bound);
    return bound;
  }

  #letGo(name: string): void {
    this.#bound.get(name)?.part[DETACH]();
    this.#bound.delete(name);
  }

  #plainFields(): Fields {
    const fields: Fields = {};
    for (const [name, value] of Object.entries(this.#instance)) {
      if (isPart(value)) continue;
      fields[name] = value;
    }
    return fields;
  }

  #encodePlain(): { readonly fields: Fields; readonly bytes: Uint8Array; readonly isChanged: boolean } {
    this.#checkPlain();
    const fields = this.#plainFields();
    const bytes = encodePlain(fields);
    return { fields, bytes, isChanged: this.#plain === undefined || !isSame(this.#plain, bytes) };
  }

  /** Replaces plain fields by their copies (S1). */
  #renew(fields: Fields, bytes: Uint8Array): void {
    if (!Object.values(fields).some((value) => typeof value === "object" && value !== null)) return;
    Object.assign(this.#instance, decodeContent(bytes));
  }

  /**
   * Returns the names of all fields, where a load without them would come to another order; null where it would not.
   */
  #encodeOrder(): Uint8Array | null {
    const names = namesInOrder(this.#instance);
    const own = this.#initial.filter((name) => !isPlace(name) && Object.hasOwn(this.#instance, name));
    // A field that is written as gone is deleted by a load, and comes last if it is back as a plain field.
    const isAsLoaded = own.every((name, i) =>
      name === names[i] && !this.#gone.has(name) &&
      isPart(this.#instance[name]) === this.#initialParts.has(name)
    ) && names.slice(own.length).every((name) => !isPart(this.#instance[name]));
    return isAsLoaded ? null : encodeOrder(names);
  }

  #keepPlain([plain, order]: readonly Uint8Array[]): void {
    this.#plain = plain !== undefined && plain.length > PLAIN_ALWAYS_BYTES ? plain : undefined;
    this.#order = order ?? null;
  }

  #loadPlain({ segments }: Field): void {
    const [bytes, order, ...more] = segments;
    if (bytes === undefined || more.length > 0) throw corrupt("plain fields are not there once");
    const fields = decodeContent(bytes);
    if (typeof fields !== "object" || fields === null) throw corrupt("plain fields are no object");
    // Fields have to be in their order, which Object.keys shows; another way would be slower for each later use of the
    // object.
    const after = namesInOrder(fields);
    const before = namesInOrder(this.#plainFields()).filter((name) => Object.hasOwn(fields, name));
    if (before.some((name, i) => name !== after[i])) {
      for (const name of before) {
        delete this.#instance[name];
      }
    }
    Object.assign(this.#instance, fields);
    this.#keepPlain(segments);
    if (order !== undefined) this.#putInOrder(decodeOrder(order));
  }

  /** Puts the named fields last, in this order. */
  #putInOrder(names: readonly string[]): void {
    for (const name of names) {
      if (!Object.hasOwn(this.#instance, name)) continue;
      const value = this.#instance[name];
      delete this.#instance[name];
      this.#instance[name] = value;
    }
  }

  #loadPart({ name, kind, segments }: Field): void {
    let bound = this.#bound.get(name);
    const isRead = bound !== undefined && bound.part === this.#instance[name] &&
      KIND_BYTE[bound.part[KIND]] === kind;
    if (bound === undefined || !isRead) {
      const part = partOfByte(kind);
      // Segments are read before the structure is bound: one that has a holder gets no names any more.
      for (const segment of segments) part[READ](segment);
      this.#letGo(name);
      this.#instance[name] = part;
      bound = this.#bind(name, part);
    } else for (const segment of segments) bound.part[READ](segment);
    for (const { length } of segments) {
      if (bound.wholeBytes < 0) bound.wholeBytes = length;
      else bound.changesBytes += length;
    }
  }
}

const twice = (name: string, part: Part, other: string): AppError =>
  unfit(name, `the tracked ${part[KIND]} that is in ${other}, too: it can be in one place only`);

/**
 * Reports whether a field's name is an index: such names come first, in their own order, whenever they were assigned.
 */
const isPlace = (name: string): boolean => /^(?:0|[1-9]\d{0,9})$/.test(name) && Number(name) < 2 ** 32 - 1;

const namesInOrder = (fields: object): string[] => Object.keys(fields).filter((name) => !isPlace(name));

interface Field {
  readonly name: string;
  readonly kind: number;
  /** True where what was before is void. */
  readonly isFresh: boolean;
  readonly segments: readonly Uint8Array[];
}

const encodeOrder = (names: readonly string[]): Uint8Array => encodeContent(names, true);

/** Decodes the order of fields. @throws AppError `value_corrupt` */
function decodeOrder(bytes: Uint8Array): readonly string[] {
  const names = decodeContent(bytes);
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    throw corrupt("fields have no order");
  }
  return names;
}

function encodeFields(fields: readonly Field[]): Uint8Array {
  const size = fields.reduce((sum, field) => sum + 2 * field.name.length + 16 + sizeOf(field), 64);
  const w = new Writer(size);
  w.list(fields, ({ name, kind, isFresh, segments }) => {
    w.text(name).byte(kind).flag(isFresh).list(segments, (segment) => w.bytes(segment));
  });
  // A large segment is not copied: its writer is used by nothing else.
  return size < COPIED_BYTES_MAX ? w.done() : w.view();
}

const sizeOf = ({ segments }: Field): number =>
  segments.reduce((sum, segment) => sum + segment.length + 8, 0);

/** Returns the fields of a segment, and the bytes that each takes. @throws AppError `value_corrupt` */
export const sizesOf = (
  segment: Uint8Array,
): { readonly name: string; readonly isFresh: boolean; readonly length: number }[] =>
  decodeFields(segment).map((field) => ({
    name: field.name,
    isFresh: field.isFresh,
    length: sizeOf(field) + field.name.length,
  }));

function decodeFields(bytes: Uint8Array): Field[] {
  try {
    const r = new Reader(bytes);
    const fields = r.list(() => ({
      name: r.text(),
      kind: r.byte(),
      isFresh: r.flag(),
      segments: r.list(() => r.view()),
    }));
    r.end();
    return fields;
  } catch (error) {
    if (error instanceof CodecError) throw corrupt(error.message);
    throw error;
  }
}

function merged(states: readonly (readonly Field[])[]): Field[] {
  const fields = new Map<string, Field>();
  for (const field of states.flat()) {
    const before = fields.get(field.name);
    if (!field.isFresh && before?.kind !== field.kind) {
      throw corrupt(`${JSON.stringify(field.name)} has changes without what they change`);
    }
    const earlier = field.isFresh ? [] : before?.segments ?? [];
    fields.set(field.name, { ...field, isFresh: true, segments: [...earlier, ...field.segments] });
  }
  return [...fields.values()];
}

/**
 * Merges several segments, oldest first, into one; the first has to be a whole one. The content of structures and
 * values is not decoded.
 *
 * @throws AppError `value_corrupt`.
 */
export const mergeState = (...segments: readonly Uint8Array[]): Uint8Array =>
  encodeFields(merged(segments.map(decodeFields)));

/** Returns the names of plain fields. @throws AppError `value_corrupt` */
const namesOf = ([bytes]: readonly Uint8Array[]): string[] =>
  bytes === undefined ? [] : Object.keys(Object(decodeContent(bytes)));

function kindText(byte: number): string {
  const kind = Object.entries(KIND_BYTE).find(([, each]) => each === byte)?.[0];
  return kind === undefined ? "a plain field" : `a ${kind}`;
}
