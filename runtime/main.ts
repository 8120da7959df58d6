/**
 * The entry: `deno task NAME …`, and `sojourn NAME …` when installed.
 *
 * A site loads none of the other commands, nor another command what a site is: those of a dev cluster start at once, on
 * the same processors.
 */
import { type ExitCode, readEnough, runCommand } from "./cli/command.ts";
import { processShell } from "./cli/process_shell.ts";

if (import.meta.main) Deno.exit(await readEnough(() => run(Deno.args)));

async function run(args: readonly string[]): Promise<ExitCode> {
  const [name, ...rest] = args, shell = processShell();
  const site = async () => (await import("./site/command.ts")).siteCommand;
  if (name === "site") return await runCommand(await site(), rest, shell);
  const { dispatch } = await import("./cli/mod.ts");
  return await dispatch(args, shell, {
    site,
    dev: async () => (await import("./dev/command.ts")).devCommand,
    agent: async () => (await import("./origins/command.ts")).agentCommand,
    restore: async () => (await import("./site/restore_command.ts")).restoreCommand,
  });
}
