/** File URLs and paths. */
import { fileURLToPath, pathToFileURL } from "node:url";

/** The path that a file: URL names. */
export const fromFileUrl = (url: URL | string): string => fileURLToPath(url);

/** The file: URL of a path. */
export const toFileUrl = (path: string): URL => pathToFileURL(path);
