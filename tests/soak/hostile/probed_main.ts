/** Sojourn's command line; one of its sites tells how long its thread does one thing (stretch_probe.ts). */
import { runCli } from "../../../runtime/cli/mod.ts";
import { processShell } from "../../../runtime/cli/process_shell.ts";
import { devCommand } from "../../../runtime/dev/command.ts";
import { siteCommand } from "../../../runtime/site/command.ts";
import { probeStretches } from "./stretch_probe.ts";

if (import.meta.main) {
  const [path, site] = (Deno.env.get("STRETCHES_OF_SITE") ?? "").split(" at ");
  const isThat = Deno.args[0] === "site" && Deno.args.some((each) => each.includes(`/sites/${site}/`));
  if (path !== undefined && isThat) probeStretches(path);
  Deno.exit(await runCli(Deno.args, processShell(), [siteCommand, devCommand]));
}
