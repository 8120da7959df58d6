/**
 * Entry of the bootstrap for isolates that evaluate a bundle for its manifest. Apart from serve.ts, because the
 * manifest's schema and the parser bring libraries that no serving isolate needs in its memory.
 */
import { readManifest } from "../../../functions/manifest.ts";
import { checkImports } from "../../bundle/imports.ts";
import { serveIsolate } from "./main.ts";

await serveIsolate({ socket: Deno.args[0] ?? "", mark: Deno.args[1] ?? "" }, {
  check: checkBundle,
  manifestOf: readManifest,
});

/** Checks the imports of a bundle here too: what was uploaded may have been made by anything. */
function checkBundle(code: Uint8Array): void {
  const [issue] = checkImports(new TextDecoder().decode(code));
  if (issue === undefined) return;
  const place = issue.line === undefined ? "" : ` (bundle:${issue.line}:${issue.column})`;
  throw Object.assign(new Error(`${issue.message}${place}`), { code: "deploy_invalid" });
}
