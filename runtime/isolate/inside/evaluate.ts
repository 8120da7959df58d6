/**
 * Entry of the bootstrap for isolates that evaluate a bundle for its manifest. Apart from serve.ts, because the
 * manifest's schema brings a library that no serving isolate needs in its memory.
 */
import { readManifest } from "../../../functions/manifest.ts";
import { serveIsolate } from "./main.ts";

await serveIsolate({ socket: Deno.args[0] ?? "", mark: Deno.args[1] ?? "" }, readManifest);
