/** File URLs and paths. */
import { fileURLToPath, pathToFileURL } from "node:url";

/** Returns the path that a file: URL names. */
export const fromFileUrl = (url: URL | string): string => fileURLToPath(url);

/** Returns the file: URL of a path. */
export const toFileUrl = (path: string): URL => pathToFileURL(path);
