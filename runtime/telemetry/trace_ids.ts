/** Random ids of traces and spans: drawn in pools, since a call to the system costs more than the rest of a span. */

/** Bytes that are drawn at a time: 170 traces, or 512 spans. */
const POOL_BYTES = 4096;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const pool = new Uint8Array(POOL_BYTES);
let at = POOL_BYTES;

function draw(bytes: number): string {
  if (at + bytes > POOL_BYTES) {
    crypto.getRandomValues(pool);
    at = 0;
  }
  let text = "";
  for (const end = at + bytes; at < end; at++) text += HEX[pool[at] ?? 0];
  return text;
}

/** Draws an id. One of zeros alone means "none"; one in 2^64 is drawn again. */
const drawn = (bytes: number): string => {
  const id = draw(bytes);
  return /[1-9a-f]/.test(id) ? id : draw(bytes);
};

/** Returns a new id of a trace: 32 hexadecimal digits. */
export const newTraceId = (): string => drawn(TRACE_BYTES);
/** Returns a new id of a span: 16 hexadecimal digits. */
export const newSpanId = (): string => drawn(SPAN_BYTES);
