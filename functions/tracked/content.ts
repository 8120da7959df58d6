/**
 * The bytes of values inside checkpoints. This is not functions/values/value.ts: what V8 serialises has no single form
 * (the same array is other bytes after it was read), and the digest of a checkpoint has to be the same when it is taken
 * again in a replay; and it is node:v8, which no app's bundle may import.
 *
 * C1  decode(encode(v)) is a structured clone of v, for all that owned.ts lets in; encode of that is the same bytes.
 * C2  decode gives a value or throws, for any bytes, shares no memory with them, and allocates a small multiple of them.
 *
 * Bytes: tag 1, then JSON in UTF-8, for trees that JSON keeps as they are; or tag 2, then a node. A node is a byte and:
 *
 *   0 null · 1 undefined · 2 false · 3 true · 4 eight bytes, a number · 5 sized UTF-8 · 6 sized UTF-16, little endian,
 *   for a text that is not well-formed · 7 flag negative, sized hexadecimal digits, a bigint · 8 list of nodes, an
 *   array · 9 varint length, list of (name, node), an array with holes or names · 10 list of (name, node), an object ·
 *   11 number, a Date · 12 source, flags, a RegExp · 13 list of (node, node), a Map · 14 list of nodes, a Set · 15
 *   sized bytes, an ArrayBuffer · 16 byte type, varint offset, varint length, node of its buffer, a view · 17 byte name
 *   (16 more where the cause is enumerable), flag and message, flag and stack, flag and node of the cause, an error ·
 *   18 varint n, the n-th object of these bytes, counted where they begin · 19 source, flags, varint lastIndex, a
 *   RegExp that is not at its beginning · 20 byte (1 not extensible, 2 sealed, 3 frozen), node of that object · 21 as
 *   10, of an object without a prototype · 22 name, sized bytes, an object that a module of the app holds under that
 *   name, and a copy of it
 *
 * Names, sources and messages are nodes of a text. Nodes 20 and 22 are only in the plain fields of a session
 * (`encodePlain`): a value in a structure is a frozen copy of its own.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import { codeOf } from "../vocabulary/errors.ts";
import { isDense } from "./owned.ts";
import { corrupt } from "./part.ts";

const JSON_TAG = 1;
const NODE_TAG = 2;
/**
 * Levels of a value: JSON.parse and this file recurse. owned.ts lets in 100, and a page and fields are around these.
 */
const DEPTH_MAX = 110;

const utf8 = new TextEncoder();
const utf8Strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const JSON_MARK = String.fromCharCode(JSON_TAG);

/**
 * Encodes a value that {@link checkValue} or {@link takeIn} let in.
 *
 * @param isTree true where it is known that no object of the value's plain data is in it twice.
 */
export function encodeContent(value: unknown, isTree = false): Uint8Array<ArrayBuffer> {
  if (isJson(value, 0, isTree ? null : new Set(), false)) {
    return utf8.encode(JSON_MARK + JSON.stringify(value));
  }
  return written(value, "copies");
}

/**
 * Encodes plain fields: an object that is frozen, sealed or not extensible is so again when it is read, and an object
 * that a module holds is the module's own.
 */
export function encodePlain(fields: Readonly<Record<string, unknown>>): Uint8Array<ArrayBuffer> {
  if (isJson(fields, 0, new Set(), true)) return utf8.encode(JSON_MARK + JSON.stringify(fields));
  return written(fields, "fields");
}

function written(value: unknown, of: Written): Uint8Array<ArrayBuffer> {
  const writer = new NodeWriter(of);
  writer.node(value);
  return writer.done();
}

/** Objects that the modules of the app hold, by names which are the same wherever the same code was loaded. */
export interface ModuleObjects {
  nameOf(object: object): string | undefined;
  named(name: string): object | undefined;
}

let modules: ModuleObjects | undefined;
/** Bytes of objects that modules hold; these objects are never changed. */
let copiesOfModules = new WeakMap<object, Uint8Array>();

