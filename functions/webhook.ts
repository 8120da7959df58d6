/**
 * The endpoint of a queue, as an app declares it: messages are posted to it as Standard Webhooks has it
 * (runtime/queues/webhooks.ts).
 *
 * WH1 A declaration holds no secret: it names one. A manifest can be read by whoever operates the cluster.
 * WH2 No header that an app declares is one that the post or its connection needs.
 */
import { z } from "zod";

/** Characters of an address: what proxies and servers take. */
const URL_CHARS_MAX = 2_048;
/** Time that an endpoint has at least, and at most: one that needs longer answers first, and works after that. */
const TIMEOUT_MS_MIN = 100, TIMEOUT_MS_MAX = 60_000;
/** Headers that an app adds, and characters of one. */
const HEADERS_MAX = 32, HEADER_CHARS_MAX = 1_024;
/** Headers of the post itself, of its connection, of its trace; and those whose values are secrets (WH1, WH2). */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...["accept-encoding", "authorization", "connection", "cookie", "expect", "host", "keep-alive", "te"],
  ...["traceparent", "tracestate", "trailer", "transfer-encoding", "upgrade"],
]);
const OWN_PREFIXES = ["content-", "proxy-", "sojourn-", "webhook-"];
const isOwn = (header: string): boolean =>
  OWN_HEADERS.has(header) || OWN_PREFIXES.some((prefix) => header.startsWith(prefix));

const headersSchema = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,99}$/, { error: "the name of a header, in lower case" })
    .refine((header) => !isOwn(header), {
      error: "another header: this one is the post's own, or holds a secret, which a manifest can't keep",
    }),
  z.string().max(HEADER_CHARS_MAX).regex(/^[\x20-\x7e]*$/, { error: "a value of visible ASCII characters" }),
).refine((headers) => Object.keys(headers).length <= HEADERS_MAX, {
  error: `at most ${HEADERS_MAX} headers`,
});

/** Schema of a declared endpoint; the secret's name is checked against the app's secrets (manifest.ts). */
export const webhookSchema = z.strictObject({
  url: z.string().max(URL_CHARS_MAX).refine(isEndpoint, {
    error: "https://host[:port]/path (or http:), without a user or a fragment",
  }),
  secret: z.string(),
  timeoutMs: z.int().min(TIMEOUT_MS_MIN).max(TIMEOUT_MS_MAX).optional(),
  headers: headersSchema.optional(),
});

/** Reports whether a text is an address that may be posted to; a password in it would be a secret (WH1). */
function isEndpoint(text: string): boolean {
  if (!/^https?:\/\/[^/]/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  return username === "" && password === "" && hash === "" && !text.endsWith("#");
}
