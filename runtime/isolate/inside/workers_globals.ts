/** Globals that programs for Workers expect and Deno does not have. */
import { IsolateCaches } from "./caches.ts";

/** Adds the globals to the realm. */
export function addWorkersGlobals(define: (target: object, name: string, value: unknown) => boolean): void {
  define(globalThis, "scheduler", Object.freeze({ wait }));
  define(globalThis, "caches", new IsolateCaches());
  define(SubtleCrypto.prototype, "timingSafeEqual", timingSafeEqual);
}

/** Resolves after a time; rejects when its signal aborts. */
function wait(ms: number, options: { signal?: AbortSignal } = {}): Promise<void> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Reports whether two buffers hold the same bytes, in a time that does not tell where they differ. */
function timingSafeEqual(a: BufferSource, b: BufferSource): boolean {
  const [left, right] = [bytesOf(a), bytesOf(b)];
  if (left.length !== right.length) {
    throw new TypeError(
      `timingSafeEqual: both take the same number of bytes, not ${left.length} and ${right.length}`,
    );
  }
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0);
  return difference === 0;
}

function bytesOf(source: BufferSource): Uint8Array {
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  throw new TypeError(`timingSafeEqual takes an ArrayBuffer or a view of one, not ${typeof source}`);
}