/** Sets the objects of the app's modules: fields that refer to one are read with it from now on. */
export function recognizeModules(objects: ModuleObjects | undefined): void {
  modules = objects;
  copiesOfModules = new WeakMap();
}

/** Reports whether a module may hold an object: all that modules hold is frozen, but bytes can't be. */
const mayBeOfModule = (object: object): boolean =>
  !Object.isExtensible(object) || ArrayBuffer.isView(object) || object instanceof ArrayBuffer;

/** Returns the bytes of an object that a module holds, for comparison with those of another process. */
function copyOfModules(object: object): Uint8Array {
  let bytes = copiesOfModules.get(object);
  if (bytes === undefined) copiesOfModules.set(object, bytes = written(object, "module"));
  return bytes;
}

/**
 * Encodes a value that V8 has read, as nodes: in one form, whatever form V8 holds it in. Of a view's buffer only the
 * bytes that the view shows are written: the rest is what V8 read it from.
 *
 * @throws TypeError for a value that no node can hold, or that is deeper than DEPTH_MAX.
 */
export function encodeNodes(value: unknown): Uint8Array<ArrayBuffer> {
  return written(value, "values");
}

/** Decodes a value. @throws AppError `value_corrupt`. */
export function decodeContent(bytes: Uint8Array): unknown {
  try {
    if (bytes[0] === JSON_TAG) return JSON.parse(utf8Strict.decode(bytes.subarray(1)));
    if (bytes[0] !== NODE_TAG) throw corrupt(`a value has no tag ${bytes[0]}`);
    return new NodeReader(bytes.subarray(1)).whole();
  } catch (error) {
    if (codeOf(error) === "value_corrupt") throw error;
    throw corrupt(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Reports whether JSON keeps a tree as it is, and no object is in two places of it; for fields, also whether all
 * objects are extensible.
 */
function isJson(value: unknown, depth: number, seen: Set<object> | null, isField: boolean): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      return value === null || isJsonObject(value, depth, seen, isField);
    default:
      return false;
  }
}

function isJsonObject(value: object, depth: number, seen: Set<object> | null, isField: boolean): boolean {
  if (depth > DEPTH_MAX || seen?.has(value) || (isField && !Object.isExtensible(value))) return false;
  seen?.add(value);
  if (Array.isArray(value)) {
    return isDense(value) && value.every((each) => isJson(each, depth + 1, seen, isField));
  }
  if (Object.getPrototypeOf(value) !== Object.prototype || "toJSON" in value) return false;
  for (const name of Object.keys(value)) {
    if (!isJson((value as Record<string, unknown>)[name], depth + 1, seen, isField)) return false;
  }
  return true;
}

const VIEWS = [
  Uint8Array,
  Int8Array,
  Uint8ClampedArray,
  Uint16Array,
  Int16Array,
  Uint32Array,
  Int32Array,
  Float32Array,
  Float64Array,
  BigUint64Array,
  BigInt64Array,
  DataView,
  ...(typeof Float16Array === "undefined" ? [] : [Float16Array]),
] as const;
const ERRORS = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError] as const;

/** Purpose of a writer: values of calls, copies in structures, plain fields, or objects that a module holds. */
type Written = "values" | "copies" | "fields" | "module";

/** Bit beside the number of an error's type: its cause is enumerable. */
const CAUSE_ENUMERABLE = 0x10;
const NOT_EXTENSIBLE = 1;
const SEALED = 2;
const FROZEN = 3;

class NodeWriter {
  readonly #w = new Writer(256).byte(NODE_TAG);
  readonly #numbers = new Map<object, number>();
  readonly #of: Written;
  #depth = 0;

  constructor(of: Written) {
    this.#of = of;
  }

  done(): Uint8Array<ArrayBuffer> {
    return this.#w.done();
  }

