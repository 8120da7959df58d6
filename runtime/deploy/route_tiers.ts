/**
 * The tier of a path, by the routes that an app declared.
 *
 * Most routes are a path, or the beginning of one, and most paths are of characters that URLs leave as they are: those
 * are compared as text. Each other route is matched by an automaton (functions/route_pattern.ts).
 *
 * TR1  Text is compared only where the pattern would decide the same: the route has no character that patterns give a
 *      meaning, no segment that begins with a dot (URLs resolve `.` and `..`), and no wildcard but one at the end; and
 *      the path is in its canonical form.
 * TR2  A route that can't be read matches nothing, and is noted: an app is served with the others.
 * TR3  The cost of a path is bounded, whoever wrote the routes: by the states of the patterns and by the path's length.
 */
import {
  canonicalPath,
  isPlainRoute,
  MATCHED_CHARS_MAX,
  RoutePatterns,
} from "../../functions/route_pattern.ts";
import type { Tier } from "../../functions/define.ts";
import type { StoredManifest } from "./records.ts";

/** Pattern of paths that are in their canonical form. */
const PLAIN_PATH = /^(?:\/(?!\.)[A-Za-z0-9_~.-]*)+$/;

/** A route: it matches paths in their canonical form. */
interface Route {
  readonly matches: (path: string) => boolean;
  readonly at: Tier;
}

/** Returns the tier of a path; null for one that is too long to be matched (TR3). */
export type TierOf = (path: string) => Tier | null;

/**
 * Returns a function that finds the tier of a path by the first route that matches, in the order in which the app
 * declared them.
 *
 * @param ignored called for a route that can't be read (TR2).
 */
export function tierMatcher(
  routes: StoredManifest["routes"],
  ignored: (pattern: string, why: string) => void = () => {},
): TierOf {
  const all: Route[] = [];
  const patterns = new RoutePatterns();
  let pathCharsMax = Infinity;
  for (const [pattern, { at }] of Object.entries(routes)) {
    const text = textMatcher(pattern);
    if (text === null) pathCharsMax = MATCHED_CHARS_MAX;
    try {
      all.push({ matches: text ?? matcherOf(pattern, patterns, ignored), at });
    } catch (error) {
      ignored(pattern, error instanceof Error ? error.message : String(error));
    }
  }
  if (all.length === 0) return () => "edge";
  return (path) => {
    if (path.length > pathCharsMax) return null;
    const canonical = PLAIN_PATH.test(path) ? path : canonicalPath(path);
    for (const { matches, at } of all) if (matches(canonical)) return at;
    return "edge";
  };
}

/** Returns a matcher that compares text; null where text can't decide (TR1). */
function textMatcher(pattern: string): Route["matches"] | null {
  if (!isPlainRoute(pattern)) return null;
  if (!pattern.endsWith("*")) return (path) => path === pattern;
  const start = pattern.slice(0, -1);
  return (path) => path.startsWith(start);
}

/** Returns a pattern's matcher. @throws Error for a pattern that can't be read, or that there is no time for (TR3). */
function matcherOf(
  pattern: string,
  patterns: RoutePatterns,
  ignored: (pattern: string, why: string) => void,
): Route["matches"] {
  const { hasExpression, matches } = patterns.read(pattern);
  if (hasExpression) {
    ignored(pattern, "it has an expression, which is tried on short paths only; deploy without");
  }
  return matches;
}
