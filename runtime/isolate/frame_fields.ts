/**
 * Readers for fields of frames that an isolate sends to its site: whatever an app has bent a frame into, each returns a
 * value of its type within its bounds, or throws FrameError, before anything is done with the frame (frames.ts, F4).
 */
import { isNumberValue, isPlainValue } from "../../store/model/value.ts";
import type { Payload } from "./frame_reader.ts";
import { FrameError } from "./frames.ts";

/** Characters of the longest JSON: a manifest with all of its routes; every other text is some kilobytes. */
const JSON_CHARS_MAX = 1024 * 1024;
/**
 * Levels to which JSON may be nested: no manifest or report is half as deep. Some thousand end what walks through it by
 * calling itself.
 */
export const JSON_DEPTH_MAX = 64;

/** Bytes of UTF-8 that a UTF-16 unit takes at most. */
const UTF8_BYTES_MAX = 3;

/** Characters of names and codes. */
const WORD_CHARS_MAX = 1024;
/** Bytes of an error's message that are kept: what a person reads of it. An app may throw 8 MiB of text. */
const MESSAGE_BYTES_MAX = 8 * 1024;
const STACK_BYTES_MAX = 32 * 1024;
/**
 * Bytes of a line of the console that are read: twice what is kept of it, so that no half of a secret is left where it
 * is cut.
 */
export const CONSOLE_LINE_BYTES_MAX = 32 * 1024;

const LEVELS: ReadonlySet<string> = new Set(["debug", "info", "warn", "error"]);

/** Reads JSON of bounded length and depth. @throws FrameError */
export function readJson(payload: Payload, charsMax = JSON_CHARS_MAX): unknown {
  const text = payload.text(charsMax * UTF8_BYTES_MAX);
  if (text.length > charsMax) throw new FrameError(`${text.length} characters of JSON, of ${charsMax}`);
  if (!isShallow(text)) throw new FrameError(`JSON is nested more than ${JSON_DEPTH_MAX} times`);
  try {
    return JSON.parse(text);
  } catch {
    throw new FrameError("what should be JSON is none");
  }
}

/** Reports whether a JSON text is nested JSON_DEPTH_MAX times at most; may be asked of a text that is no JSON, too. */
export function isShallow(text: string): boolean {
  let depth = 0, inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (inString) {
      if (character === BACKSLASH) at++;
      else if (character === QUOTE) inString = false;
    } else if (character === QUOTE) inString = true;
    else if (character === OPEN_BRACE || character === OPEN_BRACKET) {
      if (++depth > JSON_DEPTH_MAX) return false;
    } else if (character === CLOSE_BRACE || character === CLOSE_BRACKET) depth--;
  }
  return true;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Reads a non-negative safe integer. @throws FrameError */
export function readNumber(payload: Payload): number {
  const value = payload.f64();
  if (!(Number.isSafeInteger(value) && value >= 0)) throw new FrameError(`${value} is no unsigned integer`);
  return value;
}

/** Reads a value that an app may set a row to. @throws FrameError */
export function readRowValue(payload: Payload): Uint8Array {
  const value = payload.bytes();
  if (!isPlainValue(value)) throw new FrameError(`${value.length} bytes of tag ${value[0]} are no value`);
  return value;
}

/** Reads a number that is added to a row. @throws FrameError */
export function readAmount(payload: Payload): Uint8Array {
  const value = payload.bytes();
  if (!isNumberValue(value)) throw new FrameError(`${value.length} bytes of tag ${value[0]} are no number`);
  return value;
}

/** Reads a name, a code or a subprotocol. @throws FrameError */
export function readWord(payload: Payload): string {
  const text = payload.text(WORD_CHARS_MAX * UTF8_BYTES_MAX);
  if (text.length > WORD_CHARS_MAX) {
    throw new FrameError(`a name of ${text.length} characters, of ${WORD_CHARS_MAX}`);
  }
  return text;
}

/** Reads an error's message, cut to MESSAGE_BYTES_MAX: an app may say more than is kept of it. */
export const readMessage = (payload: Payload): string => cut(payload, MESSAGE_BYTES_MAX);

/** Reads an error's stack, cut as its message is. */
export const readStack = (payload: Payload): string => cut(payload, STACK_BYTES_MAX);

function cut(payload: Payload, bytesMax: number): string {
  const { text, cutBytes } = payload.textUpTo(bytesMax);
  return cutBytes === null ? text : `${text}… (${cutBytes} bytes)`;
}

/** Reads a line of the console, cut to its limit. @throws FrameError */
export function readLogLine(payload: Payload): { readonly level: string; readonly text: string } {
  const level = readWord(payload);
  if (!LEVELS.has(level)) throw new FrameError("a log line has a level that no console has");
  return { level, text: cut(payload, CONSOLE_LINE_BYTES_MAX) };
}

/** Checks that nothing follows the fields that were read. @throws FrameError */
export function readEnd(payload: Payload): void {
  if (payload.left > 0) throw new FrameError(`${payload.left} bytes follow what a frame has`);
}