  node(value: unknown): void {
    switch (typeof value) {
      case "undefined":
        return void this.#w.byte(1);
      case "boolean":
        return void this.#w.byte(value ? 3 : 2);
      case "number":
        return this.#number(this.#w.byte(4), value);
      case "string":
        return this.#text(value);
      case "bigint":
        return void this.#w.byte(7).flag(value < 0n).text((value < 0n ? -value : value).toString(16));
      case "object":
        if (value === null) return void this.#w.byte(0);
        if (++this.#depth > DEPTH_MAX) throw new TypeError(`a value is deeper than ${DEPTH_MAX}`);
        this.#object(value);
        this.#depth--;
        return;
      default:
        throw new TypeError(`a ${typeof value} has no bytes`);
    }
  }

  #number(w: Writer, value: number): void {
    const bytes = new Uint8Array(8);
    const view = new DataView(bytes.buffer);
    // NaN has many forms, and which one it is depends on what V8 has compiled (C1).
    if (Number.isNaN(value)) view.setUint16(6, 0x7ff8, true);
    else view.setFloat64(0, value, true);
    w.raw(bytes);
  }

  #text(value: string): void {
    if (value.isWellFormed()) return void this.#w.byte(5).text(value);
    const units = Uint8Array.from(
      { length: value.length * 2 },
      (_, i) => value.charCodeAt(i >> 1) >> (8 * (i % 2)),
    );
    this.#w.byte(6).bytes(units);
  }

  #object(value: object): void {
    const number = this.#numbers.get(value);
    if (number !== undefined) return void this.#w.byte(18).uint(number);
    this.#numbers.set(value, this.#numbers.size);
    const name = this.#of === "fields" && mayBeOfModule(value) ? modules?.nameOf(value) : undefined;
    if (name !== undefined) {
      this.#w.byte(22);
      this.#text(name);
      return void this.#w.bytes(copyOfModules(value));
    }
    if ((this.#of === "fields" || this.#of === "module") && !Object.isExtensible(value)) {
      this.#w.byte(20).byte(
        Object.isFrozen(value) ? FROZEN : Object.isSealed(value) ? SEALED : NOT_EXTENSIBLE,
      );
    }
    if (Array.isArray(value)) return this.#array(value);
    if (ArrayBuffer.isView(value)) return this.#view(value);
    switch (Object.prototype.toString.call(value)) {
      case "[object Date]":
        return this.#number(this.#w.byte(11), (value as Date).getTime());
      case "[object RegExp]":
        return this.#regExp(value as RegExp);
      case "[object Map]":
        this.#w.byte(13);
        return void this.#w.list([...value as Map<unknown, unknown>], ([key, each]) => {
          this.node(key);
          this.node(each);
        });
      case "[object Set]":
        return void this.#w.byte(14).list([...value as Set<unknown>], (each) => this.node(each));
      case "[object ArrayBuffer]":
        return void this.#w.byte(15).bytes(new Uint8Array(value as ArrayBuffer));
      case "[object Error]":
        return this.#error(value as Error);
      case "[object Number]":
      case "[object String]":
      case "[object Boolean]":
      case "[object BigInt]":
        throw new TypeError("a primitive in an object has no bytes");
      default:
        return this.#named(this.#w.byte(Object.getPrototypeOf(value) === null ? 21 : 10), value);
    }
  }

  #regExp({ source, flags, lastIndex }: RegExp): void {
    this.#w.byte(lastIndex === 0 ? 12 : 19);
    this.#text(source);
    this.#text(flags);
    if (lastIndex !== 0) this.#w.uint(lastIndex);
  }

  #array(value: readonly unknown[]): void {
    if (isDense(value)) return void this.#w.byte(8).list(value, (each) => this.node(each));
    this.#named(this.#w.byte(9).uint(value.length), value);
  }

  #named(w: Writer, value: object): void {
    w.list(Object.keys(value), (name) => {
      this.#text(name);
      this.node((value as Record<string, unknown>)[name]);
    });
  }

  #view(value: ArrayBufferView): void {
    const prototype: unknown = Object.getPrototypeOf(value);
    const type = VIEWS.findIndex((each) => each.prototype === prototype);
    if (type < 0) throw new TypeError("such a view has no bytes");
    const length = value instanceof DataView ? value.byteLength : (value as Uint8Array).length;
    const { buffer, byteOffset, byteLength } = value;
    this.#w.byte(16).byte(type).uint(this.#of === "values" ? 0 : byteOffset).uint(length);
    this.node(this.#of === "values" ? buffer.slice(byteOffset, byteOffset + byteLength) : buffer);
  }

  #error(value: Error): void {
    const own = (name: "message" | "stack" | "cause") => Object.hasOwn(value, name);
    const type = ERRORS.findIndex((each) => each.prototype === Object.getPrototypeOf(value));
    const isAssigned = Reflect.getOwnPropertyDescriptor(value, "cause")?.enumerable === true;
    this.#w.byte(17).byte(Math.max(0, type) | (isAssigned ? CAUSE_ENUMERABLE : 0)).flag(own("message"));
    if (own("message")) this.#text(String(value.message));
    const hasStack = own("stack") && typeof value.stack === "string";
    this.#w.flag(hasStack);
    if (hasStack) this.#text(String(value.stack));
    this.#w.flag(own("cause"));
    if (own("cause")) this.node(value.cause);
  }
}

