/**
 * The cache behind `this.cache`: values that the sessions of an isolate share, read-only, each made by the session that
 * misses it first.
 *
 * A value that is missed is made by the session's own handler: what that asks for is in the session's log as all else.
 * Nobody waits for another session; two that miss a value at once both make it.
 *
 * SC1  The outcome of a read is in the log of the session: the value's bytes, or that the value was missed. So a replay
 *      elsewhere sees what the handler saw, whatever that isolate's cache has.
 * SC3  Each read gives a copy, frozen as far as it can be: what one session does with it no other sees.
 * SC4  How old a value may be is for each read to say, and is measured with the isolate's own clock: the session sees
 *      nothing of that but the outcome (SC1).
 */
import { Writer } from "../../../store/model/codec.ts";
import { AppError } from "../../vocabulary/errors.ts";
import { decodeValue, encodeValue } from "../../values/value.ts";

/** The program's part that a read needs. */
interface CacheReader {
  readonly isReplaying: boolean;
  call(call: {
    readonly kind: "native";
    readonly bytes: Uint8Array;
    readonly name: string;
    done(bytes: Uint8Array): void;
    failed(code: string, message: string): void;
    readonly start: () => Promise<Uint8Array>;
  }, hasEffect: boolean): number;
}

/** Bytes of one value: it is in the log of each session that reads it, each time. */
const VALUE_BYTES_MAX = 256 * 1024;
const NAME_CHARS_MAX = 200;
/** Bytes of one isolate's cache: the value that was read longest ago goes first. */
const CACHE_BYTES_MAX = 16 * 1024 * 1024;
/** Cost of a value beside its bytes and name: many small ones count too. */
const ENTRY_COST_BYTES = 128;
const MISS = 0, HIT = 1;

/** The values of one isolate. */
export class SharedCache {
  readonly #values = new Map<string, { readonly bytes: Uint8Array; readonly madeMs: number }>();
  readonly #nowMs: () => number;
  readonly #bytesMax: number;
  #bytes = 0;

  /** @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number, bytesMax = CACHE_BYTES_MAX) {
    this.#nowMs = nowMs;
    this.#bytesMax = bytesMax;
  }

  /** Returns a value that is younger than `ttlMs` (SC4); undefined: there is none. */
  get(name: string, ttlMs = Infinity): Uint8Array | undefined {
    const value = this.#values.get(name);
    if (value === undefined || this.#nowMs() - value.madeMs >= ttlMs) return undefined;
    this.#values.delete(name); // and in again, as the newest
    this.#values.set(name, value);
    return value.bytes;
  }

  set(name: string, bytes: Uint8Array): void {
    this.#drop(name);
    this.#values.set(name, { bytes, madeMs: this.#nowMs() });
    this.#bytes += costOf(name, bytes);
    for (const oldest of this.#values.keys()) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    const value = this.#values.get(name);
    if (value === undefined) return;
    this.#values.delete(name);
    this.#bytes -= costOf(name, value.bytes);
  }
}

const costOf = (name: string, bytes: Uint8Array): number => ENTRY_COST_BYTES + 2 * name.length + bytes.length;

/** Arguments of a read. */
export interface CacheRead {
  readonly name: string;
  readonly load: () => unknown;
  /** Milliseconds to which a value's age is limited, above 0; left out: it may have any age. */
  readonly ttlMs?: number | undefined;
}

/**
 * Reads a value for a program, or makes it. @throws AppError for a name or a value that is none; what `load` throws.
 */
export async function readShared(
  program: CacheReader,
  cache: SharedCache,
  { name, load, ttlMs }: CacheRead,
): Promise<unknown> {
  if (typeof name !== "string" || name === "" || name.length > NAME_CHARS_MAX || typeof load !== "function") {
    throw new AppError(
      "value_invalid",
      `cache.read takes a name of 1 to ${NAME_CHARS_MAX} characters, and a function that makes the value`,
    );
  }
  if (ttlMs !== undefined && !(typeof ttlMs === "number" && ttlMs > 0)) {
    throw new AppError(
      "value_invalid",
      `cache.read(${JSON.stringify(name)}): ttlMs is ${String(ttlMs)}; it takes milliseconds above 0`,
    );
  }
  const found = await looked(program, () => cache.get(name, ttlMs), name);
  if (found[0] === HIT) return frozen(decodeValue(found.subarray(1), VALUE_BYTES_MAX));
  const bytes = encodeValue(await load());
  if (bytes.length > VALUE_BYTES_MAX) {
    throw new AppError(
      "limit_value",
      `cache.read(${
        JSON.stringify(name)
      }): a shared value has at most ${VALUE_BYTES_MAX} bytes, since it is in ` +
        `the log of each session that reads it; this one has ${bytes.length}`,
    );
  }
  // A replay makes the value of that time: a newer one in the cache stays.
  if (!program.isReplaying) cache.set(name, bytes);
  return frozen(decodeValue(bytes, VALUE_BYTES_MAX));
}

/** Looks into the cache with a native call, whose result the log has (SC1). */
function looked(
  program: CacheReader,
  get: () => Uint8Array | undefined,
  name: string,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    program.call({
      kind: "native",
      bytes: new TextEncoder().encode(name),
      name: `cache.read(${JSON.stringify(name)})`,
      done: (bytes) => resolve(bytes.slice()),
      failed: (code, message) => reject(Object.assign(new Error(message), { code })),
      start: () => {
        const bytes = get();
        if (bytes === undefined) return Promise.resolve(Uint8Array.of(MISS));
        return Promise.resolve(new Writer(bytes.length + 1).byte(HIT).raw(bytes).done());
      },
    }, false);
  });
}

/** Freezes a value (SC3). Maps, sets, dates and bytes can't be frozen: they are copies. */
function frozen(value: unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) {
    return value;
  }
  Object.freeze(value);
  for (const each of Object.values(value)) frozen(each);
  return value;
}
