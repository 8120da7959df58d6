/**
 * Places in a bundle, told as places in the modules it was made of: what an author can open.
 */
import { SourceMap } from "node:module";
import { relative, resolve } from "node:path";

/** `blob:…:6:9` as V8 writes it in the stack of an isolate, and `bundle:6:9` as our own checks do. */
const PLACE = /(?:blob:[^\s()]*|bundle):(\d+):(\d+)/g;

/** Replaces the places of a bundle in a text; a place that the map does not know stays as it is. */
export type Locate = (text: string) => string;

/**
 * Reads a bundle's source map when it is first needed, since most bundles have nothing wrong.
 *
 * @param folder where the bundle was written: sources are relative to it
 */
export function locator(sourceMap: string, folder: string): Locate {
  let map: SourceMap | undefined;
  return (text) =>
    text.replace(PLACE, (place, line: string, column: string) => {
      map ??= new SourceMap(JSON.parse(sourceMap));
      const found = map.findEntry(Number(line) - 1, Number(column) - 1);
      if (!("originalSource" in found) || typeof found.originalSource !== "string") return place;
      return `${sourcePath(found.originalSource, folder)}:${found.originalLine + 1}:${
        found.originalColumn + 1
      }`;
    });
}

function sourcePath(source: string, folder: string): string {
  if (/^[a-z]+:/.test(source)) return source;
  const path = resolve(folder, source);
  const near = relative("", path);
  return near.startsWith("..") ? path : near;
}
