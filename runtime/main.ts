/**
 * The entry: `deno task NAME …`, and `sojourn NAME …` when installed.
 */
import { runCli, type Shell } from "./cli/mod.ts";
import { devCommand } from "./dev/command.ts";
import { siteCommand } from "./site/command.ts";

const encoder = new TextEncoder();

const shell: Shell = {
  out: (line) => void Deno.stdout.writeSync(encoder.encode(line + "\n")),
  err: (line) => void Deno.stderr.writeSync(encoder.encode(line + "\n")),
  env: (name) => Deno.env.get(name),
};

if (import.meta.main) Deno.exit(await runCli(Deno.args, shell, [siteCommand, devCommand]));
