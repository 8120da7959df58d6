/** Entry of the bootstrap for isolates of stateful sessions. */
import { serveSessions } from "./stateful_host.ts";

await serveSessions({ socket: Deno.args[0] ?? "", mark: Deno.args[1] ?? "" });
