/**
 * Fixed boundaries of multipart forms. The platform draws a boundary of its own for each form, which no replay draws
 * again; it is replaced here by one that follows from the form.
 */
import { checkBytes } from "./rolling_check.ts";

const BOUNDARY = /^(multipart\/form-data\s*;\s*boundary=)"?([^";]+)"?/i;

/** Returns headers and body with a boundary that is the same for the same form. */
export function withFixedBoundary(
  headers: readonly (readonly [string, string])[],
  body: Uint8Array | null,
): { readonly headers: readonly (readonly [string, string])[]; readonly body: Uint8Array | null } {
  const type = headers.find(([name]) => name === "content-type")?.[1];
  const found = type === undefined ? null : BOUNDARY.exec(type);
  if (body === null || found === null) return { headers, body };
  const [whole, begin = "", drawn = ""] = found;
  const text = latin1Text(body).replaceAll(drawn, "");
  // As long as the drawn one, so that all lengths stay. A form that contains this boundary would have to know its own
  // digest.
  const fixed = `sojourn${checkBytes(0, latin1Bytes(text)).toString(16)}`.padEnd(drawn.length, "-")
    .slice(0, drawn.length);
  return {
    headers: headers.map(([name, value]) =>
      name === "content-type" ? [name, value.replace(whole, begin + fixed)] : [name, value]
    ),
    body: latin1Bytes(latin1Text(body).replaceAll(drawn, fixed)),
  };
}

/** Decodes each byte as one code unit. TextDecoder's "latin1" means windows-1252, which maps some bytes elsewhere. */
function latin1Text(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return text;
}

const latin1Bytes = (text: string): Uint8Array => Uint8Array.from(text, (unit) => unit.charCodeAt(0));
