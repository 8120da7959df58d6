/** Entry of the bootstrap for isolates that serve. */
import { serveIsolate } from "./main.ts";

await serveIsolate(Deno.args[0] ?? "");
