/** `sojourn sessions log|resume|reset`: an operator's remedies for a stateful session that stands still. */
import { z } from "zod";
import { sessionSegments } from "../deploy/session_path.ts";
import { findCluster } from "./cluster.ts";
import { EXIT, type ExitCode, numberOption, type Parsed, type Shell, UsageError } from "./command.ts";

const entry = z.looseObject({ n: z.number(), kind: z.string() });
const logSchema = z.object({
  epoch: z.number(),
  version: z.string(),
  checkpoint: z.looseObject({ at: z.number() }).nullable(),
  last: z.number(),
  entries: z.array(entry),
  next: z.number().nullable(),
  /**
   * Id of the session's home, id of the site whose disk this is from, and the sites that could not be asked, with the
   * reasons.
   */
  home: z.string(),
  by: z.string(),
  failed: z.array(z.string()),
  endedMs: z.number().nullable(),
});
const resumedSchema = z.object({
  app: z.string(),
  class: z.string(),
  id: z.string(),
  state: z.enum(["open", "parked"]),
  problem: z.string().nullable(),
  takenBack: z.object({
    checkpoint: z.number(),
    entries: z.number(),
    requests: z.number(),
    messages: z.number(),
    timers: z.number(),
    why: z.string().nullable(),
    open: z.array(z.string()),
    leftOut: z.array(z.string()),
  }).nullable(),
  leftBehind: z.array(z.string()),
});
const resetSchema = z.object({
  app: z.string(),
  class: z.string(),
  id: z.string(),
  /** Id of the home; null: the session begins with its next use. */
  home: z.string().nullable(),
});

const FROM = { min: 1, max: Number.MAX_SAFE_INTEGER, or: 1 };

const pathOf = ([app = "", name = "", id = ""]: readonly string[], verb: string): string =>
  `${sessionSegments({ app, class: name, id })}/${verb}`;

/** Prints a session's log, one JSON object a line: the checkpoint's head, then the entries. */
export async function showLog(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  let from = numberOption(args, "from", FROM);
  const client = await findCluster(args, shell);
  const of: Record<string, string> = args.flag("ended") ? { ended: "1" } : {};
  for (let isFirst = true;; isFirst = false) {
    const query = new URLSearchParams({ from: String(from), ...of });
    const view = logSchema.parse(await client.call("GET", `${pathOf(names, "log")}?${query}`));
    const { epoch, version, checkpoint, last, home, by, failed, endedMs } = view;
    if (isFirst && by !== home) {
      const why = failed.length === 0 ? "" : ` (${failed.join("; ")})`;
      shell.err(
        `as ${by} keeps it: its home ${home} does not show it${why}; the newest entries may lack`,
      );
    }
    if (isFirst && by === home && failed.length > 0) {
      shell.err(`of the sites that answer ${by} has the last one; not asked: ${failed.join("; ")}`);
    }
    if (isFirst && from === FROM.or) {
      const ended = endedMs === null ? {} : { ended: new Date(endedMs).toISOString() };
      shell.out(JSON.stringify({ kind: "log", epoch, version, last, by, ...ended, checkpoint }));
    }
    of["at"] = by; // the rest is read from the same site
    for (const each of view.entries) shell.out(JSON.stringify(each));
    if (view.next === null) return EXIT.done;
    from = view.next;
  }
}

/**
 * Has a session try again; entries after its last checkpoint, or those that its log can't be replayed to, are dropped
 * only with --yes.
 */
export async function resume(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  const fromCheckpoint = args.flag("from-checkpoint"), withoutClients = args.flag("without-clients");
  const fromLog = args.flag("from-log");
  if ([fromCheckpoint, fromLog, withoutClients].filter((is) => is).length > 1) {
    throw new UsageError("resume takes one of --from-checkpoint, --from-log and --without-clients");
  }
  if (withoutClients && !args.flag("yes")) {
    shell.err(
      `what ${
        names.join(" ")
      } told only the clients that hold its log and do not come back is gone then, and they ` +
        `begin anew; sojourn sessions show names them; --yes does it`,
    );
    return EXIT.failed;
  }
  const client = await findCluster(args, shell);
  const isTrial = (fromCheckpoint || fromLog) && !args.flag("yes");
  const query = new URLSearchParams({
    ...fromCheckpoint ? { fromCheckpoint: "1" } : {},
    ...fromLog ? { fromLog: "1" } : {},
    ...isTrial ? { trial: "1" } : {},
    ...withoutClients ? { withoutClients: "1" } : {},
  });
  const resumed = resumedSchema.parse(await client.call("POST", `${pathOf(names, "resume")}?${query}`));
  const { app, class: name, id, state, problem, takenBack, leftBehind } = resumed;
  const code = state === "open" ? EXIT.done : EXIT.failed;
  if (args.json) {
    shell.out(JSON.stringify({ ...resumed, isTrial }));
    return code;
  }
  const session = `${name} ${id} of ${app}`;
  if (takenBack !== null) {
    const { checkpoint, entries, requests, messages, timers, why, open, leftOut } = takenBack;
    const after = fromLog ? `entry ${checkpoint}` : `the checkpoint at ${checkpoint}`;
    if (why !== null) shell.out(`its log can be kept up to entry ${checkpoint}: ${why}`);
    shell.out(
      `${isTrial ? "this would take" : "took"} back ${entries} entries after ${after}: ` +
        `${requests} requests, ${messages} messages, ${timers} timers, and what came of them; ` +
        `what they wrote to tables and KV, and sent outside, stays`,
    );
    for (const each of open) shell.out(`${isTrial ? "this would give" : "gave"} up what was open: ${each}`);
    for (const each of leftOut) shell.out(`${isTrial ? "this would give" : "gave"} up a field: ${each}`);
  }
  if (isTrial) shell.err("nothing was changed; --yes does it");
  else if (state === "open") {
    const without = leftBehind.length === 0 ? "" : `, without ${leftBehind.join(", ")}`;
    shell.out(`${session} goes on${without}`);
  } else shell.err(`${session} stands still again: ${problem}`);
  return isTrial ? EXIT.failed : code;
}

/** Has a session begin anew, blank. */
export async function reset(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  if (!args.flag("yes")) {
    shell.err(`reset drops all that ${names.join(" ")} has in memory and in its log; --yes does it`);
    return EXIT.failed;
  }
  const gone = resetSchema.parse(await client.call("POST", pathOf(names, "reset")));
  if (args.json) shell.out(JSON.stringify(gone));
  else {
    const { app, class: name, id, home } = gone;
    const where = home === null ? "and begins anew with its next use" : `and at home at ${home}`;
    shell.out(`${name} ${id} of ${app} is blank, ${where}`);
  }
  return EXIT.done;
}
