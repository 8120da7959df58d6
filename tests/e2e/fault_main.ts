/**
 * `sojourn`, with bugs on request: SIGALRM throws where nobody listens, SIGUSR2 leaves a rejection to itself. Run by
 * site_test.ts.
 */
import { runCli } from "../../runtime/cli/mod.ts";
import { processShell } from "../../runtime/cli/process_shell.ts";
import { siteCommand } from "../../runtime/site/command.ts";

Deno.addSignalListener("SIGALRM", () => {
  setTimeout(() => {
    throw new Error("thrown on request");
  });
});
Deno.addSignalListener("SIGUSR2", () => void Promise.reject(new Error("rejected on request")));
Deno.exit(await runCli(Deno.args, processShell(), [siteCommand]));
