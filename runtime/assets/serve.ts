/**
 * Static files over HTTP, which the gateway looks for before it runs an app.
 *
 * Order: a GET or HEAD whose decoded path is a file's → that file; a path that ends with "/" → its index.html; a
 * folder without the slash that has an index.html → a redirect to the one with it; all else is the app's.
 *
 * S1  Only paths of the index are served; a request's path is compared, and never used to open anything.
 * S2  A path that is not what it seems (with an encoded slash, backslash or dot segment, NUL, an escape that does not
 *     decode, or an empty segment) is no file's.
 * S3  Each encoding of a file has an entity tag of its own, over its bytes' digest; ranges are of the plain one.
 * S4  An answer belongs to nobody's session: it carries no token and sets no cookie.
 */
import { type Asset, type AssetContent, type Encoding, ENCODINGS } from "./asset_index.ts";
import { noneMatch, quality, readRange } from "./conditions.ts";
import { contentType } from "./content_type.ts";

/** Reads blobs where the site runs. */
export interface AssetReader {
  /** Returns all bytes, or those of a range (both ends included). */
  body(content: AssetContent, part?: { from: number; to: number }): Promise<BodyInit>;
}

/** Request for a file. */
export interface AssetRequest {
  readonly method: string;
  /** Path and query as the app sees them. */
  readonly target: string;
  /** Text before the target in the URL that the client used: "/APP", or "". */
  readonly prefix: string;
  /** True where the client's URL ends with the prefix: `/APP`, without a slash. */
  readonly bare: boolean;
  /** Returns the value of a header, by its name in lower case. */
  header(name: string): string | null;
}

/**
 * `Cache-Control` of most files: a page must not outlive its deploy, and with an entity tag asking again costs no
 * bytes.
 */
const CHECK_AGAIN = "public, max-age=0, must-revalidate";
/** `Cache-Control` of files whose names have the hash of their content in them, by the convention of bundlers. */
const IMMUTABLE = "public, max-age=31536000, immutable";
/**
 * Pattern of names with a hash: so many hexadecimal digits are one (webpack has 20, others 16); shorter ones may be
 * dates and numbers, and a file that is wrongly called immutable is stale for a year.
 */
const HASHED = /[.\-_][0-9a-f]{16,}[.\-_]/;

/** Returns the answer to a request, or null where no file matches. */
export async function serveAsset(
  files: ReadonlyMap<string, Asset>,
  request: AssetRequest,
  reader: AssetReader,
): Promise<Response | null> {
  if (request.method !== "GET" && request.method !== "HEAD") return null;
  if (!/^[\x21-\x7e]*$/.test(request.target)) return null; // no URL has other characters; a location could not
  const query = request.target.indexOf("?");
  const raw = query < 0 ? request.target : request.target.slice(0, query);
  const path = assetPath(raw);
  if (path === null) return null;
  const isFolder = path.endsWith("/");
  const found = files.get(isFolder ? path + "index.html" : path);
  if (found !== undefined) {
    if (isFolder && request.bare) return toFolder(request, "/", query);
    return await answer(isFolder ? path + "index.html" : path, found, request, reader);
  }
  if (!isFolder && files.has(`${path}/index.html`)) return toFolder(request, raw + "/", query);
  return null;
}

/**
 * Returns a request's path in the form of an index's, with a last "/" for a folder; null where it can be none's (S2).
 */
export function assetPath(raw: string): string | null {
  if (!raw.startsWith("/") || /%2f|%5c|%00|[\\\0]/i.test(raw)) return null;
  let path: string;
  try {
    path = raw.includes("%") ? decodeURIComponent(raw) : raw;
  } catch {
    return null;
  }
  const segments = path.split("/");
  const inner = segments.slice(1, -1);
  const last = segments.at(-1) ?? "";
  const isDots = (segment: string) => segment === "." || segment === "..";
  if (inner.some((segment) => segment === "" || isDots(segment)) || isDots(last)) return null;
  return path.normalize("NFC");
}

/**
 * Redirects to a folder. `raw` has no empty segment (S2): the location cannot begin with two slashes, which would name
 * a host.
 */
function toFolder(request: AssetRequest, raw: string, query: number): Response {
  const location = request.prefix + raw + (query < 0 ? "" : request.target.slice(query));
  // The redirect is temporary: a folder of today may be a file, or the app's, tomorrow.
  return new Response(null, { status: 307, headers: { location, "cache-control": CHECK_AGAIN } });
}

async function answer(
  path: string,
  file: Asset,
  request: AssetRequest,
  reader: AssetReader,
): Promise<Response> {
  const plainTag = entityTag(file);
  const range = request.method === "GET"
    ? readRange(request.header("range"), request.header("if-range"), { etag: plainTag, bytes: file.bytes })
    : { kind: "whole" } as const;
  const encoding = range.kind === "whole" ? chooseEncoding(file, request.header("accept-encoding")) : null;
  const content = (encoding === null ? undefined : file[encoding]) ?? file;
  const etag = entityTag(file, encoding);
  const headers = new Headers({
    etag,
    "cache-control": HASHED.test(path.slice(path.lastIndexOf("/"))) ? IMMUTABLE : CHECK_AGAIN,
    "x-content-type-options": "nosniff",
  });
  if (file.br !== undefined || file.gzip !== undefined) headers.set("vary", "accept-encoding");
  if (noneMatch(request.header("if-none-match"), etag)) return new Response(null, { status: 304, headers });
  headers.set("content-type", contentType(path));
  headers.set("accept-ranges", "bytes");
  if (encoding !== null) headers.set("content-encoding", encoding);
  if (range.kind === "none") {
    headers.set("content-range", `bytes */${file.bytes}`);
    headers.delete("content-type");
    return new Response(null, { status: 416, headers });
  }
  const part = range.kind === "part" ? range : undefined;
  if (part !== undefined) headers.set("content-range", `bytes ${part.from}-${part.to}/${file.bytes}`);
  headers.set("content-length", String(part === undefined ? content.bytes : part.to - part.from + 1));
  const body = request.method === "HEAD" ? null : await reader.body(content, part);
  return new Response(body, { status: part === undefined ? 200 : 206, headers });
}

/** Digits of a digest in a tag: no two files ever share half of a SHA-256. */
const TAG_DIGITS = 32;

/**
 * Returns a file's entity tag (S3): over the plain bytes and the encoding, since a better compressor may pack the same
 * file differently.
 */
export const entityTag = (file: Asset, encoding: Encoding | null = null): string =>
  `"${file.sha256.slice(0, TAG_DIGITS)}${
    encoding === null ? "" : `-${encoding}-${file[encoding]?.sha256.slice(0, 8)}`
  }"`;

/** Returns the encoding that the client likes best; of those that it likes alike, the smaller. */
function chooseEncoding(file: Asset, accepted: string | null): Encoding | null {
  let best: Encoding | null = null;
  let bestQuality = 0;
  for (const encoding of ENCODINGS) {
    const packed = file[encoding];
    if (packed === undefined) continue;
    const value = quality(accepted, encoding);
    const smaller = best !== null && packed.bytes < (file[best]?.bytes ?? 0);
    if (value > bestQuality || (value > 0 && value === bestQuality && smaller)) {
      best = encoding;
      bestQuality = value;
    }
  }
  // A client that prefers the plain bytes says so with a quality; without one they come last.
  return best !== null && namedQuality(accepted, "identity") > bestQuality ? null : best;
}

const namedQuality = (header: string | null, name: string): number =>
  header?.toLowerCase().includes(name) ? quality(header, name) : 0;
