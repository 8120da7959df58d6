/** The source map of a bundle in which cuts were made, and what it tells about the origin of a part of the bundle. */
import { decode, encode, type SourceMapSegment } from "@jridgewell/sourcemap-codec";
import type { Comment } from "acorn";
import { type Cut, namesModule } from "./cuts.ts";
import type { BundleOutcome } from "./deno_bundle.ts";
import type { Origin, Sources } from "./module_state.ts";

interface RawMap {
  readonly sources: readonly (string | null)[];
  readonly names?: readonly string[];
  readonly mappings: string;
}

/** Returns the map behind cuts, none of which has a line's end in it, or replaces one. */
export function shiftedMap(sourceMap: string, code: string, cuts: readonly Cut[]): string {
  const map = JSON.parse(sourceMap) as RawMap;
  const lines = decode(map.mappings);
  const begins = lineBegins(code);
  const sorted = [...cuts].sort((a, b) => a.start - b.start);
  let next = 0;
  for (const [line, segments] of lines.entries()) {
    const [begin, end] = [begins[line] ?? code.length, begins[line + 1] ?? Infinity];
    const here: Cut[] = [];
    for (let cut = sorted[next]; cut !== undefined && cut.start < end; cut = sorted[++next]) {
      if (cut.start >= begin) here.push(cut);
    }
    if (here.length > 0) shift(segments, begin, here);
  }
  return JSON.stringify({ ...map, mappings: encode(lines) });
}

/** Moves columns behind a cut by what it made longer; those within what it replaced lie at its end. */
function shift(segments: SourceMapSegment[], begin: number, cuts: readonly Cut[]): void {
  let [at, moved] = [0, 0];
  for (const segment of segments) {
    for (let cut = cuts[at]; cut !== undefined && cut.start <= begin + segment[0]; cut = cuts[++at]) {
      moved += cut.text.length - (cut.end - cut.start);
    }
    segment[0] = Math.max(0, segment[0] + moved);
  }
}

function lineBegins(code: string): number[] {
  const begins = [0];
  for (let at = code.indexOf("\n"); at >= 0; at = code.indexOf("\n", at + 1)) begins.push(at + 1);
  return begins;
}

/**
 * Returns what a bundle tells of its parts: their origins by the names that the bundler writes before each module (a
 * package's own source maps name files that it was made from, anywhere), the names of variables by its source map.
 */
export function sourcesOf(
  { sourceMap, moduleNamed }: Pick<
    Extract<BundleOutcome, { kind: "bundled" }>,
    "sourceMap" | "moduleNamed"
  >,
  code: string,
  comments: readonly Comment[],
): Sources {
  const { names, mappings } = JSON.parse(sourceMap) as RawMap;
  const modules = comments.filter((comment) => namesModule(comment, code))
    .map(({ start, value }) => ({ start, origin: originNamed(moduleNamed(value.trim())) }));
  const begins = lineBegins(code);
  let lines: ReturnType<typeof decode> | undefined;
  return {
    // What comes before the first is the bundler's own.
    originAt: (offset) => modules[lastBefore(modules, offset)]?.origin ?? { kind: "platform" },
    nameAt: (offset) => {
      lines ??= decode(mappings);
      const line = lineAt(begins, offset);
      const found = lines[line]?.find(([column]) => (begins[line] ?? 0) + column === offset);
      return found?.length === 5 ? names?.[found[4]] : undefined;
    },
  };
}

/** Returns the index of the last that begins at or before an offset; -1 before all. */
function lastBefore(sorted: readonly { readonly start: number }[], at: number): number {
  let [low, high] = [-1, sorted.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((sorted[middle]?.start ?? Infinity) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

function originNamed(name: string): Origin {
  if (/^sojourn\/(functions|store|runtime)\//.test(name)) return { kind: "platform" };
  const [, npm] = /^npm:((?:@[^/]+\/)?[^/@]+)/.exec(name) ?? [];
  if (npm !== undefined) return { kind: "package", name: npm };
  const [, installed] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(name) ?? [];
  if (installed !== undefined) return { kind: "package", name: installed };
  return /^(?:jsr|https?|data|node):/.test(name) ? { kind: "package", name } : { kind: "own", name };
}

/** Returns the line of an offset, from 0. */
function lineAt(begins: readonly number[], at: number): number {
  let [low, high] = [0, begins.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((begins[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
