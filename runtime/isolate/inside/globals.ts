/**
 * The globals that an app finds: a list of what may be there, by which all else is taken away before any app code runs.
 *
 * A global that is named computes: it needs no permission, reaches nothing outside of the process, and loads nothing. A
 * list of what is dangerous would let in what the next version of Deno brings: WebGPU was there, and loaded the
 * machine's drivers into the process, without any permission.
 *
 * GL1  After the cut a global is named here, or was put there by this runtime. The same goes for the members of
 *      `navigator`.
 */

/** Names of the language's own globals. */
const LANGUAGE = [
  "AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array Boolean DataView",
  "Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity",
  "Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError",
  "Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError Temporal TypeError URIError Uint16Array",
  "Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly decodeURI decodeURIComponent encodeURI",
  "encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt undefined unescape",
];

/** Names of the web platform's globals. */
const WEB = [
  "AbortController AbortSignal Blob ByteLengthQueuingStrategy CloseEvent CompressionStream CountQueuingStrategy Crypto",
  "CryptoKey createImageBitmap CustomEvent DOMException DOMMatrix DOMMatrixReadOnly DOMPoint DOMPointReadOnly DOMQuad DOMRect",
  "DOMRectReadOnly DecompressionStream ErrorEvent Event EventTarget File FileReader FormData Headers ImageBitmap ImageData Location",
  "MessageChannel MessageEvent MessagePort Navigator Performance PerformanceEntry PerformanceMark PerformanceMeasure",
  "PerformanceObserver PerformanceObserverEntryList ProgressEvent PromiseRejectionEvent QuotaExceededError",
  "ReadableByteStreamController ReadableStream ReadableStreamBYOBReader ReadableStreamBYOBRequest",
  "ReadableStreamDefaultController ReadableStreamDefaultReader Request Response SubtleCrypto TextDecoder",
  "TextDecoderStream TextEncoder TextEncoderStream TransformStream TransformStreamDefaultController URL URLPattern",
  "URLSearchParams WebSocket Window WritableStream WritableStreamDefaultController WritableStreamDefaultWriter atob btoa",
  "caches clearInterval clearTimeout closed console crypto fetch location name navigator onbeforeunload onerror onload",
  "onunhandledrejection onunload performance queueMicrotask reportError self setInterval setTimeout structuredClone",
];

/** Names of globals of Node and Deno. */
const HOSTS = ["Buffer Deno clearImmediate global process setImmediate"];

/** Names of globals that this runtime adds (workers_globals.ts, sockets.ts). */
const OURS = ["WebSocketPair scheduler"];

const namesOf = (...lists: readonly (readonly string[])[]): ReadonlySet<string> =>
  new Set(lists.flat().flatMap((line) => line.split(" ")));

/** Names of globals that an app may find. */
export const ALLOWED_GLOBALS: ReadonlySet<string> = namesOf(LANGUAGE, WEB, HOSTS, OURS);

/** Names of members of `navigator` that an app may find. */
export const ALLOWED_NAVIGATOR: ReadonlySet<string> = namesOf([
  "constructor hardwareConcurrency language languages platform userAgent",
]);

/**
 * Removes all other globals (GL1). Symbols stay: they are how Deno keeps what belongs to `globalThis` as a target of
 * events.
 */
export function cutGlobals(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!ALLOWED_GLOBALS.has(name)) Reflect.deleteProperty(globalThis, name);
  }
  const navigator: object = Object.getPrototypeOf(globalThis.navigator);
  for (const name of Object.getOwnPropertyNames(navigator)) {
    if (!ALLOWED_NAVIGATOR.has(name)) Reflect.deleteProperty(navigator, name);
  }
}
