/**
 * The globals that `npm:@opentelemetry/api` finds in an isolate: a tracer, a context and a propagator of the
 * platform's, so that spans an app makes are part of its request's trace. A span leaves as one frame when it ends; an
 * isolate has no network of its own to export through.
 *
 * A1  Spans are made for requests that the site records; for any other the app gets spans that do nothing.
 * A2  The trace is the request's, whatever the app says; the parent is what the app says within it.
 * A3  A request sends a bounded number of spans, each with bounded attributes. Events and links are left out.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** Symbol at which every copy of the API looks, of whatever version 1.x. */
const API = Symbol.for("opentelemetry.js.api.1");
/** Version of the global: the API takes one that is at least as new as itself. */
const API_VERSION = "1.99.0";
/** Key under which the API has the span of a context. */
const SPAN_KEY = Symbol.for("OpenTelemetry Context Key SPAN");

const SPANS_MAX = 256;
const ATTRIBUTES_MAX = 64;
const TEXT_MAX = 1024;
const NAME_MAX = 256;

/** A request, as spans see it. */
export interface TracedRequest {
  readonly id: number;
  /** `traceparent` that the request came with. */
  readonly traceparent: string | null;
}

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

const NONE: SpanContext = { traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 0 };

/** A Context, as the API has it. */
class Context {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown> = new Map()) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): Context {
    return new Context(new Map(this.#values).set(key, value));
  }

  deleteValue(key: symbol): Context {
    const values = new Map(this.#values);
    values.delete(key);
    return new Context(values);
  }
}

/** A Context of any copy of the API. */
type AnyContext = Pick<Context, "getValue" | "setValue" | "deleteValue">;

/** A span that only has its context (A1). */
class QuietSpan {
  readonly #context: SpanContext;

  constructor(context: SpanContext) {
    this.#context = context;
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  isRecording(): boolean {
    return false;
  }

  setAttribute(_name: string, _value: unknown): this {
    return this;
  }

  setAttributes(_attributes: Record<string, unknown>): this {
    return this;
  }

  addEvent(): this {
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  setStatus(_status: { code?: number; message?: string }): this {
    return this;
  }

  updateName(_name: string): this {
    return this;
  }

  recordException(_exception: unknown): void {}

  end(_time?: unknown): void {}
}

/** The options that an app gives with a new span. */
interface SpanOptions {
  readonly kind?: number;
  readonly attributes?: Record<string, unknown>;
  readonly startTime?: unknown;
  readonly root?: boolean;
}

/** A span that leaves when it ends. */
class AppSpan extends QuietSpan {
  readonly #send: (text: string) => void;
  readonly #attributes = new Map<string, string | number | boolean>();
  readonly #parentId: string;
  readonly #kind: number;
  readonly #beganMs: number;
  #name: string;
  #failed = false;
  #ended = false;

  constructor(
    context: SpanContext,
    begin: { parentId: string; name: string; options: SpanOptions },
    send: (text: string) => void,
  ) {
    super(context);
    this.#send = send;
    this.#parentId = begin.parentId;
    this.#name = String(begin.name);
    this.#kind = begin.options.kind ?? 0;
    this.#beganMs = timeOf(begin.options.startTime);
    this.setAttributes(begin.options.attributes ?? {});
  }

  override isRecording(): boolean {
    return !this.#ended;
  }

  override setAttribute(name: string, value: unknown): this {
    if (value === undefined || value === null || this.#attributes.size >= ATTRIBUTES_MAX) return this;
    const plain = typeof value === "number" && Number.isFinite(value) || typeof value === "boolean"
      ? value
      : cut(String(value), TEXT_MAX);
    this.#attributes.set(cut(String(name), NAME_MAX), plain);
    return this;
  }

  override setAttributes(attributes: Record<string, unknown>): this {
    for (const [name, value] of Object.entries(attributes)) this.setAttribute(name, value);
    return this;
  }

  override setStatus({ code, message }: { code?: number; message?: string }): this {
    this.#failed = code === 2;
    if (this.#failed && message !== undefined) this.setAttribute("otel.status_description", message);
    return this;
  }

  override updateName(name: string): this {
    this.#name = String(name);
    return this;
  }

  override recordException(exception: unknown): void {
    const { name, message } = (exception ?? {}) as { name?: unknown; message?: unknown };
    this.setAttribute("exception.type", name ?? typeof exception);
    this.setAttribute("exception.message", message ?? exception);
  }

  override end(time?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#send(JSON.stringify({
      spanId: this.spanContext().spanId,
      parentId: this.#parentId,
      name: cut(this.#name, NAME_MAX),
      kind: this.#kind,
      beganMs: this.#beganMs,
      endedMs: timeOf(time),
      failed: this.#failed,
      attributes: [...this.#attributes],
    }));
  }
}

/** Cuts a text, and marks that: the site then looks for the beginning of a secret at its end. */
const cut = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : text.slice(0, charsMax - 1) + "…";

/**
 * Returns milliseconds for the API's TimeInput: nothing, milliseconds of one of two clocks, a Date, or seconds and
 * nanoseconds.
 */
function timeOf(time: unknown): number {
  if (time instanceof Date) return time.getTime();
  if (Array.isArray(time)) return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
  if (typeof time !== "number") return performance.timeOrigin + performance.now();
  return time < performance.timeOrigin ? performance.timeOrigin + time : time;
}

const PARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

function contextOf(traceparent: unknown): SpanContext | null {
  const [, traceId, spanId, flags = "0"] = PARENT.exec(String(traceparent)) ?? [];
  if (traceId === undefined || spanId === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1 };
}

const parentText = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-0${traceFlags & 1}`;

function newSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The trace of one request. */
interface RequestTrace {
  /** Context that holds the request's own span. */
  readonly root: Context;
  readonly span: SpanContext;
  spans: number;
}

/** The platform's side of the API. */
export class OpenTelemetry {
  readonly #current: () => TracedRequest | undefined;
  readonly #send: (request: number, text: string) => void;
  readonly #contexts = new AsyncLocalStorage<AnyContext>();
  readonly #traces = new WeakMap<TracedRequest, RequestTrace>();

  constructor(current: () => TracedRequest | undefined, send: (request: number, text: string) => void) {
    this.#current = current;
    this.#send = send;
  }

  /** Puts itself where the API looks. */
  install(): void {
    const tracer = {
      startSpan: this.#startSpan,
      startActiveSpan: this.#startActiveSpan,
    };
    const api = {
      version: API_VERSION,
      trace: { getTracer: () => tracer },
      context: {
        active: this.#active,
        with: (
          context: AnyContext,
          run: (...args: unknown[]) => unknown,
          self?: unknown,
          ...args: unknown[]
        ) => this.#contexts.run(context, () => Reflect.apply(run, self, args)),
        bind: (context: AnyContext, target: unknown) => this.#bind(context, target),
        enable() {
          return this;
        },
        disable() {
          return this;
        },
      },
      propagation: { inject, extract, fields: () => ["traceparent"] },
    };
    Object.defineProperty(globalThis, API, { value: api, configurable: true, writable: true });
  }

  /** Returns the `traceparent` of the app's own span that is active, for an outgoing fetch. */
  readonly traceparent = (): string | undefined => {
    const span = this.#contexts.getStore()?.getValue(SPAN_KEY);
    return span instanceof AppSpan ? parentText(span.spanContext()) : undefined;
  };

  /** Returns a request's trace; undefined where it has none. */
  #trace(request: TracedRequest): RequestTrace | undefined {
    const known = this.#traces.get(request);
    if (known !== undefined) return known;
    const span = contextOf(request.traceparent);
    if (span === null) return undefined;
    const root = new Context().setValue(SPAN_KEY, new QuietSpan(span));
    const trace = { root, span, spans: 0 };
    this.#traces.set(request, trace);
    return trace;
  }

  #active = (): AnyContext => {
    const context = this.#contexts.getStore();
    if (context !== undefined) return context;
    const request = this.#current();
    return request && this.#trace(request)?.root || new Context();
  };

  #bind(context: AnyContext, target: unknown): unknown {
    if (typeof target !== "function") return target;
    const contexts = this.#contexts;
    return function (this: unknown, ...args: unknown[]) {
      return contexts.run(context, () => Reflect.apply(target, this, args));
    };
  }

  #startSpan = (name: string, options: SpanOptions = {}, context: AnyContext = this.#active()): QuietSpan => {
    const request = this.#current();
    const trace = request && this.#trace(request);
    const parent = (context.getValue(SPAN_KEY) as QuietSpan | undefined)?.spanContext?.();
    if (request === undefined || trace?.span.traceFlags !== 1 || trace.spans >= SPANS_MAX) {
      return new QuietSpan(parent ?? trace?.span ?? NONE);
    }
    trace.spans++;
    const within = !options.root && parent?.traceId === trace.span.traceId; // A2
    return new AppSpan(
      { traceId: trace.span.traceId, spanId: newSpanId(), traceFlags: 1 },
      { parentId: within ? parent.spanId : trace.span.spanId, name, options },
      (text) => this.#send(request.id, text),
    );
  };

  /** Starts a span and runs `fn` in its context: (name, fn), (name, options, fn) or (name, options, context, fn). */
  #startActiveSpan = (name: string, ...rest: unknown[]): unknown => {
    const run = rest.pop() as (span: QuietSpan) => unknown;
    const [options, context = this.#active()] = rest as [SpanOptions?, AnyContext?];
    const span = this.#startSpan(name, options, context);
    return this.#contexts.run(context.setValue(SPAN_KEY, span), () => run(span));
  };
}

interface Setter {
  set(carrier: unknown, name: string, value: string): void;
}

interface Getter {
  get(carrier: unknown, name: string): unknown;
}

function inject(context: AnyContext, carrier: unknown, setter: Setter): void {
  const span = (context.getValue(SPAN_KEY) as QuietSpan | undefined)?.spanContext?.();
  if (span !== undefined && span.traceId !== NONE.traceId) {
    setter.set(carrier, "traceparent", parentText(span));
  }
}

function extract(context: AnyContext, carrier: unknown, getter: Getter): AnyContext {
  const found = getter.get(carrier, "traceparent");
  const span = contextOf(Array.isArray(found) ? found[0] : found);
  return span === null ? context : context.setValue(SPAN_KEY, new QuietSpan(span));
}
