/**
 * Content types of files, by their extensions: the IANA table of the `mime` package, which is kept up to date for us.
 * Browsers are told not to guess another (`nosniff`), so that a file is only what its name says.
 */
import mime from "mime";

const UNKNOWN = "application/octet-stream";

/** Pattern of the types that are text, hence worth compressing. */
const TEXTUAL =
  /^(?:text\/|application\/(?:json|xml|wasm|x?javascript|manifest\+json|x-sh|sql|toml|yaml))|\+(?:json|xml)$/;
/** Types that are binary, and not compressed by their own format. */
const LOOSE = new Set([
  "image/bmp",
  "image/x-icon",
  "image/vnd.microsoft.icon",
  "font/ttf",
  "font/otf",
  "application/vnd.ms-fontobject",
]);

/** Returns the `Content-Type` of a path. */
export function contentType(path: string): string {
  const type = mime.getType(path) ?? UNKNOWN;
  return type.startsWith("text/") ? `${type}; charset=utf-8` : type;
}

/** Reports whether a file of this path is likely to become smaller. */
export function isCompressible(path: string): boolean {
  const type = mime.getType(path) ?? UNKNOWN;
  return TEXTUAL.test(type) || LOOSE.has(type);
}
