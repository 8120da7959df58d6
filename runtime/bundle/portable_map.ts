/**
 * A bundle's source map as it is kept with a version: it names an app's own modules by their path from the entry's
 * folder, packages by name and version, and nothing of the machine that bundled; the sources' text is left out.
 */
import { relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { fromFileUrl } from "./file_url.ts";

const INSTALLED = fromFileUrl(new URL("../../", import.meta.url));
/** Folder of Deno's cache for npm packages: `…/npm/REGISTRY/hono/4.13.19/dist/hono.js`. */
const PACKAGES = "/npm/";
const PACKAGE = /^[^/]+\/((?:@[^/]+\/)?[^/]+)\/(\d[^/]*)\/(.*)$/;

interface RawMap {
  readonly version: number;
  readonly sources: readonly (string | null)[];
  readonly names?: readonly string[];
  readonly mappings: string;
}

/**
 * Makes the map, compressed.
 *
 * @param mapFolder where the bundler wrote it: its sources are relative to that
 * @param moduleFolder the entry module's
 */
export function portableMap(text: string, mapFolder: string, moduleFolder: string): Uint8Array<ArrayBuffer> {
  const { version, sources, names, mappings } = JSON.parse(text) as RawMap;
  const named = sources.map((source) =>
    source === null ? null : portableName(source, mapFolder, moduleFolder)
  );
  const json = JSON.stringify({ version, sources: named, names: names ?? [], mappings });
  return new Uint8Array(gzipSync(json));
}

/** Returns the name of a map's source, the same wherever it was bundled. */
export function portableName(source: string, mapFolder: string, moduleFolder: string): string {
  if (/^(?:npm|jsr|https?|data|node):/.test(source)) return source;
  const path = source.startsWith("file:") ? fromFileUrl(source) : resolve(mapFolder, source);
  const [, name, version, file] = PACKAGE.exec(afterPackages(path)) ?? [];
  if (name !== undefined) return `npm:${name}@${version}/${file}`;
  const own = relative(moduleFolder, path);
  if (!own.startsWith("..")) return own;
  return path.startsWith(INSTALLED) ? `sojourn/${relative(INSTALLED, path)}` : own;
}

const afterPackages = (path: string): string => {
  const at = path.indexOf(PACKAGES);
  return at < 0 ? "" : path.slice(at + PACKAGES.length);
};
