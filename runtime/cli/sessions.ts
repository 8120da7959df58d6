/**
 * `sojourn sessions`: the stateful sessions of a cluster, where each is at home, and deleting one.
 */
import { z } from "zod";
import { show } from "./apps.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import {
  columns,
  type Command,
  EXIT,
  type ExitCode,
  numberOption,
  type Parsed,
  type Shell,
  UsageError,
} from "./command.ts";

const listed = z.object({
  app: z.string(),
  class: z.string(),
  id: z.string(),
  home: z.string(),
  epoch: z.number(),
  owners: z.array(z.string()),
  version: z.string(),
  ended: z.boolean(),
});
const listSchema = z.object({ sessions: z.array(listed), next: z.string().nullable() });
const shownSchema = listed.extend({
  /** What the home says of it; null where it can't be asked. */
  at: z.object({
    state: z.string(),
    sequence: z.number(),
    checkpoint: z.number(),
    logBytes: z.number(),
    timers: z.array(z.object({ name: z.string(), dueMs: z.number() })),
    waiting: z.number(),
    problem: z.string().nullable(),
  }).nullable(),
  unreachable: z.string().nullable(),
});
const deletedSchema = z.object({ app: z.string(), class: z.string(), id: z.string() });

const LIMIT = { min: 1, max: 1_000_000, or: 100 };
/** As many as one call is answered with. */
const PAGE_MAX = 1_000;

/** `sojourn sessions` */
export const sessions: Command = {
  name: "sessions",
  usage: "list [APP [CLASS]] | show APP CLASS ID | delete APP CLASS ID",
  summary: [
    "Lists the stateful sessions of the cluster with the site that each is at home at, shows one, or deletes one with",
    "all of its state. CLASS is its name in defineApp({ sessions }). `show` also tells what the home knows of it: how",
    "long its log is, its timers, and why it does not go on where it does not.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    limit: { type: "string", value: "N", says: `at most so many, ${LIMIT.or} by default` },
  },
  verbs: { at: 0, names: ["list", "show", "delete"] },
  words: [1, 4],
  async run(args, shell) {
    const [verb = "", app, name, id] = args.words;
    if (verb === "list") {
      if (id !== undefined) throw new UsageError("list takes an app and a class at most");
      return await list({ app, name }, args, shell);
    }
    if (verb !== "show" && verb !== "delete") {
      throw new UsageError(`sessions has list, show and delete, not ${verb}`);
    }
    if (app === undefined || name === undefined || id === undefined) {
      throw new UsageError(`${verb} takes the app, the class and the id`);
    }
    return await (verb === "show" ? showOne : remove)([app, name, id], args, shell);
  },
};

async function list(
  of: { readonly app: string | undefined; readonly name: string | undefined },
  args: Parsed,
  shell: Shell,
): Promise<ExitCode> {
  const limit = numberOption(args, "limit", LIMIT);
  const client = await findCluster(args, shell);
  const found: z.infer<typeof listed>[] = [];
  let next: string | null = null;
  do {
    const query = new URLSearchParams({ limit: String(Math.min(PAGE_MAX, limit - found.length)) });
    if (of.app !== undefined) query.set("app", of.app);
    if (of.name !== undefined) query.set("class", of.name);
    if (next !== null) query.set("after", next);
    const page = listSchema.parse(await client.call("GET", `/sessions?${query}`));
    found.push(...page.sessions);
    next = page.next;
  } while (next !== null && found.length < limit);
  const cells = found.map((one) => [
    one.app,
    one.class,
    one.id,
    one.ended ? "ended" : one.home,
    String(one.epoch),
    one.owners.join(",") || "-",
    one.version.slice(0, 8),
  ]);
  const code = show(found, args, shell, {
    head: ["app", "class", "id", "home", "epoch", "owners", "version"],
    cells,
    none: "no stateful sessions",
  });
  if (next !== null && !args.json) shell.err(`there are more: --limit ${limit * 10}`);
  return code;
}

const pathOf = (names: readonly string[]): string => `/sessions/${names.map(encodeURIComponent).join("/")}`;

async function showOne(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const one = shownSchema.parse(await client.call("GET", pathOf(names)));
  if (args.json) {
    shell.out(JSON.stringify(one));
    return EXIT.done;
  }
  const rows = [
    ["home", one.ended ? "ended" : `${one.home}, epoch ${one.epoch}`],
    ["owners", one.owners.join(", ") || "none: the home's disk alone"],
    ["version", one.version],
  ];
  if (one.at === null) {
    if (one.unreachable !== null) rows.push(["state", `not known: ${one.unreachable}`]);
    else if (!one.ended) rows.push(["state", "at rest, out of memory"]);
  } else {
    const { state, sequence, checkpoint, logBytes, waiting, timers, problem } = one.at;
    rows.push(["state", problem === null ? state : `${state}: ${problem}`]);
    rows.push([
      "log",
      `${sequence - checkpoint} entries after the checkpoint at ${checkpoint}, ${logBytes} bytes`,
    ]);
    rows.push(["waiting", `${waiting} requests`]);
    for (const { name, dueMs } of timers) rows.push(["timer", `${name} at ${new Date(dueMs).toISOString()}`]);
  }
  for (const line of columns(rows)) shell.out(line);
  return EXIT.done;
}

async function remove(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const gone = deletedSchema.parse(await client.call("DELETE", pathOf(names)));
  if (args.json) shell.out(JSON.stringify(gone));
  else shell.out(`${gone.class} ${gone.id} of ${gone.app} is deleted`);
  return EXIT.done;
}
