/**
 * The command, with sites that say what they hold: told SIGUSR2, a site collects its garbage and writes `heap-PID.json`,
 * `{ heap, external }` in bytes, into the folder that WEIGHED names.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { runCli } from "../../../runtime/cli/mod.ts";
import { processShell } from "../../../runtime/cli/process_shell.ts";
import { devCommand } from "../../../runtime/dev/command.ts";
import { siteCommand } from "../../../runtime/site/command.ts";

function weigh(folder: string): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // What one collection lets go of may have held more.
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed: heap, external } = Deno.memoryUsage();
  const file = `${folder}/heap-${Deno.pid}`;
  Deno.writeTextFileSync(`${file}.tmp`, JSON.stringify({ heap, external }));
  Deno.renameSync(`${file}.tmp`, `${file}.json`);
}

if (import.meta.main) {
  const folder = Deno.env.get("WEIGHED");
  if (Deno.args[0] === "site" && folder !== undefined) Deno.addSignalListener("SIGUSR2", () => weigh(folder));
  Deno.exit(await runCli(Deno.args, processShell(), [siteCommand, devCommand]));
}
