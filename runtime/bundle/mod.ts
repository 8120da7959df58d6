/** Bundling apps: a module and all that it imports as one ES module, checked for what it may import. */
export { isAllowedBuiltin } from "./builtins.ts";
export { BUNDLE_BYTES_MAX, bundleApp, type BundleResult } from "./bundle.ts";
export { runDenoBundle } from "./deno_bundle.ts";
export { fromFileUrl } from "./file_url.ts";
export type { Locate } from "./source_places.ts";
export { type BundleIssue, checkImports } from "./imports.ts";
export { removeTempFolders } from "./temp_folder.ts";
