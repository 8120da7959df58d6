/**
 * The entry: `deno task NAME …`, and `sojourn NAME …` when installed.
 *
 * A site loads none of the other commands: those of a dev cluster start at once, on the same processors.
 */
import { type ExitCode, readEnough, runCommand } from "./cli/command.ts";
import { processShell } from "./cli/process_shell.ts";
import { siteCommand } from "./site/command.ts";

if (import.meta.main) Deno.exit(await readEnough(() => run(Deno.args)));

async function run(args: readonly string[]): Promise<ExitCode> {
  const [name, ...rest] = args, shell = processShell();
  if (name === siteCommand.name) return await runCommand(siteCommand, rest, shell);
  const [{ runCli }, { devCommand }, { agentCommand }, { restoreCommand }] = await Promise.all([
    import("./cli/mod.ts"),
    import("./dev/command.ts"),
    import("./origins/command.ts"),
    import("./site/restore_command.ts"),
  ]);
  return await runCli(args, shell, [siteCommand, devCommand, agentCommand, restoreCommand]);
}
