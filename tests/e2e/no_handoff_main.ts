/**
 * The command line with one thing broken: a session that arrives at a site is taken as it is. Nothing is carried and
 * nothing is waited for. Walks of the examples run on it to show that they can fail (examples_test.ts).
 */
import { runCli } from "../../runtime/cli/mod.ts";
import { devCommand } from "../../runtime/dev/command.ts";
import { siteCommand } from "../../runtime/site/command.ts";
import { Handoff } from "../../store/session/handoff.ts";

Handoff.prototype.arrive = () => Promise.resolve({ how: "nothing", rows: 0, bytes: 0, path: [] });

if (import.meta.main) {
  const shell = {
    out: (line: string) => console.log(line),
    err: (line: string) => console.error(line),
    env: (name: string) => Deno.env.get(name),
  };
  Deno.exit(await runCli(Deno.args, shell, [siteCommand, devCommand]));
}
