/**
 * The entry: `deno task NAME …`, and `sojourn NAME …` when installed.
 */
import { runCli } from "./cli/mod.ts";
import { processShell } from "./cli/process_shell.ts";
import { devCommand } from "./dev/command.ts";
import { agentCommand } from "./origins/command.ts";
import { siteCommand } from "./site/command.ts";
import { restoreCommand } from "./site/restore_command.ts";

if (import.meta.main) {
  Deno.exit(await runCli(Deno.args, processShell(), [siteCommand, devCommand, agentCommand, restoreCommand]));
}
