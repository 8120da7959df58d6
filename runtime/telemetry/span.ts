/**
 * A span that is recorded. A request that is not recorded has no object at all: call sites hold `Span | undefined` and
 * write `span?.child(…)`, so that it costs them nothing.
 *
 * Life: begun (by a tracer, or as a child) → attributes → `end`, once → handed to the sink → exported.
 *
 * S1  No header, body, query, token, key or value of a row ever is an attribute; an error is named by its code,
 *     since its message may hold what an app was given.
 * S2  A trace takes a bounded number of spans of one site; the rest is counted at the span that began it there.
 * S3  After its end a span changes no more.
 */
import type { TraceContext } from "./trace_context.ts";
import { newSpanId } from "./trace_ids.ts";

/** Kinds of spans, by their part in a call; the numbers are OTLP's. */
export const SPAN_KIND = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;
/** Value of {@link SPAN_KIND}. */
export type SpanKind = (typeof SPAN_KIND)[keyof typeof SPAN_KIND];
/** Value of an attribute. */
export type AttributeValue = string | number | boolean;

/** Takes spans that have ended. */
export interface SpanSink {
  /** Returns milliseconds since 1970, with fractions. */
  nowMs(): number;
  ended(span: Span): void;
}

/** A span that has ended before it came here. */
export interface AdoptedSpan {
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly kind: SpanKind;
  readonly beganMs: number;
  readonly endedMs: number;
  readonly failed: boolean;
  /** Names and values by turns. */
  readonly attributes: readonly AttributeValue[];
}

/** State that the spans of one trace at one site share. */
class LocalTrace {
  spans = 1;
  dropped = 0;
  constructor(readonly sink: SpanSink, readonly state: string) {}
}

/**
 * Number of spans of a trace at one site (S2): a request of a thousand store calls is still recorded whole; a loop that
 * never ends is not.
 */
export const SPANS_MAX = 1_024;

/** A part of a request's way that is recorded. */
export class Span implements TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly sampled = true;
  readonly kind: SpanKind;
  name: string;
  readonly beganMs: number;
  endedMs = 0;
  /** Names and values by turns. */
  readonly attributes: AttributeValue[] = [];
  failed = false;
  readonly #local: LocalTrace;
  readonly #isFirst: boolean;

  private constructor(
    local: LocalTrace,
    first: boolean,
    parent: { readonly traceId: string; readonly spanId: string },
    begin: {
      readonly name: string;
      readonly kind: SpanKind;
      readonly beganMs?: number | undefined;
      readonly spanId?: string;
    },
  ) {
    this.spanId = begin.spanId ?? newSpanId();
    this.#local = local;
    this.#isFirst = first;
    this.traceId = parent.traceId;
    this.parentId = parent.spanId;
    this.name = begin.name;
    this.kind = begin.kind;
    this.beganMs = begin.beganMs ?? local.sink.nowMs();
  }

  /** Begins the first span of a trace at this site; `parent.spanId` is empty where the trace begins here. */
  static first(
    sink: SpanSink,
    parent: { readonly traceId: string; readonly spanId: string; readonly state: string },
    begin: { readonly name: string; readonly kind: SpanKind; readonly beganMs?: number | undefined },
  ): Span {
    return new Span(new LocalTrace(sink, parent.state), true, parent, begin);
  }

  /** `tracestate`, as it came. */
  get state(): string {
    return this.#local.state;
  }

  /**
   * Begins a span below this one, or below another of its trace; undefined when the trace has too many (S2).
   */
  child(
    name: string,
    kind: SpanKind = SPAN_KIND.internal,
    below: { readonly traceId: string; readonly spanId: string } = this,
  ): Span | undefined {
    return this.#mayGrow() ? new Span(this.#local, false, below, { name, kind }) : undefined;
  }

  /** Adds a span that was made elsewhere for this one, whole; its time is bounded by this one's. */
  adopt(made: AdoptedSpan): void {
    if (!this.#mayGrow()) return;
    const nowMs = this.#local.sink.nowMs();
    const within = (ms: number) => Math.min(Math.max(ms, this.beganMs), nowMs);
    const { traceId } = this;
    const { name, kind, spanId } = made;
    const span = new Span(this.#local, false, { traceId, spanId: made.parentId }, {
      name,
      kind,
      spanId,
      beganMs: within(made.beganMs),
    });
    span.attributes.push(...made.attributes);
    span.failed = made.failed;
    span.end(within(made.endedMs));
  }

  #mayGrow(): boolean {
    const local = this.#local;
    if (local.spans < SPANS_MAX) return ++local.spans > 0;
    local.dropped++;
    return false;
  }

  /** Sets an attribute (S1). */
  set(name: string, value: AttributeValue): this {
    if (this.endedMs === 0) this.attributes.push(name, value);
    return this;
  }

  /** Marks the span as failed, with this code. */
  fail(code: string): this {
    if (this.endedMs === 0) {
      this.failed = true;
      this.set("error.type", code);
    }
    return this;
  }

  /** Ends the span; a second end changes nothing (S3). */
  end(atMs?: number): void {
    if (this.endedMs !== 0) return;
    const { sink, dropped } = this.#local;
    if (this.#isFirst && dropped > 0) this.set("sojourn.spans.dropped", dropped);
    this.endedMs = Math.max(this.beganMs, atMs ?? sink.nowMs());
    sink.ended(this);
  }

  /** Ends the span when a promise settles, and returns the promise's outcome. */
  async around<T>(work: Promise<T>, codeOf: (error: unknown) => string): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.fail(codeOf(error));
      throw error;
    } finally {
      this.end();
    }
  }
}

/** Returns a failure's code, as far as it has one; never its message (S1). */
export function failureCode(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code === "string" && /^[\w.-]{1,64}$/.test(code)) return code;
  return error instanceof Error && /^\w{1,64}$/.test(error.name) ? error.name : "_OTHER";
}
