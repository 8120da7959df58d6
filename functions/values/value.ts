/**
 * The encoding of values as apps know them into tagged bytes (store/model/value.ts), and its reverse. A decoded value
 * equals a structured clone of the encoded one; the shortest and fastest of the encodings that keep it so is used.
 *
 * V1  decodeValue(encodeValue(v)) is a structured clone of v.
 * V2  JSON is used only for values that survive it unchanged: null, booleans, and trees of plain objects, dense arrays,
 *     strings, booleans, null and finite numbers other than −0, in which no object appears twice.
 * V3  decodeValue either returns a value or throws `value_corrupt`, for any bytes; what it returns shares no
 *     memory with them.
 * V4  In an isolate of stateful sessions the same value is the same bytes (`useOneForm`), also when its code was
 *     compiled since or its state was loaded: a replay is held to the bytes that left. The bytes of V8's serialiser
 *     differ: a number that is whole may be an integer or a double there, an array with room may be sparse.
 *
 * Runs in the trusted part of an isolate and in the site; an app's own bundle does not contain it (node:v8).
 */
import { Buffer } from "node:buffer";
import { DefaultDeserializer, deserialize, serialize } from "node:v8";
import { shortAscii } from "../../store/model/codec.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import { assertCloneable } from "./cloneable.ts";
import { AppError, KvTypeError } from "../vocabulary/errors.ts";
import { isKvU64, KvU64 } from "./kv_u64.ts";
import { VALUE_BYTES_MAX } from "../vocabulary/limits.ts";
import { decodeContent, encodeNodes } from "../tracked/content.ts";
import { isPart, KIND } from "../tracked/part.ts";

/** Levels of a tree beyond which it goes through structured clone: recursion here must not reach the stack's end. */
const JSON_DEPTH_MAX = 64;
/** Nodes of a tree beyond which it goes through structured clone: the check would cost more than it saves. */
const JSON_NODES_MAX = 65_536;

const utf8 = new TextEncoder();
const utf8Strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const JSON_MARK = String.fromCharCode(VALUE_TAG.json);
const TEXT_MARK = String.fromCharCode(VALUE_TAG.text);

/**
 * Encodes a value.
 *
 * @throws KvTypeError `limit_value` above 1 MiB, `value_invalid` for what has no structured clone (a function).
 */
export function encodeValue(value: unknown): Uint8Array<ArrayBuffer> {
  const bytes = encode(value);
  if (bytes.length - 1 > VALUE_BYTES_MAX) throw tooLarge(bytes.length - 1);
  return bytes;
}

function encode(value: unknown): Uint8Array<ArrayBuffer> {
  switch (typeof value) {
    case "string":
      if (value.length > VALUE_BYTES_MAX) throw tooLarge(value.length);
      return value.isWellFormed() ? utf8.encode(TEXT_MARK + value) : clone(value);
    case "number":
      return encodeNumber(value);
    case "boolean":
      return utf8.encode(JSON_MARK + value);
    case "object":
      if (value === null) return utf8.encode(JSON_MARK + "null");
      if (value instanceof Uint8Array) return tagged(VALUE_TAG.bytes, value);
      if (isKvU64(value)) return encodeU64(value.value);
      return new JsonCheck().passes(value) ? utf8.encode(JSON_MARK + JSON.stringify(value)) : clone(value);
    default:
      return clone(value);
  }
}

const tooLarge = (bytes: number): KvTypeError =>
  new KvTypeError("limit_value", `Value too large (max ${VALUE_BYTES_MAX} bytes, this one has ${bytes})`);

const noValue = (kind: string): KvTypeError =>
  new KvTypeError(
    "value_invalid",
    `a tracked ${kind} is no value: hand on what is in it, as Object.fromEntries(map), list.toArray() or value.get()`,
  );

function tagged(tag: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(body.length + 1);
  out[0] = tag;
  out.set(body, 1);
  return out;
}

/** Bytes in which a number is encoded: to make a view for each number would cost as much as the rest. */
const number = Uint8Array.of(VALUE_TAG.number, 0, 0, 0, 0, 0, 0, 0, 0); // NUMBER_BYTES
const numberView = new DataView(number.buffer);

/** Bytes that `encodeValue` makes of a number. */
export const NUMBER_BYTES = 9;

function encodeNumber(value: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(NUMBER_BYTES);
  writeNumber(out, 0, value);
  return out;
}

/** Writes the bytes that `encodeValue` makes of a number into an array, from a place on where it has room. */
export function writeNumber(out: Uint8Array, from: number, value: number): void {
  if (Number.isNaN(value)) numberView.setBigUint64(1, 0x7ff8n << 48n, true); // one of its many forms (V4)
  else numberView.setFloat64(1, value, true);
  // Byte by byte: `set` of so few takes a fifth longer.
  for (let at = 0; at < NUMBER_BYTES; at++) out[from + at] = number[at] as number;
}

function encodeU64(value: bigint): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(9);
  out[0] = VALUE_TAG.u64;
  new DataView(out.buffer).setBigUint64(1, value, true);
  return out;
}

let isOneForm = false;

/** Has this process write clones in one form from now on (V4). */
export function useOneForm(): void {
  isOneForm = true;
}

