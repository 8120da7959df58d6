/**
 * Turns places in a bundle into places in the modules it was made of, which an author can open.
 */
import { relative, resolve } from "node:path";
import { originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";

/**
 * Places in a text: `blob:null/…:6:9` as V8 writes it in the stack of an isolate, and `bundle:6:9` as our own checks
 * do. Every part is bounded: the text is the app's, and its clients', and the site waits while it is searched.
 */
const PLACE = /\b(?:blob:null\/[0-9a-f-]{1,36}|bundle):(\d{1,9}):(\d{1,9})/g;

/** Replaces the places of a bundle in a text; a place that the map does not know stays as it is. */
export type Locate = (text: string) => string;

/** Reports whether a text may have places of a bundle in it. */
export const hasPlaces = (text: string): boolean => text.includes("bundle:") || text.includes("blob:null/");

/**
 * Makes a locator that reads a bundle's source map when it is first needed, since most bundles have nothing wrong.
 *
 * @param folder where the bundle was written: sources are relative to it
 */
export function locator(sourceMap: string, folder: string): Locate {
  let locate: Locate | undefined;
  return (text) => {
    if (!hasPlaces(text)) return text;
    locate ??= mapLocator(sourceMap, (source) => sourcePath(source, folder));
    return locate(text);
  };
}

/**
 * Makes a locator over a map's JSON; `name` returns the name of a source.
 *
 * @throws Error where the text is no source map.
 */
export function mapLocator(sourceMap: string, name: (source: string) => string): Locate {
  const map = new TraceMap(sourceMap);
  return (text) =>
    text.replace(PLACE, (place, line: string, column: string) => {
      const [lineNumber, columnNumber] = [Number(line), Number(column) - 1];
      if (lineNumber < 1 || columnNumber < 0) return place;
      const found = originalPositionFor(map, { line: lineNumber, column: columnNumber });
      if (found.source === null) return place;
      return `${name(found.source)}:${found.line}:${found.column + 1}`;
    });
}

function sourcePath(source: string, folder: string): string {
  if (/^[a-z]+:/.test(source)) return source;
  const path = resolve(folder, source);
  const near = relative("", path);
  return near.startsWith("..") ? path : near;
}
