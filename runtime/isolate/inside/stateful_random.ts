/**
 * Randomness as a stateful session sees it: a seeded stream of its own, which is in no log.
 *
 * SR1  Module code has `Math.random` of a stream that is the same everywhere, and no randomness to keep secrets with.
 * SR2  Operations of `crypto.subtle` that Deno computes on other threads are recorded: their results are in the log.
 */
import { RandomStream, STREAM } from "../../../functions/sessions/turn/random.ts";
import { refusingFunction } from "./absent.ts";
import { argumentsText } from "./stateful_arguments.ts";
import { installKeys } from "./stateful_keys.ts";
import type { Current } from "./stateful_current.ts";

type Define = (target: object, name: string, value: unknown) => unknown;

const RANDOM_BYTES_MAX = 65_536;
const utf8 = new TextEncoder();

/** Replaces random numbers, and `crypto.subtle`. */
export function installRandom(current: Current, define: Define): void {
  const ofModules = new RandomStream(new Uint8Array(32), STREAM.math);
  define(Math, "random", () => current()?.random() ?? ofModules.float());
  const fill = (bytes: Uint8Array): void => {
    const program = current();
    if (program === undefined) throw new TypeError("crypto works in a handler, not while a module loads");
    program.crypto.fill(bytes);
  };
  define(Crypto.prototype, "getRandomValues", <T extends ArrayBufferView>(view: T): T => {
    if (!ArrayBuffer.isView(view) || view instanceof DataView || /Float/.test(view.constructor.name)) {
      throw new DOMException("getRandomValues takes a typed array of integers", "TypeMismatchError");
    }
    if (view.byteLength > RANDOM_BYTES_MAX) {
      throw new DOMException(`getRandomValues gives ${RANDOM_BYTES_MAX} bytes at most`, "QuotaExceededError");
    }
    fill(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
    return view;
  });
  define(Crypto.prototype, "randomUUID", () => randomUuid(fill));
  installSubtle(current, define);
}

/** Makes a UUID, version 4 of RFC 9562. */
export function randomUuid(fill: (bytes: Uint8Array) => void): string {
  const bytes = new Uint8Array(16);
  fill(bytes);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Operations that return bytes, or (verify) a yes or no, or (exportKey) a JWK. */
const RECORDED = ["digest", "sign", "verify", "encrypt", "decrypt", "deriveBits", "exportKey"] as const;
/** Operations that take keys to bytes and back in one: two calls do the same. */
const REFUSED = ["wrapKey", "unwrapKey"] as const;

type Result = ArrayBuffer | boolean | JsonWebKey;
type Operation = (...args: unknown[]) => Promise<Result>;

function installSubtle(current: Current, define: Define): void {
  const prototype = SubtleCrypto.prototype as unknown as Record<string, Operation>;
  for (const name of RECORDED) {
    const operation = prototype[name];
    if (operation === undefined) continue;
    define(prototype, name, function (this: SubtleCrypto, ...args: unknown[]) {
      // Copies: it is computed when the turn is over, with what it was called with.
      const given = args.map(copyOf);
      return recorded(current, `crypto.subtle.${name}`, given, () => Reflect.apply(operation, this, given));
    });
  }
  installKeys(current, define, copyOf);
  for (const name of REFUSED) {
    define(
      prototype,
      name,
      refusingFunction(
        `crypto.subtle.${name}`,
        "in a stateful session use exportKey with encrypt, decrypt with importKey",
      ),
    );
  }
}

function copyOf(value: unknown): unknown {
  if (value instanceof ArrayBuffer) return value.slice(0);
  // Parameters, such as an iv; a key is what it is.
  if (isPlain(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copyOf(each)]));
  }
  if (!ArrayBuffer.isView(value)) return value;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null &&
  (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null);

/** First byte of a result, by its kind. */
const FORM = { bytes: 0, no: 1, yes: 2, jwk: 3 } as const;

function resultOf(bytes: Uint8Array): Result {
  if (bytes[0] === FORM.bytes) return bytes.slice(1).buffer as ArrayBuffer;
  if (bytes[0] === FORM.jwk) return JSON.parse(new TextDecoder().decode(bytes.subarray(1))) as JsonWebKey;
  return bytes[0] === FORM.yes;
}

/** Makes a call in this isolate whose result is in the log (SR2). */
function recorded(
  current: Current,
  name: string,
  args: readonly unknown[],
  run: () => Promise<Result>,
): Promise<Result> {
  const program = current();
  if (program === undefined) {
    return Promise.reject(new TypeError(`${name} works in a handler, not while a module loads`));
  }
  const data = args.findLast((arg): arg is Uint8Array => arg instanceof Uint8Array);
  return new Promise((resolve, reject) => {
    program.call({
      kind: "native",
      bytes: data ?? utf8.encode(name),
      name,
      args: () => argumentsText(args),
      done: (bytes) => resolve(resultOf(bytes)),
      failed: (code, message) => reject(new DOMException(message, code)),
      start: async () => {
        const result = await run();
        if (typeof result === "boolean") return Uint8Array.of(result ? FORM.yes : FORM.no);
        const isBytes = result instanceof ArrayBuffer;
        const body = isBytes ? new Uint8Array(result) : utf8.encode(JSON.stringify(result));
        const bytes = new Uint8Array(body.length + 1);
        bytes[0] = isBytes ? FORM.bytes : FORM.jwk;
        bytes.set(body, 1);
        return bytes;
      },
    }, false);
  });
}
