/**
 * `sojourn chaos …`: breaks sites, links, disks and clocks of a dev cluster on purpose, and says how to undo it.
 *
 * Without `--to` the call goes to the dev process itself, so that it works when no site does.
 */
import { join } from "node:path";
import {
  CHAOS_ACTIONS,
  type ChaosAction,
  chaosActionSchema,
  chaosDoneSchema,
  type ChaosState,
  chaosStateSchema,
  explainAction,
} from "../chaos/actions.ts";
import { AdminClient } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { CLUSTER_FILE, CLUSTER_OPTIONS, DATA_DEFAULT, findCluster, readCluster } from "./cluster.ts";
import {
  columns,
  type Command,
  EXIT,
  type ExitCode,
  type Parsed,
  type Shell,
  UsageError,
} from "./command.ts";

const PATH = "/chaos";

/** Usage of each action: words, then options. */
const USAGE: Readonly<Record<ChaosAction["action"], readonly [string, string]>> = {
  kill: ["kill SITE", "SIGKILL; it stays down until restart"],
  restart: ["restart SITE", "kills it if it runs, and starts it"],
  pause: ["pause SITE", "SIGSTOP: it stands still, connections stay open"],
  resume: ["resume SITE", "SIGCONT"],
  partition: [
    "partition A[,B] [C,…]",
    "no byte passes between the groups; without a second one, from all others",
  ],
  heal: ["heal [A B]", "ends cuts and delays of one link, or of all"],
  delay: ["delay A B --rtt-ms N --jitter-ms N --loss P --mbps N", "changes a link; what is not named stays"],
  evict: [
    "evict SITE [--app APP [--table TABLE]]",
    "the site gives back what it covers, and fetches it again when read",
  ],
  wipe: ["wipe SITE", "stops it, removes its data, starts it as a new incarnation"],
  skew: ["skew SITE --ms N", "puts its clock ahead, or back; 0 ends it"],
  disk: ["disk SITE full|fail|ok", "breaks its disk; ok repairs it and restarts a site that has failed"],
};

const number = (says: string, value = "N") => ({ type: "string" as const, value, says });

/** `sojourn chaos ACTION …` */
export const chaos: Command = {
  name: "chaos",
  usage: "[ACTION …]",
  verbs: { at: 0, names: CHAOS_ACTIONS },
  summary: "Breaks a dev cluster on purpose, and says how to undo it; alone: shows what is broken now.",
  details: [
    "What it does lasts over restarts of sites, until it is undone or `dev` ends. Actions:",
    "",
    ...columns(Object.values(USAGE)).map((line) => `  ${line}`),
  ],
  options: {
    "rtt-ms": number("delay: round trip"),
    "jitter-ms": number("delay: added to each frame, up to this"),
    loss: number("delay: share of frames that are lost, 0 to 1", "P"),
    mbps: number("delay: rate of each direction"),
    ms: number("skew: added to the site's clock; negative: behind"),
    app: { type: "string", value: "APP", says: "evict: only this app's rows" },
    table: { type: "string", value: "TABLE", says: "evict: only this table of it" },
    ...CLUSTER_OPTIONS,
  },
  words: [0, 3],
  async run(args, shell) {
    if (args.words.length === 0) return await show(args, shell);
    const action = actionOf(args);
    const client = await findDoor(args, shell);
    const done = chaosDoneSchema.parse(await client.call("POST", PATH, action));
    if (args.json) shell.out(JSON.stringify(done));
    else shell.out(`${done.did}\nundo: ${done.undo}`);
    if (done.missing.length === 0) return EXIT.done;
    shell.err(`not told yet: ${done.missing.join(", ")} (no answer); it holds there from the next start on`);
    return EXIT.partly;
  },
};

/** Returns a client of the dev process's own door, or of the site that `--to` names. */
async function findDoor(args: Parsed, shell: Shell): Promise<AdminClient> {
  if (args.text("to") === undefined && shell.env("SOJOURN_URL") === undefined) {
    const data = args.text("data") ?? DATA_DEFAULT;
    const cluster = await readCluster(data);
    if (cluster?.controlUrl !== undefined) {
      const token = shell.env("SOJOURN_TOKEN") ?? cluster.adminToken;
      const client = new AdminClient({ url: cluster.controlUrl, token });
      try {
        await client.call("GET", PATH);
        return client;
      } catch (error) {
        if (!(error instanceof AdminError) || error.code !== "site_unreachable") throw error;
        throw new AdminError("cluster_unknown", `the dev cluster of ${join(data, CLUSTER_FILE)} has ended`);
      }
    }
  }
  return await findCluster(args, shell);
}

