/**
 * The `Request` that a handler is given: made of Deno's own parts when something asks for more of it than its URL,
 * method and headers, which most handlers never do.
 *
 * Deno's own costs as much as the rest of a request, and outlives it: it is made of an object literal with accessors,
 * and V8 gives each of those a shape of its own, which lives until a full collection. The one that is given here has
 * the same prototype and no fields. The first access to a field, which only Deno's own code knows to ask for, falls
 * through to an accessor on the prototype, which makes a real request and puts its fields where they are looked for.
 *
 * IR1  Nothing tells it from Deno's own but its age: `instanceof`, the prototype, `new Request(it)`, `clone`, printing.
 * IR2  `request.headers` is one object, before and after the fields are there, and what was changed in it stays.
 * IR3  `request.signal` aborts when the client goes; made when it is first asked for, since an AbortController for
 *      every request would cost as much as the rest of it.
 */
import assert from "node:assert/strict";

/** The parts of a request. */
export interface RequestSource {
  readonly url: string;
  readonly method: string;
  /** Names and values of headers in turn, from `headersAt` on. */
  readonly fields: readonly string[];
  readonly headersAt: number;
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Exchange whose signal is the request's (IR3). */
  readonly exchange: { readonly signal: AbortSignal };
}

const STATE = Symbol("incoming request");
/** Deno's own classes, whatever an app puts in their places. */
const { Request, Headers, URL } = globalThis;

/** State of an incoming request besides its source. */
class State {
  readonly source: RequestSource;
  href: string | undefined;
  headers: Headers | undefined;
  isWhole = false;

  constructor(source: RequestSource) {
    this.source = source;
  }
}

interface Incoming {
  readonly [STATE]?: State;
}

/** Constructor of a request without fields. */
interface BareRequest {
  new (source: RequestSource): Request;
}

// A constructor of the old kind: a class can't have another's prototype.
const Bare = function (this: { [STATE]: State }, source: RequestSource): void {
  this[STATE] = new State(source);
} as unknown as BareRequest;

/** Makes the request of an exchange. */
export const incomingRequest = (source: RequestSource): Request => new Bare(source);

/** Methods that a Request takes as they are written. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "PATCH",
  "OPTIONS",
]);

/** Makes the accessors on `Request.prototype` that incoming requests need; once, before any app code runs. */
export function installIncomingRequest(): void {
  const { prototype } = Request;
  Object.defineProperty(Bare, "prototype", { value: prototype });
  const shortcut = <K extends "url" | "method" | "headers" | "signal">(
    name: K,
    short: (state: State) => Request[K] | undefined,
  ) => {
    const builtIn = Object.getOwnPropertyDescriptor(prototype, name)?.get;
    assert(builtIn !== undefined, `Request.prototype.${name} is no accessor in this Deno`);
    Object.defineProperty(prototype, name, {
      configurable: true,
      enumerable: true,
      get(this: Request & Incoming): Request[K] {
        const state = this[STATE];
        return (state === undefined ? undefined : short(state)) ?? builtIn.call(this);
      },
    });
  };
  shortcut("url", (state) => state.href ??= new URL(state.source.url).href);
  shortcut("method", ({ source: { method } }) => KNOWN_METHODS.has(method) ? method : undefined);
  shortcut("headers", (state) => state.headers ??= headersOf(state.source));
  shortcut("signal", (state) => state.source.exchange.signal);
  for (const field of Reflect.ownKeys(new Request("http://localhost/"))) {
    assert(
      !Object.hasOwn(prototype, field),
      `a field of Deno's Request is on its prototype: ${String(field)}`,
    );
    Object.defineProperty(prototype, field, {
      configurable: true,
      get(this: Request & Incoming): unknown {
        const state = this[STATE];
        if (state === undefined || state.isWhole) return undefined; // The prototype itself is no request.
        makeWhole(this, state);
        return Reflect.get(this, field);
      },
      // Deno's constructor assigns one of them, where it defines the rest.
      set(this: object, value: unknown) {
        setField(this, field, value);
      },
    });
  }
}

/** Finds Deno's own field of Headers that holds their names and values. */
function listField(headers: Headers): symbol {
  const found = Object.getOwnPropertySymbols(headers).find(({ description }) =>
    description === "header list"
  );
  assert(found !== undefined, "Headers have no list in this Deno: use the version that is pinned");
  return found;
}

function listOf(headers: Headers, field: symbol): unknown[] {
  const list: unknown = Reflect.get(headers, field);
  assert(Array.isArray(list), "Headers have no list in this Deno: use the version that is pinned");
  return list;
}

function headersOf({ fields, headersAt }: RequestSource): Headers {
  const headers = new Headers();
  // Appending is cheaper than a list in the constructor, which copies it twice.
  for (let i = headersAt; i + 1 < fields.length; i += 2) headers.append(fields[i] ?? "", fields[i + 1] ?? "");
  return headers;
}

/** Gives a request the fields of a real one. */
function makeWhole(request: Request, state: State): void {
  const { source } = state;
  const real = new Request(
    source.url,
    source.body === null ? { method: source.method } : {
      method: source.method,
      body: source.body,
    },
  );
  const realHeaders = real.headers;
  const headers = state.headers ??= headersOf(source);
  // IR2: from now on both have one list. Appending the entries would not do: reading joins those of one name.
  const field = listField(headers), list = listOf(realHeaders, field);
  list.push(...listOf(headers, field));
  setField(headers, field, list);
  state.isWhole = true;
  for (const own of Reflect.ownKeys(real)) {
    const value: unknown = Reflect.get(real, own);
    setField(request, own, value === realHeaders ? headers : value);
  }
}

const setField = (target: object, field: string | symbol, value: unknown): boolean =>
  Reflect.defineProperty(target, field, { value, writable: true, configurable: true, enumerable: true });
