/**
 * Messages as programs outside send them and see them: over HTTP, as text, JSON or bytes.
 *
 * OM1 What is stored as text is UTF-8, and what is stored as JSON can be parsed: whoever gets it can read it.
 */
import { z } from "zod";
import type { NewMessage } from "../../functions/queues/broker.ts";
import type { BodyFormat, MessageEnvelope } from "../../functions/queues/envelope.ts";
import {
  DELAY_MS_MAX,
  PRODUCER_ID_BYTES_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  SEND_MESSAGES_MAX,
} from "../../functions/queues/limits.ts";
import { decodeValue } from "../../functions/values/value.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { jsonValue } from "../observe/json_value.ts";

/** How a message is sent, beside its body. */
const options = {
  id: z.string().min(1).max(PRODUCER_ID_BYTES_MAX).optional(),
  delayMs: z.number().min(0).max(DELAY_MS_MAX).optional(),
  ttlMs: z.number().min(1).max(DELAY_MS_MAX).optional(),
};
const manySchema = z.strictObject({
  messages: z.array(z.strictObject({ body: z.json(), ...options })).min(1).max(SEND_MESSAGES_MAX),
});
/** Digits of a header: as long as any time that a message may have. */
const MS = /^\d{1,10}$/;

const utf8 = new TextEncoder(), strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns the one message that a request carries: its body, and headers that say how it is sent. @throws Problem */
export function messageIn(headers: Headers, body: Uint8Array): NewMessage {
  const id = headers.get("sojourn-message-id");
  const delayMs = millisecondsOf(headers, "sojourn-message-delay-ms");
  const ttlMs = millisecondsOf(headers, "sojourn-message-ttl-ms");
  const format = formatOf(headers.get("content-type"));
  if (format !== "bytes") readable(format, body);
  return {
    body,
    format,
    ...id === null ? {} : { id },
    ...delayMs === undefined ? {} : { delayMs },
    ...ttlMs === undefined ? {} : { ttlMs },
  };
}

/** Returns the messages of a request that carries several, as JSON. @throws Problem */
export function messagesIn(request: unknown): NewMessage[] {
  const { messages } = parsed(manySchema, request);
  return messages.map(({ body, id, delayMs, ttlMs }, place) => {
    const bytes = utf8.encode(JSON.stringify(body));
    if (bytes.length > QUEUE_MESSAGE_BYTES_MAX) {
      throw tooLong(`messages.${place}.body has ${bytes.length} bytes`);
    }
    return {
      body: bytes,
      format: "json",
      ...id === undefined ? {} : { id },
      ...delayMs === undefined ? {} : { delayMs },
      ...ttlMs === undefined ? {} : { ttlMs },
    };
  });
}

/** Problem of a message that is longer than one may be. */
export const tooLong = (what: string): Problem =>
  new Problem("limit_message", `${what}: up to ${QUEUE_MESSAGE_BYTES_MAX} may be sent as one message`);

/** Parses what a request says. @throws Problem */
export function parsed<T>(schema: z.ZodType<T>, given: unknown): T {
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? "the request" : issue.path.join(".");
  throw new Problem("query_invalid", `${where}: ${issue?.message ?? "is not valid"}`);
}

function millisecondsOf(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  if (text === null) return undefined;
  if (MS.test(text)) return Number(text);
  throw new Problem(
    "message_invalid",
    `${name} takes milliseconds, 0 to ${DELAY_MS_MAX}, not ${JSON.stringify(text.slice(0, 100))}`,
  );
}

/** Returns the format of what has a content type. Parameters such as a charset don't count: text is UTF-8. */
function formatOf(contentType: string | null): BodyFormat {
  const [type = ""] = (contentType ?? "").toLowerCase().split(";");
  const name = type.trim();
  if (name === "application/json" || name.endsWith("+json")) return "json";
  return name.startsWith("text/") ? "text" : "bytes";
}

/** @throws Problem for bytes that are not what their content type says (OM1). */
function readable(format: BodyFormat, body: Uint8Array): void {
  try {
    const text = strictUtf8.decode(body);
    if (format === "json") JSON.parse(text);
  } catch {
    throw new Problem("message_invalid", `the body is no ${format === "json" ? "JSON" : "UTF-8"}`);
  }
}

/** The body of a message as programs outside see it: bytes are base64. */
export interface ShownBody {
  readonly format: Exclude<BodyFormat, "value">;
  readonly body: unknown;
}

/** Returns the body of a message; what an app's function sent is shown as JSON. @throws Error for what can't be read */
export function shownBody({ format, body }: Pick<MessageEnvelope, "format" | "body">): ShownBody {
  if (format === "bytes") return { format, body: body.toBase64() };
  if (format === "value") return { format: "json", body: jsonValue(decodeValue(body)) };
  const text = strictUtf8.decode(body);
  return { format, body: format === "json" ? JSON.parse(text) : text };
}
