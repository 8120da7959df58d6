/**
 * Streams of one JSON value a line. A blank line means that the other side is there and has nothing to say.
 *
 * J1  A reader holds one line: a line longer than it accepts ends the reading with an error.
 */

/** Characters of the longest line: sixteen times the longest of a log; a site's overview with a thousand apps. */
const LINE_CHARS_MAX = 1024 * 1024;

const encoder = new TextEncoder();

/** Returns a value as a line. */
export const ndjsonLine = (value: unknown): Uint8Array<ArrayBuffer> =>
  encoder.encode(JSON.stringify(value) + "\n");

/**
 * Milliseconds after which an answer that has nothing to say gives a sign of life: readers give up after three that did
 * not come.
 */
export const LIFE_SIGN_MS = 5_000;

/** Line that is a sign of life. */
export const BLANK_LINE: Uint8Array<ArrayBuffer> = encoder.encode("\n");

/** Headers of an answer of JSON lines. */
export const NDJSON_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "application/x-ndjson",
  "cache-control": "no-store",
};

/**
 * Returns a body that is made as it is read: `next` gives its next bytes, or null at the end. `close` is called once,
 * when the body has ended, failed, or its reader has gone.
 */
export function pulledBody(
  next: () => Promise<Uint8Array<ArrayBuffer> | null>,
  close: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      try {
        const bytes = await next();
        if (bytes !== null) return controller.enqueue(bytes);
        close();
        controller.close();
      } catch (error) {
        close();
        controller.error(error);
      }
    },
    cancel: close,
  }, { highWaterMark: 0 });
}

/** Yields the values of a stream, parsed; undefined for a blank line. Leaving the loop, or the signal, gives it up. */
export async function* readNdjson(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", leave);
  if (signal?.aborted) leave();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > LINE_CHARS_MAX) throw new Error(`a line of more than ${LINE_CHARS_MAX} characters`); // J1
      for (const line of lines) yield line === "" ? undefined : JSON.parse(line);
    }
    if (rest !== "" && signal?.aborted !== true) yield JSON.parse(rest);
  } finally {
    signal?.removeEventListener("abort", leave);
    leave();
  }
}
