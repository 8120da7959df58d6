/**
 * Spans that an app made inside its isolate, as they arrive at the site (inside/opentelemetry.ts).
 *
 * A1  A message that is no span is dropped: an app's telemetry never ends its isolate.
 * A2  A span lies in the request's trace and within the request's time.
 * A3  Its texts leave without the values of the app's secrets, as log lines do.
 */
import { z } from "zod";
import type { Span } from "../telemetry/mod.ts";

const id = z.string().regex(/^[0-9a-f]{16}$/);
const appSpan = z.strictObject({
  spanId: id,
  parentId: id,
  name: z.string().max(256),
  /** Kind of the span; the API's numbers begin with 0, OTLP's with 1. */
  kind: z.number().int().min(0).max(4),
  beganMs: z.number(),
  endedMs: z.number(),
  failed: z.boolean(),
  attributes: z.array(z.tuple([
    z.string().max(256),
    z.union([z.string().max(1024), z.number(), z.boolean()]),
  ])).max(64),
});

/**
 * Bytes, in JSON, of a span whose every text is as long as it may be: a longer message is no span, and is not even
 * read.
 */
export const APP_SPAN_BYTES_MAX = 512 * 1024;

/**
 * Adds a span of an app to the trace, below its request's call.
 *
 * @param redact takes the values of secrets out of a text (A3).
 */
export function takeAppSpan(call: Span, text: string, redact: (text: string) => string): void {
  let made: z.infer<typeof appSpan>;
  try {
    made = appSpan.parse(JSON.parse(text));
  } catch {
    return; // A1
  }
  const { kind, name, attributes, ...span } = made;
  call.adopt({
    ...span,
    name: redact(name),
    kind: (kind + 1) as 1 | 2 | 3 | 4 | 5,
    attributes: attributes.flat().map((part) => typeof part === "string" ? redact(part) : part),
  });
}
