/** Values of system rows: the tag byte of JSON (value.ts) and UTF-8 JSON. */
import { VALUE_TAG } from "./value.ts";

const utf8 = new TextEncoder();
const utf8Strict = new TextDecoder("utf-8", { fatal: true });

/** Encodes a system value: tagged JSON. */
export function encodeSystem(value: unknown): Uint8Array<ArrayBuffer> {
  const body = utf8.encode(JSON.stringify(value));
  const out = new Uint8Array(body.length + 1);
  out[0] = VALUE_TAG.json;
  out.set(body, 1);
  return out;
}

/**
 * Decodes the JSON of a system value.
 *
 * @throws SyntaxError or TypeError where the bytes are not tagged UTF-8 JSON.
 */
export function decodeSystem(bytes: Uint8Array): unknown {
  if (bytes[0] !== VALUE_TAG.json) {
    throw new TypeError(`a system value begins with tag ${VALUE_TAG.json}, not ${bytes[0]}`);
  }
  return JSON.parse(utf8Strict.decode(bytes.subarray(1)));
}
