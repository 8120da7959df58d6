/** Entry of the bootstrap for isolates that serve. */
import { serveIsolate } from "./main.ts";

await serveIsolate({ socket: Deno.args[0] ?? "", mark: Deno.args[1] ?? "" });
