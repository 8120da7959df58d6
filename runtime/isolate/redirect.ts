/** Redirects as the Fetch standard has them: what the next request is like. Used on both sides of the socket. */

const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** As fetch() has it. */
export const REDIRECTS_MAX = 20;

/** Whether a response with this status and a location sends on. */
export const isRedirect = (status: number): boolean => REDIRECT_STATUS.has(status);

/** Whether the next request is a GET without a body. */
export const turnsToGet = (status: number, method: string): boolean =>
  status === 303 && method !== "HEAD" || status <= 302 && method === "POST";

/** Tells which headers the next request does not take along. */
export function droppedHeaders(from: URL, to: URL, toGet: boolean): (name: string) => boolean {
  const sameOrigin = to.origin === from.origin;
  return (name) => toGet && /^content-/i.test(name) || !sameOrigin && /^(authorization|cookie)$/i.test(name);
}
