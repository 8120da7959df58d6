/**
 * The session's cookie: its names, how a browser reads a `Set-Cookie`, and who may change it.
 *
 * CK1  Over https its name begins with `__Host-`: a browser takes such a cookie from this very host and for all of its
 *      paths, or not at all. Neither a sibling host, nor a page's script, nor a `Path` of its own puts another in its
 *      place. Without https browsers refuse that name, and the plain one is used; each name is read only where it is
 *      set.
 * CK2  An app never sets a cookie that a browser, or this site, reads as the session's cookie, however it is spelled.
 * CK3  A request that another site's page made a browser send, with a method that changes something, comes without the
 *      cookie (`SameSite=Lax`). That it has none says nothing, so its answer leaves the cookie as it is.
 */

/** Name of the cookie over http, and of the query parameter for WebSockets. */
export const SESSION_COOKIE = "sojourn_session";
/** Name of the cookie over https (CK1). */
const SECURE_COOKIE = `__Host-${SESSION_COOKIE}`;
const OURS: ReadonlySet<string> = new Set([SESSION_COOKIE, SECURE_COOKIE.toLowerCase()]);
/** `Max-Age` of the cookie: 30 days. */
const COOKIE_S = 30 * 24 * 60 * 60;

const nameOf = (secure: boolean): string => secure ? SECURE_COOKIE : SESSION_COOKIE;
const attributes = (secure: boolean, maxAgeS: number): string =>
  `HttpOnly; SameSite=Lax; Path=/; Max-Age=${maxAgeS}${secure ? "; Secure" : ""}`;

/** Returns the `Set-Cookie` that keeps a token. */
export const sessionCookie = (text: string, secure: boolean): string =>
  `${nameOf(secure)}=${text}; ${attributes(secure, COOKIE_S)}`;

/** Returns the `Set-Cookie` that drops the cookie. */
export const clearedCookie = (secure: boolean): string => `${nameOf(secure)}=; ${attributes(secure, 0)}`;

/** Removes the whitespace that cookies allow at both ends; `trim` takes more, which browsers leave in names. */
const trimmed = (text: string): string => text.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, "");

/** Splits a cookie pair as browsers and servers do: without "=" all of it is the value. */
function pairOf(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf("=");
  return at < 0
    ? { name: "", value: trimmed(text) }
    : { name: trimmed(text.slice(0, at)), value: trimmed(text.slice(at + 1)) };
}

/**
 * Reports whether some browser or server reads a pair as one of the session's cookies (CK2): the case of a prefix does
 * not count.
 */
function isOurs(text: string): boolean {
  // A cookie without a name is kept, and sent as its value alone, which the receiver may read as a name and a value.
  const plain = text.replace(/^[ \t=]+/, "");
  return OURS.has(trimmed(plain.split("=", 1)[0] ?? "").toLowerCase());
}

/** Reports whether an app's `Set-Cookie` would change the session's cookie (CK2). */
export const setsOurCookie = (value: string): boolean => isOurs(value.split(";", 1)[0] ?? "");

/** Parts of a `Cookie` header: the session's cookies, and the rest, which is the app's. */
export interface SplitCookie {
  /** Values of the session's cookies by their names over http and over https; null where there is none. */
  readonly plain: string | null;
  readonly secure: string | null;
  readonly rest: string;
}

/** Takes the session's cookies out of a `Cookie` header. */
export function splitCookie(value: string): SplitCookie {
  if (!value.toLowerCase().includes(SESSION_COOKIE)) return { plain: null, secure: null, rest: value };
  let plain: string | null = null;
  let secure: string | null = null;
  const rest: string[] = [];
  for (const part of value.split(";")) {
    const text = trimmed(part);
    const { name, value } = pairOf(text);
    if (name === SESSION_COOKIE) plain = value;
    else if (name === SECURE_COOKIE) secure = value;
    else if (text !== "" && !isOurs(text)) rest.push(text);
  }
  return { plain, secure, rest: rest.join("; ") };
}

/** Parts of a request's head that tell whose page made a browser send it. */
export interface Sender {
  readonly method: string;
  /** Values of `Sec-Fetch-Site` and `Origin`; null where there is none. */
  readonly fetchSite: string | null;
  readonly origin: string | null;
  /** Host with its port, as the request's URL has it. */
  readonly host: string;
}

/** Reports whether another site's page made a browser send a request that changes something (CK3). */
export function isCrossSite({ method, fetchSite, origin, host }: Sender): boolean {
  if (method === "GET" || method === "HEAD") return false;
  if (fetchSite !== null) return fetchSite === "cross-site";
  // Browsers before 2023 send no `Sec-Fetch-Site`; the cookie comes along from a sibling host as well, and need not be
  // set again.
  return origin !== null && hostOf(origin) !== host;
}

/** Returns the host, with its port, of an origin as a header has it. */
const hostOf = (origin: string): string => origin.slice(origin.indexOf("//") + 2);
