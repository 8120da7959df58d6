/** In a process of its own, which has changed nothing: what Deno's realm has, as JSON. */
import { allowedBuiltins } from "../../../runtime/bundle/builtins.ts";
import { ALLOWED_GLOBALS } from "../../../runtime/isolate/inside/globals.ts";
import { aliasesOf, sourcesOf, walkRealm } from "./realm_walk.ts";

const modules: Record<string, unknown> = {};
for (const builtin of allowedBuiltins) modules[builtin] = await import(builtin);
const paths = walkRealm([...ALLOWED_GLOBALS], modules);
console.log(
  JSON.stringify({ paths, aliases: aliasesOf(paths, modules), sources: sourcesOf(paths, modules) }),
);
