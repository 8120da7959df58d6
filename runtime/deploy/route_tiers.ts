/**
 * The tier of a path, by the routes that an app declared.
 *
 * Most routes are a path, or the beginning of one, and most paths are of characters that URLs leave as they are: those
 * are compared as text. The others are matched by an automaton each (functions/route_pattern.ts).
 *
 * R1  Text decides only where the pattern would say the same: no character in it that patterns give a meaning, no segment
 *     that begins with a dot (URLs resolve `.` and `..`), and no wildcard but one at the end; and a path in its one form.
 * R2  A route that can't be read matches nothing, and is noted: an app is served with the others.
 * R3  What a path costs is bounded, whoever wrote the routes: by the states of the patterns and by the path's length.
 */
import {
  canonicalPath,
  isPlainRoute,
  MATCHED_CHARS_MAX,
  RoutePatterns,
} from "../../functions/route_pattern.ts";
import type { Tier } from "../../functions/define.ts";
import type { StoredManifest } from "./records.ts";

/** A path that is in its one form. */
const PLAIN_PATH = /^(?:\/(?!\.)[A-Za-z0-9_~.-]*)+$/;

/** What matches paths in their one form. */
interface Route {
  readonly matches: (path: string) => boolean;
  readonly at: Tier;
}

/** The tier of a path; null for one that is too long to be told (R3). */
export type TierOf = (path: string) => Tier | null;

/**
 * The tier of a path by the first route that matches, in the order in which the app declared them.
 *
 * @param ignored is told of a route that can't be read (R2).
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

/** R1; null where text can't tell. */
function textMatcher(pattern: string): Route["matches"] | null {
  if (!isPlainRoute(pattern)) return null;
  if (!pattern.endsWith("*")) return (path) => path === pattern;
  const start = pattern.slice(0, -1);
  return (path) => path.startsWith(start);
}

/** @throws Error for one that can't be read, or that there is no time for (R3). */
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
