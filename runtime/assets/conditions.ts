/**
 * Conditions of a request for a file: an encoding, a range, no bytes where the client has them already (RFC 9110). All
 * of them come from outside and are read leniently: a header that cannot be read counts as absent.
 */

/** Returns the quality that `Accept-Encoding` gives an encoding; 0 where it is refused or not named. */
export function quality(header: string | null, encoding: string): number {
  if (header === null) return 0;
  let any = 0;
  for (const item of header.toLowerCase().split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q="));
    const value = q === undefined ? 1 : Number(q.slice(2));
    const valid = value >= 0 && value <= 1 ? value : 0;
    if (name === encoding || (encoding === "gzip" && name === "x-gzip")) return valid;
    if (name === "*") any = valid;
  }
  return any;
}

/** Reports whether `If-None-Match` names an entity tag; compared weakly, as it should be. */
export function noneMatch(header: string | null, etag: string): boolean {
  if (header === null) return false;
  if (header.trim() === "*") return true;
  return (header.match(/(?:W\/)?"[^"]*"/g) ?? []).some((tag) => tag.replace(/^W\//, "") === etag);
}

/** Bytes that a request asks for; from and to are included. */
export type ByteRange =
  | { readonly kind: "whole" }
  | { readonly kind: "part"; readonly from: number; readonly to: number }
  | { readonly kind: "none" };

/**
 * Returns the bytes that a `Range` asks for. One range is served; for several the whole file is sent, which a server
 * may always do.
 *
 * @param ifRange `If-Range`: where it is not the file's (strong) tag, the whole file is meant.
 */
export function readRange(
  header: string | null,
  ifRange: string | null,
  file: { etag: string; bytes: number },
): ByteRange {
  const match = header === null ? null : /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header);
  if (match === null || (ifRange !== null && ifRange.trim() !== file.etag)) return { kind: "whole" };
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return { kind: "whole" };
  if (first === "") {
    const length = Math.min(Number(last), file.bytes);
    return length === 0 ? { kind: "none" } : { kind: "part", from: file.bytes - length, to: file.bytes - 1 };
  }
  const from = Number(first), to = last === "" ? Infinity : Number(last);
  if (to < from) return { kind: "whole" };
  return from >= file.bytes ? { kind: "none" } : { kind: "part", from, to: Math.min(to, file.bytes - 1) };
}
