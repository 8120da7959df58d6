/**
 * Decides which requests are recorded, and begins their first span at this site.
 *
 * D1  A decision is made once, where a trace begins: at the caller, if it sent one, else at the site where the request
 *     arrived. Every other site follows it.
 * D2  However many callers ask to be recorded, a site begins no more than so many recorded traces a second.
 *     Requests over links are not counted again.
 * D3  Off, a tracer is {@link INERT}: no header is read, nothing is allocated.
 */
import { Span, SPAN_KIND, type SpanKind, type SpanSink } from "./span.ts";
import {
  parseTraceparent,
  type TraceContext,
  traceContextOf,
  TRACEPARENT,
  TRACESTATE,
  withContext,
} from "./trace_context.ts";
import { newTraceId } from "./trace_ids.ts";

/** Begins the spans of a site. */
export interface Tracer {
  /** False where nothing is ever recorded. */
  readonly isOn: boolean;
  /**
   * Begins the span of a client's request: recorded if its caller says so, or by chance; by `ratio` where that is
   * given.
   */
  arrived(headers: { get(name: string): string | null }, ratio?: number): Span | undefined;
  /** Begins the span of a request over a link: recorded if the site that it came from does. */
  forwarded(headers: readonly (readonly [string, string])[]): Span | undefined;
  /** Begins a span for work of another site on behalf of a trace, by the context that came with its message. */
  continued(context: TraceContext | null, name: string, kind: SpanKind): Span | undefined;
  /** Returns header pairs for the next site: a request that is not recorded here is marked so there (D1). */
  passed(headers: [string, string][], span: Span | undefined): [string, string][];
}

/** The tracer that records nothing (D3). */
export const INERT: Tracer = Object.freeze({
  isOn: false,
  arrived: () => undefined,
  forwarded: () => undefined,
  continued: () => undefined,
  passed: (headers: [string, string][]) => headers,
});

/** Options of the choice of traces. */
export interface SamplingOptions {
  /** Share of the traces that begin here and are recorded: 0 … 1. */
  readonly ratio: number;
  /** True where a caller's own decision counts. */
  readonly followCallers: boolean;
  /** Number of recorded traces that may begin at this site in a second (D2). */
  readonly tracesPerSecondMax: number;
}

/** A tracer that records into a sink. */
export class SamplingTracer implements Tracer {
  readonly isOn = true;
  readonly #sink: SpanSink;
  readonly #options: SamplingOptions;
  readonly #random: () => number;
  #second = 0;
  #begun = 0;
  /** Number of traces that were to be recorded and were not (D2). */
  limited = 0;

  constructor(sink: SpanSink, options: SamplingOptions, random: () => number = Math.random) {
    this.#sink = sink;
    this.#options = options;
    this.#random = random;
  }

  arrived(headers: { get(name: string): string | null }, ratio = this.#options.ratio): Span | undefined {
    const { followCallers } = this.#options;
    const text = followCallers ? headers.get(TRACEPARENT) : null;
    const caller = text === null ? null : parseTraceparent(text, headers.get(TRACESTATE));
    const wanted = caller === null ? ratio > 0 && this.#random() < ratio : caller.sampled;
    if (!wanted || !this.#mayBegin()) return undefined;
    return this.#first(caller ?? { traceId: newTraceId(), spanId: "", state: "" }, "HTTP", SPAN_KIND.server);
  }

  forwarded(headers: readonly (readonly [string, string])[]): Span | undefined {
    return this.continued(traceContextOf(headers), "HTTP", SPAN_KIND.server);
  }

  continued(context: TraceContext | null, name: string, kind: SpanKind): Span | undefined {
    return context?.sampled === true ? this.#first(context, name, kind) : undefined;
  }

  passed(headers: [string, string][], span: Span | undefined): [string, string][] {
    if (span !== undefined) return withContext(headers, span);
    const context = traceContextOf(headers);
    return context?.sampled === true ? withContext(headers, { ...context, sampled: false }) : headers;
  }

  #first(
    parent: { readonly traceId: string; readonly spanId: string; readonly state: string },
    name: string,
    kind: SpanKind,
  ): Span {
    return Span.first(this.#sink, parent, { name, kind });
  }

  /** Counts a trace that begins; returns false where no more may in this second (D2). */
  #mayBegin(): boolean {
    const second = Math.floor(this.#sink.nowMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#begun = 0;
    }
    if (this.#begun >= this.#options.tracesPerSecondMax) {
      this.limited++;
      return false;
    }
    this.#begun++;
    return true;
  }
}
