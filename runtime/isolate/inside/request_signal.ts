/**
 * `request.signal` of an incoming request: aborts when its client goes. Made when it is first asked for, since an
 * AbortController for every request would cost as much as the rest of it.
 */

const SIGNAL_SOURCE = Symbol("signal source");

interface Marked {
  [SIGNAL_SOURCE]?: { readonly signal: AbortSignal };
}

/** From now on `request.signal` is the source's. */
export function bindSignal(request: Request, source: { readonly signal: AbortSignal }): void {
  (request as Request & Marked)[SIGNAL_SOURCE] = source;
}

/** Puts the getter in place of the built-in one; requests that are not bound keep theirs. */
export function installRequestSignal(): void {
  const builtIn = Object.getOwnPropertyDescriptor(Request.prototype, "signal");
  Object.defineProperty(Request.prototype, "signal", {
    configurable: true,
    enumerable: true,
    get(this: Request & Marked): AbortSignal {
      return this[SIGNAL_SOURCE]?.signal ?? builtIn?.get?.call(this);
    },
  });
}
