/**
 * The entry for `DENO_DEPLOY_CLI_SPECIFIER=file:///…/runtime/cli/deno_deploy.ts deno deploy MODULE …`: Deno's own
 * command, driving the same code as `sojourn deploy`.
 */
import { deploy } from "./deploy.ts";
import { runCommand } from "./command.ts";

/** Returns the arguments once: Deno hands a deploy CLI its arguments twice in a row. */
export function once(args: readonly string[]): readonly string[] {
  const half = args.length / 2;
  const isTwice = args.length > 0 && Number.isInteger(half) &&
    args.slice(0, half).every((arg, index) => arg === args[half + index]);
  return isTwice ? args.slice(0, half) : args;
}

if (import.meta.main) {
  const code = await runCommand(deploy, once(Deno.args), {
    out: (line) => console.log(line),
    err: (line) => console.error(line),
    env: (name) => Deno.env.get(name),
  });
  Deno.exit(code);
}
