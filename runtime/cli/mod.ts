/**
 * The commands of `sojourn`: a table, and the dispatcher that main.ts calls with the commands it adds (dev, site).
 *
 * A command is loaded when it is run: loading all of them would be most of the time of the shortest ones.
 */
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
import { nearestWord } from "./nearest.ts";

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

/** Commands by name, in the order of `--help`, each loaded when it is asked for. */
export type CommandTable = Readonly<Record<string, () => Promise<Command>>>;

/** Commands that talk to a running cluster. */
export const COMMANDS: CommandTable = {
  deploy: async () => (await import("./deploy.ts")).deploy,
  apps: async () => (await import("./apps.ts")).apps,
  versions: async () => (await import("./apps.ts")).versionsCommand,
  rollback: async () => (await import("./apps.ts")).rollback,
  rollout: async () => (await import("./rollout.ts")).rollout,
  routes: async () => (await import("./routes.ts")).routes,
  sites: async () => (await import("./sites.ts")).sites,
  backup: async () => (await import("./backup.ts")).backup,
  kv: async () => (await import("./rows.ts")).kv,
  tables: async () => (await import("./rows.ts")).tables,
  sessions: async () => (await import("./sessions.ts")).sessions,
  queues: async () => (await import("./queues.ts")).queues,
  secrets: async () => (await import("./secrets.ts")).secrets,
  cron: async () => (await import("./cron.ts")).cron,
  logs: async () => (await import("./logs.ts")).logs,
  top: async () => (await import("./top.ts")).top,
  chaos: async () => (await import("./chaos.ts")).chaos,
  init: async () => (await import("./init.ts")).init,
};

/** Loads all commands of a table. */
export const loadAll = (table: CommandTable): Promise<Command[]> =>
  Promise.all(Object.values(table).map((load) => load()));

/** Commands of the surface that are not built yet: they say so, and nothing else. */
const LATER: Readonly<Record<string, string>> = {
  why: "explains where a key is placed",
};

/** Runs a command line: `sojourn NAME …`. `own` are commands of the caller's, loaded already. */
export async function runCli(
  args: readonly string[],
  shell: Shell,
  own: readonly Command[] = [],
): Promise<ExitCode> {
  const table = own.map((command) => [command.name, () => Promise.resolve(command)] as const);
  return await dispatch(args, shell, Object.fromEntries(table));
}

/** Runs a command line, and loads no more than that takes. `own` are commands of the caller's. */
export async function dispatch(
  args: readonly string[],
  shell: Shell,
  own: CommandTable,
): Promise<ExitCode> {
  const table: CommandTable = {
    ...own,
    ...COMMANDS,
    completion: async () => {
      const others = await loadAll({ ...own, ...COMMANDS });
      const completion = completionCommand(() => [...others, completion]);
      return completion;
    },
  };
  const [name, ...rest] = args;
  if (name === "--version" || name === "-V" || name === "-v" || name === "version") {
    const { versionsOfThis } = await import("./version.ts");
    const found = await versionsOfThis();
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
    for (const line of overview(await loadAll(table))) shell.out(line);
    return name === undefined ? EXIT.usage : EXIT.done;
  }
  const load = Object.hasOwn(table, name) ? table[name] : undefined;
  if (load !== undefined) {
    if (!Object.hasOwn(own, name)) shell.guard?.();
    return await runCommand(await load(), rest, shell);
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
  const meant = nearestWord(name, Object.keys(table));
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
