/**
 * The tier of a path, by the routes that an app declared.
 *
 * Matching a URLPattern costs more than the rest of a short request's way through the gateway, and nearly all
 * routes are a path, or the beginning of one: those are compared as text.
 *
 * R1  Text decides only where URLPattern would say the same: pattern and path of characters that it leaves as they
 *     are, no segment that begins with a dot (it resolves `.` and `..`), and no wildcard but one at the end.
 */
import type { StoredManifest, Tier } from "./records.ts";

/** A pattern that is plain text, or that and a final `*`. */
const PLAIN_PATTERN = /^(?:\/(?!\.)[A-Za-z0-9_~.-]*)+\*?$/;
/** A path that URLPattern takes as it is. */
const PLAIN_PATH = /^(?:\/(?!\.)[A-Za-z0-9_~.-]*)+$/;

interface Route {
  readonly pattern: URLPattern;
  /** What the path is, or begins with; null where only the pattern can tell. */
  readonly text: string | null;
  readonly isPrefix: boolean;
  readonly at: Tier;
}

/** The tier of a path by the first route that matches, in the order the app declared them. */
export function tierMatcher(routes: StoredManifest["routes"]): (pathname: string) => Tier {
  const all = Object.entries(routes).map(([pathname, { at }]): Route => {
    const isPrefix = pathname.endsWith("*");
    const text = PLAIN_PATTERN.test(pathname) ? (isPrefix ? pathname.slice(0, -1) : pathname) : null;
    return { pattern: new URLPattern({ pathname }), text, isPrefix, at };
  });
  if (all.length === 0) return () => "edge";
  return (pathname) => {
    const isPlain = PLAIN_PATH.test(pathname);
    for (const route of all) if (matches(route, pathname, isPlain)) return route.at;
    return "edge";
  };
}

/** R1 */
function matches({ pattern, text, isPrefix }: Route, pathname: string, isPlain: boolean): boolean {
  if (text === null || !isPlain) return pattern.test({ pathname });
  return isPrefix ? pathname.startsWith(text) : pathname === text;
}
