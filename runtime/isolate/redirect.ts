/** Redirects as the Fetch standard has them: what the next request is like. Used on both sides of the socket. */

const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Number of redirects that are followed: as many as fetch() follows. */
export const REDIRECTS_MAX = 20;

/** Reports whether a response with this status and a location is a redirect. */
export const isRedirect = (status: number): boolean => REDIRECT_STATUS.has(status);

/** Reports whether the next request is a GET without a body. */
export const turnsToGet = (status: number, method: string): boolean =>
  status === 303 && method !== "HEAD" || status <= 302 && method === "POST";

/** Returns a test for the headers that the next request does not take along. */
export function droppedHeaders(from: URL, to: URL, toGet: boolean): (name: string) => boolean {
  const sameOrigin = to.origin === from.origin;
  return (name) => toGet && /^content-/i.test(name) || !sameOrigin && /^(authorization|cookie)$/i.test(name);
}
