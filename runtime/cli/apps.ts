/**
 * Commands that show and move versions: apps, versions, rollback.
 */
import type { Deployed, VersionSummary } from "../deploy/client.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import {
  columns,
  type Command,
  EXIT,
  type ExitCode,
  type Parsed,
  type Shell,
  UsageError,
} from "./command.ts";

import { WAIT_OPTIONS, waitMs } from "./waiting.ts";
import { deleteApp } from "./delete_app.ts";
import { ChangeProgress } from "./following.ts";

/** Digits of a version that people are shown: enough that two of one app never share them. */
export const VERSION_DIGITS = 12;

/** Prints rows as a table, or all of them as one JSON value. */
export function show(
  rows: readonly object[],
  args: Parsed,
  shell: Shell,
  table: {
    readonly head: readonly string[];
    readonly cells: readonly (readonly string[])[];
    readonly none: string;
  },
): ExitCode {
  if (args.json) shell.out(JSON.stringify(rows));
  else if (rows.length === 0) shell.err(table.none);
  else for (const line of columns([table.head, ...table.cells])) shell.out(line);
  return EXIT.done;
}

/** Returns a time as people read it. */
export const date = (ms: number): string => new Date(ms).toISOString().slice(0, 19) + "Z";

/** Prints the sites at which a version has arrived; exit 3 where some site lacks it. */
export function showDeployed(deployed: Deployed, args: Parsed, shell: Shell): ExitCode {
  const { app, version, sites, missing } = deployed;
  if (args.json) shell.out(JSON.stringify({ app, version, sites, missing }));
  else {
    shell.out(`${app} ${version}${deployed.changed ? "" : " (unchanged)"}`);
    for (const line of columns(sites.map((site) => [site.id, `${site.ms} ms`]))) shell.out(`  ${line}`);
    for (const id of missing) shell.out(`  ${id}  missing`);
  }
  return missing.length === 0 ? EXIT.done : EXIT.partly;
}

/** `sojourn apps [delete APP]` */
export const apps: Command = {
  name: "apps",
  usage: "[delete APP [--yes]]",
  summary: [
    "Lists the apps that serve. `delete` ends an app at once and for good: its versions, hosts, secrets and all of",
    "its rows are removed; there is no way back. It asks for the name, unless --yes is given.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    ...WAIT_OPTIONS,
    yes: { type: "boolean", says: "delete without asking" },
  },
  verbs: { at: 0, names: ["delete"] },
  words: [0, 2],
  async run(args, shell) {
    const [verb, app] = args.words;
    if (verb !== undefined) {
      if (verb !== "delete") throw new UsageError(`apps has delete, not ${verb}`);
      return await deleteApp(app, args, shell);
    }
    const rows = await (await findCluster(args, shell)).apps();
    const cells = rows.map((row) => [
      row.app,
      row.version.slice(0, VERSION_DIGITS),
      `${row.versions}`,
      date(row.deployedMs),
      row.rollout === undefined
        ? ""
        : `${row.rollout.weight} % get ${row.rollout.version.slice(0, VERSION_DIGITS)}`,
    ]);
    return show(rows, args, shell, {
      head: ["app", "version", "versions", "deployed", ""],
      cells,
      none: "no app is deployed",
    });
  },
};

/** `sojourn versions APP` */
export const versionsCommand: Command = {
  name: "versions",
  usage: "APP",
  summary: "Lists an app's versions, newest first.",
  options: CLUSTER_OPTIONS,
  words: [1, 1],
  async run(args, shell) {
    const rows = await (await findCluster(args, shell)).versions(args.words[0] ?? "");
    const cells = rows.map((row) => [row.version, date(row.createdMs), serves(row)]);
    return show(rows, args, shell, { head: ["version", "deployed", ""], cells, none: "no versions" });
  },
};

function serves({ current, weight }: VersionSummary): string {
  if (current) return "serves";
  return weight === undefined ? "" : `serves ${weight} % of the sessions`;
}

/** `sojourn rollback APP [VERSION]` */
export const rollback: Command = {
  name: "rollback",
  usage: "APP [VERSION]",
  summary: [
    "Makes an earlier version serve: the one that begins with VERSION, or the one before the current. A rollout",
    "that runs is over; without VERSION that is all that happens.",
  ].join("\n"),
  options: { ...CLUSTER_OPTIONS, ...WAIT_OPTIONS },
  words: [1, 2],
  async run(args, shell) {
    const wait = waitMs(args);
    const client = await findCluster(args, shell);
    const [app = "", version] = args.words;
    const back = new ChangeProgress(shell).run(
      client,
      (progress) => client.rollback(app, version, wait, progress),
      { look: `versions ${app}` },
    );
    return showDeployed(await back, args, shell);
  },
};
