/**
 * `caches` as Workers have it, in the isolate's own memory: nothing is kept on disk, or shared with another
 * isolate, and a full cache forgets what was used longest ago. A cache is allowed to forget, so programs written
 * for one run; what they keep here is this app's, whichever session put it there.
 *
 * C1  The responses kept have at most CACHED_BYTES_MAX of bodies together.
 */

/** Bytes of all cached bodies together: a sixteenth of the default heap, since an isolate must not die of its cache. */
const CACHED_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes of the largest body that is cached: larger ones would push out everything else. */
const RESPONSE_BYTES_MAX = 1024 * 1024;
/** Bytes that a response without a body counts for. */
const ROW_BYTES = 1024;
const NAMES_MAX = 16;

interface Cached {
  readonly status: number;
  readonly statusText: string;
  readonly headers: [string, string][];
  readonly body: Uint8Array<ArrayBuffer> | null;
  /** Headers of the request that the response depends on, with their values. */
  readonly varies: readonly (readonly [string, string | null])[];
  readonly expiresAtMs: number;
  readonly bytes: number;
}

type Input = Request | URL | string;

/** A cache with a name. */
class IsolateCache {
  readonly #rows = new Map<string, Cached>();
  readonly #budget: { bytes: number };

  constructor(budget: { bytes: number }) {
    this.#budget = budget;
  }

  match(input: Input, options: { ignoreMethod?: boolean } = {}): Promise<Response | undefined> {
    const request = new Request(input);
    const found = this.#rows.get(keyOf(request));
    if (found === undefined || request.method !== "GET" && options.ignoreMethod !== true) return none();
    if (found.expiresAtMs <= Date.now()) {
      this.#drop(keyOf(request));
      return none();
    }
    if (found.varies.some(([name, value]) => request.headers.get(name) !== value)) return none();
    // The last one used is the last one forgotten.
    this.#rows.delete(keyOf(request));
    this.#rows.set(keyOf(request), found);
    return Promise.resolve(new Response(found.body?.slice() ?? null, found));
  }

  async put(input: Input, response: Response): Promise<void> {
    const request = new Request(input);
    refuseUnfit(request, response);
    const lifetimeMs = lifetimeOf(response);
    const body = response.body === null ? null : await response.bytes();
    const bytes = ROW_BYTES + (body?.length ?? 0);
    this.#drop(keyOf(request));
    if (lifetimeMs <= 0 || bytes > RESPONSE_BYTES_MAX + ROW_BYTES || response.headers.has("set-cookie")) {
      return;
    }
    const names = (response.headers.get("vary") ?? "").split(",").map((name) => name.trim()).filter(Boolean);
    this.#rows.set(keyOf(request), {
      status: response.status,
      statusText: response.statusText,
      headers: [...response.headers],
      body,
      varies: names.map((name) => [name, request.headers.get(name)]),
      expiresAtMs: Date.now() + lifetimeMs,
      bytes,
    });
    this.#budget.bytes += bytes;
    for (const url of this.#rows.keys()) {
      if (this.#budget.bytes <= CACHED_BYTES_MAX) break;
      this.#drop(url);
    }
  }

  delete(input: Input): Promise<boolean> {
    return Promise.resolve(this.#drop(keyOf(new Request(input))));
  }

  #drop(url: string): boolean {
    const found = this.#rows.get(url);
    this.#budget.bytes -= found?.bytes ?? 0;
    return this.#rows.delete(url);
  }
}

const none = (): Promise<undefined> => Promise.resolve(undefined);
const keyOf = (request: Request): string => request.url.split("#", 1)[0] ?? "";

/** Refuses what the standard's `put` refuses. @throws TypeError */
function refuseUnfit(request: Request, response: Response): void {
  if (request.method !== "GET") throw new TypeError(`a cache keeps answers to GET, not to ${request.method}`);
  if (response.status === 206) throw new TypeError("a cache keeps no part of a response (status 206)");
  if (/(^|,)\s*\*\s*(,|$)/.test(response.headers.get("vary") ?? "")) {
    throw new TypeError("a cache keeps no response with Vary: *");
  }
  if (response.bodyUsed) throw new TypeError("the body of the response has already been read");
}

/** Returns the milliseconds that a response may be kept; Infinity where it does not say: as long as there is room. */
function lifetimeOf(response: Response): number {
  const control = response.headers.get("cache-control") ?? "";
  if (/\b(no-store|no-cache|private)\b/i.test(control)) return 0;
  const seconds = /\bs-maxage=(\d+)/i.exec(control)?.[1] ?? /\bmax-age=(\d+)/i.exec(control)?.[1];
  return seconds === undefined ? Infinity : Number(seconds) * 1000;
}

/** The `caches` of an isolate. */
export class IsolateCaches {
  readonly #budget = { bytes: 0 };
  readonly #named = new Map<string, IsolateCache>();
  readonly default: IsolateCache = new IsolateCache(this.#budget);

  open(name: string): Promise<IsolateCache> {
    let cache = this.#named.get(name);
    if (cache === undefined) {
      if (this.#named.size === NAMES_MAX) {
        return Promise.reject(new TypeError(`there are ${NAMES_MAX} caches already`));
      }
      cache = new IsolateCache(this.#budget);
      this.#named.set(name, cache);
    }
    return Promise.resolve(cache);
  }
}
