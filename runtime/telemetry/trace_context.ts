/**
 * W3C Trace Context: `traceparent` and `tracestate`, read and written.
 *
 *   version "00" · trace id, 32 hexadecimal digits · parent id, 16 · flags, 2 (bit 0: sampled)
 *
 * T1  A header that cannot be read is treated as absent: a caller's mistake begins a new trace, and never fails a
 *     request.
 */

/** The place of a span in its trace, as children and other sites need it. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** `tracestate` as it came; empty where there is none. It is passed on and never looked into. */
  readonly state: string;
}

/** Names of the headers. */
export const TRACEPARENT = "traceparent";
export const TRACESTATE = "tracestate";

/** Form of `traceparent`. Later versions may have more fields behind the flags; 00 has none. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
/** Characters of `tracestate` that the standard asks everyone to pass on; a longer one is dropped whole. */
const STATE_CHARACTERS_MAX = 512;
const STATE_FORM = /^[\x20-\x7e\t]*$/;
/** Characters of a `traceparent` with fields of a version to come; anything longer is none. */
const PARENT_CHARACTERS_MAX = 256;

/** Reads a `traceparent`; null where there is none that can be read (T1). */
export function parseTraceparent(
  text: string | null | undefined,
  state?: string | null,
): TraceContext | null {
  if (text === null || text === undefined || text.length > PARENT_CHARACTERS_MAX) return null;
  const [, version, traceId = "", spanId = "", flags = "00", rest] = FORM.exec(text) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return null;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1, state: passedState(state) };
}

function passedState(state: string | null | undefined): string {
  if (state === null || state === undefined) return "";
  return state.length <= STATE_CHARACTERS_MAX && STATE_FORM.test(state) ? state.trim() : "";
}

/** Writes a `traceparent`. */
export const formatTraceparent = (context: Omit<TraceContext, "state">): string =>
  `00-${context.traceId}-${context.spanId}-${context.sampled ? "01" : "00"}`;

/** Returns the context that header pairs carry. */
export function traceContextOf(headers: Iterable<readonly [string, string]>): TraceContext | null {
  let parent: string | undefined;
  let state: string | undefined;
  for (const [name, value] of headers) {
    if (name === TRACEPARENT) parent = value;
    else if (name === TRACESTATE) state = state === undefined ? value : `${state},${value}`;
  }
  return parent === undefined ? null : parseTraceparent(parent, state);
}

/** Returns header pairs with another context in them. */
export function withContext(
  headers: readonly (readonly [string, string])[],
  context: TraceContext,
): [string, string][] {
  const out: [string, string][] = [];
  for (const [name, value] of headers) {
    if (name !== TRACEPARENT && name !== TRACESTATE) out.push([name, value]);
  }
  out.push([TRACEPARENT, formatTraceparent(context)]);
  if (context.state !== "") out.push([TRACESTATE, context.state]);
  return out;
}
