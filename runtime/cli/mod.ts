/**
 * The commands of `sojourn`: a table, and the dispatcher that main.ts calls with the commands it adds (dev, site).
 */
import { apps, rollback, versionsCommand } from "./apps.ts";
import { backup } from "./backup.ts";
import { chaos } from "./chaos.ts";
import { completionCommand } from "./completion.ts";
import {
  briefOf,
  columns,
  type Command,
  EXIT,
  type ExitCode,
  runCommand,
  type Shell,
  USAGE_CODE,
} from "./command.ts";
import { deploy } from "./deploy.ts";
import { init } from "./init.ts";
import { logs } from "./logs.ts";
import { rollout } from "./rollout.ts";
import { routes } from "./routes.ts";
import { kv, tables } from "./rows.ts";
import { sessions } from "./sessions.ts";
import { sites } from "./sites.ts";
import { top } from "./top.ts";
import { nearestWord } from "./nearest.ts";
import { versionsOfThis as ownVersions } from "./version.ts";
import { cron } from "./cron.ts";
import { secrets } from "./secrets.ts";

export {
  type Command,
  EXIT,
  type ExitCode,
  type OptionSpec,
  type Parsed,
  runCommand,
  type Shell,
} from "./command.ts";
export { UsageError } from "./command.ts";
export { CLUSTER_FILE, type ClusterFile, DATA_DEFAULT, readCluster } from "./cluster.ts";

/** Commands that talk to a running cluster. */
export const commands: readonly Command[] = [
  deploy,
  apps,
  versionsCommand,
  rollback,
  rollout,
  routes,
  sites,
  backup,
  kv,
  tables,
  sessions,
  secrets,
  cron,
  logs,
  top,
  chaos,
  init,
];

/** Commands of the surface that are not built yet: they say so, and nothing else. */
const LATER: Readonly<Record<string, string>> = {
  queues: "shows queues",
  why: "explains where a key is placed",
};

/** Runs a command line: `sojourn NAME …`. `own` are the commands of main.ts. */
export async function runCli(
  args: readonly string[],
  shell: Shell,
  own: readonly Command[] = [],
): Promise<ExitCode> {
  return await dispatch(args, shell, own);
}

async function dispatch(
  args: readonly string[],
  shell: Shell,
  own: readonly Command[],
): Promise<ExitCode> {
  const all: Command[] = [...own, ...commands, completionCommand(() => all)];
  const [name, ...rest] = args;
  if (name === "--version" || name === "-V" || name === "-v" || name === "version") {
    const found = await ownVersions();
    shell.out(
      rest.includes("--json") ? JSON.stringify(found) : `sojourn ${found.sojourn} (deno ${found.deno})`,
    );
    return EXIT.done;
  }
  const [of] = rest;
  if (name === "help" && of !== undefined && !of.startsWith("-")) {
    return await dispatch([of, "--help"], shell, own);
  }
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    for (const line of overview(all)) shell.out(line);
    return name === undefined ? EXIT.usage : EXIT.done;
  }
  const command = all.find((candidate) => candidate.name === name);
  if (command !== undefined) {
    if (!own.includes(command)) shell.guard?.();
    return await runCommand(command, rest, shell);
  }
  if (Object.hasOwn(LATER, name)) {
    if (rest.includes("--json")) {
      shell.out(
        JSON.stringify({ error: { code: "not_available", message: `sojourn ${name} is not available yet` } }),
      );
    }
    shell.err(`not_available: sojourn ${name} (${LATER[name]}) is not available in this version`);
    return EXIT.failed;
  }
  const meant = nearestWord(name, all.map((candidate) => candidate.name));
  const hint = meant === null ? "see sojourn --help" : `did you mean ${meant}? See sojourn --help`;
  const message = `${JSON.stringify(name)} is no command; ${hint}`;
  if (rest.includes("--json")) shell.out(JSON.stringify({ error: { code: USAGE_CODE, message } }));
  shell.err(message);
  return EXIT.usage;
}

function overview(all: readonly Command[]): string[] {
  const rows = all.map((command) => [command.name, briefOf(command)]);
  return [
    "sojourn: a serverless runtime for the edge, on a session-consistent store",
    "",
    "usage: sojourn COMMAND … (every command has --help, and --json for programs)",
    "",
    ...columns(rows).map((line) => `  ${line}`),
    "",
    "Exit codes: 0 done, 1 refused or failed, 2 usage, 3 partly done.",
  ];
}