/**
 * Encodes a copy in one form. A value that no node can hold (a boxed number, a Buffer, a very deep one) has V8's bytes,
 * read once: they keep most of V4.
 */
function inOneForm(copy: unknown): Uint8Array<ArrayBuffer> {
  try {
    return tagged(VALUE_TAG.content, encodeNodes(copy));
  } catch {
    return tagged(VALUE_TAG.clone, serialize(copy));
  }
}

function clone(value: unknown): Uint8Array<ArrayBuffer> {
  assertCloneable(value);
  try {
    const bytes = serialize(value);
    return isOneForm ? inOneForm(deserialize(bytes)) : tagged(VALUE_TAG.clone, bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new KvTypeError("value_invalid", `${why} Such a value can't be stored.`);
  }
}

/** Walk over a value that finds whether it survives JSON unchanged (V2). */
class JsonCheck {
  #nodes = 0;
  /** Objects below the top: a second appearance is a shared reference or a cycle. */
  #seen: Set<object> | undefined;

  passes(top: object): boolean {
    return this.#object(top, 0, top);
  }

  #value(value: unknown, depth: number, top: object): boolean {
    switch (typeof value) {
      case "string":
      case "boolean":
        return true;
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0);
      case "object":
        if (value === null) return true;
        if (value === top || depth > JSON_DEPTH_MAX) return false;
        this.#seen ??= new Set();
        if (this.#seen.has(value)) return false;
        this.#seen.add(value);
        return this.#object(value, depth, top);
      default:
        return false;
    }
  }

  #object(value: object, depth: number, top: object): boolean {
    if (Array.isArray(value)) return this.#array(value, depth, top);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      // V8 would make an empty object of it.
      if (isPart(value)) throw noValue(value[KIND]);
      return false;
    }
    for (const key of Object.keys(value)) {
      if (++this.#nodes > JSON_NODES_MAX) return false;
      // A getter may answer differently each time; what JSON then stores is as good as any.
      if (!this.#value((value as Record<string, unknown>)[key], depth + 1, top)) return false;
    }
    return true;
  }

  #array(value: readonly unknown[], depth: number, top: object): boolean {
    if (Object.getPrototypeOf(value) !== Array.prototype) return false;
    this.#nodes += value.length;
    if (this.#nodes > JSON_NODES_MAX) return false;
    // A hole reads as undefined and fails; a named property (a match's `index`) shows as a surplus key.
    for (let i = 0; i < value.length; i++) if (!this.#value(value[i], depth + 1, top)) return false;
    return Object.keys(value).length === value.length;
  }
}

/**
 * Decodes a stored value.
 *
 * @throws AppError `value_corrupt` where the bytes are no encoded value of at most `bytesMax`.
 */
export function decodeValue(bytes: Uint8Array, bytesMax: number = VALUE_BYTES_MAX): unknown {
  if (bytes.length - 1 > bytesMax) throw corrupt(`it has ${bytes.length} bytes, more than ${bytesMax}`);
  try {
    return decode(bytes);
  } catch (error) {
    throw error instanceof AppError ? error : corrupt(error instanceof Error ? error.message : String(error));
  }
}

const corrupt = (why: string): AppError =>
  new AppError("value_corrupt", `a stored value can't be read: ${why}`);

function decode(bytes: Uint8Array): unknown {
  switch (bytes[0]) {
    case VALUE_TAG.json:
      return JSON.parse(shortAscii(bytes, 1, bytes.length) ?? utf8Strict.decode(bytes.subarray(1)));
    case VALUE_TAG.text:
      return utf8Strict.decode(bytes.subarray(1));
    case VALUE_TAG.bytes:
      return new Uint8Array(bytes.subarray(1)); // not slice: a Buffer's is a view
    case VALUE_TAG.u64:
      return new KvU64(eightBytes(bytes).getBigUint64(1, true));
    case VALUE_TAG.number:
      return eightBytes(bytes).getFloat64(1, true);
    case VALUE_TAG.content:
      return decodeContent(bytes.subarray(1));
    case VALUE_TAG.clone: {
      // A copy: what V8 makes without a copy would be views of the site's bytes.
      const body = new Uint8Array(bytes.length - 1);
      body.set(bytes.subarray(1));
      const reader = new CloneReader(Buffer.from(body.buffer));
      reader.readHeader();
      return reader.readValue();
    }
    default:
      throw corrupt(bytes.length === 0 ? "it is empty" : `there is no tag ${bytes[0]}`);
  }
}

/**
 * Reader of V8's bytes that gives views inside a value buffers of their own: `view.buffer` is what it was, not the
 * encoding around it.
 */
class CloneReader extends DefaultDeserializer {
  _readHostObject(): unknown {
    const view = (super["_readHostObject" as never] as () => unknown).call(this);
    if (!ArrayBuffer.isView(view) || view.byteLength === view.buffer.byteLength) return view;
    const own = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
    return new (view.constructor as new (buffer: ArrayBufferLike) => ArrayBufferView)(own);
  }
}

function eightBytes(bytes: Uint8Array): DataView {
  if (bytes.length !== 9) throw corrupt(`an integer or number has 8 bytes, not ${bytes.length - 1}`);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