/** Options that only some actions take. */
const OPTIONS_OF: Readonly<Record<string, readonly string[]>> = {
  delay: ["rtt-ms", "jitter-ms", "loss", "mbps"],
  skew: ["ms"],
  evict: ["app", "table"],
};
const FIELD: Readonly<Record<string, string>> = { "rtt-ms": "rttMs", "jitter-ms": "jitterMs" };

/** Returns the action that the arguments name. @throws UsageError */
function actionOf(args: Parsed): ChaosAction {
  const [name = "", first, second] = args.words;
  if (!isAction(name)) {
    throw new UsageError(`chaos has ${CHAOS_ACTIONS.join(", ")}, not ${JSON.stringify(name)}`);
  }
  const [usage] = USAGE[name];
  const fields = fieldsOf(name, first, second, usage);
  for (const option of Object.values(OPTIONS_OF).flat()) {
    const text = args.text(option);
    if (text === undefined) continue;
    if (!OPTIONS_OF[name]?.includes(option)) {
      throw new UsageError(`chaos ${name} takes no --${option}: ${usage}`);
    }
    fields[FIELD[option] ?? option] = name === "evict" ? text : numberOf(option, text);
  }
  const parsed = chaosActionSchema.safeParse({ action: name, ...fields });
  if (parsed.success) return parsed.data;
  if (name === "skew" && args.text("ms") === undefined) throw new UsageError(`--ms is missing: ${usage}`);
  throw new UsageError(`${explainAction(parsed.error, { action: name, ...fields })}: chaos ${usage}`);
}

const isAction = (name: string): name is ChaosAction["action"] => CHAOS_ACTIONS.includes(name);

/** Returns the fields that the words after an action's name give. @throws UsageError */
function fieldsOf(
  name: ChaosAction["action"],
  first: string | undefined,
  second: string | undefined,
  usage: string,
): Record<string, unknown> {
  const groups = (text: string | undefined) => text?.split(",").filter((id) => id !== "");
  if (name === "heal") {
    if (first !== undefined && second === undefined) {
      throw new UsageError(`a link has two ends: chaos ${usage}`);
    }
    return first === undefined ? {} : { a: first, b: second };
  }
  if (first === undefined) throw new UsageError(`a site is missing: chaos ${usage}`);
  if (name === "partition") return { a: groups(first), ...second === undefined ? {} : { b: groups(second) } };
  if (name === "delay") {
    if (second === undefined) throw new UsageError(`a link has two ends: chaos ${usage}`);
    return { a: first, b: second };
  }
  if (name === "disk") return { site: first, state: second };
  if (second !== undefined) {
    throw new UsageError(`${JSON.stringify(second)} is one argument too many: chaos ${usage}`);
  }
  return { site: first };
}

/** Returns the number of an option. @throws UsageError */
function numberOf(option: string, text: string): number {
  const value = text.trim() === "" ? NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw new UsageError(`--${option} takes a number, not ${JSON.stringify(text)}`);
}

/** Prints the faults in force, for `sojourn chaos` without an action. */
async function show(args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findDoor(args, shell);
  const state = chaosStateSchema.parse(await client.call("GET", PATH));
  if (args.json) shell.out(JSON.stringify(state));
  else {
    const lines = linesOf(state);
    for (const line of columns(lines)) shell.out(line);
    if (lines.length === 0) shell.out("nothing is broken");
  }
  return EXIT.done;
}

/** Returns a line for each fault, with the command that undoes it. */
function linesOf({ cuts, delays, skews, disks, down, paused }: ChaosState): string[][] {
  return [
    ...cuts.map(({ a, b }) => [`${a} ${b}`, "cut", `chaos heal ${a} ${b}`]),
    ...delays.map(({ a, b, rttMs, jitterMs, loss, mbps }) => [
      `${a} ${b}`,
      `${rttMs} ms, jitter ${jitterMs} ms, loss ${loss}, ${mbps} Mbit/s`,
      `chaos heal ${a} ${b}`,
    ]),
    ...skews.map(({ site, ms }) => [site, `clock ${ms} ms`, `chaos skew ${site} --ms 0`]),
    ...disks.map(({ site, state }) => [site, `disk ${state}`, `chaos disk ${site} ok`]),
    ...down.map((site) => [site, "down", `chaos restart ${site}`]),
    ...paused.map((site) => [site, "paused", `chaos resume ${site}`]),
  ];
}