/** Returns the object that a module holds under a name, where it equals the copy that was written; else that copy. */
function ofModule(name: string, copy: Uint8Array): object {
  const own = modules?.named(name);
  if (own !== undefined && isSame(copyOfModules(own), copy)) return own;
  const value = decodeContent(copy);
  if (typeof value !== "object" || value === null) throw corrupt("a module holds no object");
  return value;
}

/** Reports whether two arrays have the same bytes. */
export const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i]);

class NodeReader {
  readonly #r: Reader;
  readonly #objects: unknown[] = [];
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#r = new Reader(bytes);
  }

  whole(): unknown {
    const value = this.node();
    this.#r.end();
    return value;
  }

  node(): unknown {
    if (++this.#depth > 2 * DEPTH_MAX) throw corrupt("a value is too deep");
    const value = this.#node(this.#r.byte());
    this.#depth--;
    return value;
  }

  #node(tag: number): unknown {
    switch (tag) {
      case 0:
        return null;
      case 1:
        return undefined;
      case 2:
        return false;
      case 3:
        return true;
      case 4:
        return this.#number();
      case 5:
      case 6:
        return this.#text(tag);
      case 7:
        return this.#bigint();
      case 18:
        return this.#earlier();
      default:
        return this.#object(tag);
    }
  }

  #number(): number {
    const bytes = Uint8Array.from({ length: 8 }, () => this.#r.byte());
    return new DataView(bytes.buffer).getFloat64(0, true);
  }

  #text(tag: number = this.#r.byte()): string {
    if (tag === 5) return this.#r.text();
    if (tag !== 6) throw corrupt(`a text is no node of kind ${tag}`);
    const units = this.#r.bytes();
    if (units.length % 2 === 1) throw corrupt("a text has half a character");
    let text = "";
    for (let i = 0; i < units.length; i += 2) {
      text += String.fromCharCode((units[i] ?? 0) | ((units[i + 1] ?? 0) << 8));
    }
    return text;
  }

  #bigint(): bigint {
    const isNegative = this.#r.flag();
    const digits = this.#r.text();
    if (!/^[0-9a-f]+$/.test(digits)) throw corrupt("a bigint has no digits");
    const value = BigInt(`0x${digits}`);
    return isNegative ? -value : value;
  }

  #earlier(): unknown {
    const number = this.#r.uint();
    if (number >= this.#objects.length) throw corrupt(`there is no object ${number} before`);
    return this.#objects[number];
  }

  /** Counts an object where it begins: what is in it may refer to it. */
  #begin<T extends object>(object: T): T {
    this.#objects.push(object);
    return object;
  }

  #object(tag: number): unknown {
    const r = this.#r;
    switch (tag) {
      case 8: {
        const array = this.#begin<unknown[]>([]);
        r.list(() => void array.push(this.node()));
        return array;
      }
      case 9: {
        const array = this.#begin<unknown[]>([]);
        array.length = r.uint();
        return this.#named(array);
      }
      case 10:
        return this.#named(this.#begin({}));
      case 11:
        return this.#begin(new Date(this.#number()));
      case 12:
        return this.#begin(new RegExp(this.#text(), this.#text()));
      case 19: {
        const regExp = this.#begin(new RegExp(this.#text(), this.#text()));
        regExp.lastIndex = this.#r.uint();
        if (regExp.lastIndex === 0) throw corrupt("a regular expression is at its beginning");
        return regExp;
      }
      case 13: {
        const map = this.#begin(new Map<unknown, unknown>());
        r.list(() => void map.set(this.node(), this.node()));
        return map;
      }
      case 14: {
        const set = this.#begin(new Set<unknown>());
        r.list(() => void set.add(this.node()));
        return set;
      }
      case 15:
        return this.#begin(r.bytes().buffer);
      case 16:
        return this.#view();
      case 17:
        return this.#error();
      case 20:
        return this.#kept(r.byte());
      case 21:
        return this.#named(this.#begin(Object.create(null) as object));
      case 22:
        return this.#begin(ofModule(this.#text(), r.bytes()));
      default:
        throw corrupt(`there is no node of kind ${tag}`);
    }
  }

  /**
   * Reads an object that was frozen, sealed or not extensible. All that is in it is read before, references to itself
   * included.
   */
  #kept(from: number): object {
    const keep = [undefined, Object.preventExtensions, Object.seal, Object.freeze][from];
    const object = this.node();
    if (keep === undefined || typeof object !== "object" || object === null) {
      throw corrupt("nothing is kept so");
    }
    if (!Object.isExtensible(object)) throw corrupt("an object is kept from changes twice");
    return keep(object) as object;
  }

  #named(object: object): object {
    this.#r.list(() => {
      const name = this.#text();
      Object.defineProperty(object, name, {
        value: this.node(),
        writable: true,
        enumerable: true,
        configurable: true,
      });
    });
    return object;
  }

  #view(): ArrayBufferView {
    const number = this.#objects.push(null) - 1;
    const type = VIEWS[this.#r.byte()];
    const [offset, length] = [this.#r.uint(), this.#r.uint()];
    const buffer = this.node();
    if (type === undefined || !(buffer instanceof ArrayBuffer)) throw corrupt("a view is of nothing");
    const view = new (type as new (of: ArrayBuffer, offset: number, length: number) => ArrayBufferView)(
      buffer,
      offset,
      length,
    );
    this.#objects[number] = view;
    return view;
  }

  #error(): Error {
    const number = this.#objects.push(null) - 1;
    const name = this.#r.byte(), enumerable = (name & CAUSE_ENUMERABLE) !== 0;
    const type = ERRORS[name & ~CAUSE_ENUMERABLE];
    if (type === undefined) throw corrupt("there is no such error");
    const error = this.#r.flag() ? new type(this.#text()) : new type();
    this.#objects[number] = error;
    const hasStack = this.#r.flag();
    // The stack is assigned: V8 has a getter and a setter there, and keeps them.
    if (hasStack) error.stack = this.#text();
    else delete error.stack;
    if (this.#r.flag()) {
      const value = this.node();
      Object.defineProperty(error, "cause", { value, enumerable, writable: true, configurable: true });
    } else if (enumerable) throw corrupt("an error has no cause");
    return error;
  }
}
