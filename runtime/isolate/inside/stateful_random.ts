/**
 * Randomness as a stateful session sees it: its own seeded stream, in no log.
 *
 * SR1  Module code has `Math.random` of a stream that is the same everywhere, and no randomness to keep secrets with.
 * SR2  Operations of `crypto.subtle` that Deno computes on other threads are recorded: what they give is in the log.
 */
import { RandomStream, STREAM } from "../../../functions/turns/random.ts";
import { refusal } from "./absent.ts";
import type { Current } from "./stateful_current.ts";

type Define = (target: object, name: string, value: unknown) => unknown;

const RANDOM_BYTES_MAX = 65_536;
const utf8 = new TextEncoder();

/** Replaces random numbers. */
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

/** Version 4 of RFC 9562. */
export function randomUuid(fill: (bytes: Uint8Array) => void): string {
  const bytes = new Uint8Array(16);
  fill(bytes);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** What gives bytes, or (verify) a yes or no. */
const RECORDED = ["digest", "sign", "verify", "encrypt", "decrypt", "deriveBits"] as const;
/** What makes keys of a randomness that is not the session's, or on other threads. */
const REFUSED = ["generateKey", "deriveKey", "wrapKey", "unwrapKey"] as const;

type Operation = (...args: unknown[]) => Promise<ArrayBuffer | boolean>;

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
  for (const name of REFUSED) {
    define(
      prototype,
      name,
      refusal(
        `crypto.subtle.${name}`,
        "in a stateful session make keys by importKey of crypto.getRandomValues",
      ),
    );
  }
}

function copyOf(value: unknown): unknown {
  if (value instanceof ArrayBuffer) return value.slice(0);
  if (!ArrayBuffer.isView(value)) return value;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
}

/** SR2. The first byte says what it is: bytes, no, or yes. */
function recorded(
  current: Current,
  name: string,
  args: readonly unknown[],
  run: () => Promise<ArrayBuffer | boolean>,
): Promise<ArrayBuffer | boolean> {
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
      done: (bytes) => resolve(bytes[0] === 0 ? bytes.slice(1).buffer as ArrayBuffer : bytes[0] === 2),
      failed: (code, message) => reject(new DOMException(message, code)),
      start: async () => {
        const result = await run();
        if (typeof result === "boolean") return Uint8Array.of(result ? 2 : 1);
        const bytes = new Uint8Array(result.byteLength + 1);
        bytes.set(new Uint8Array(result), 1);
        return bytes;
      },
    }, false);
  });
}
