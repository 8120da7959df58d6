/** `sojourn queues`: what waits in the queues of apps and where, messages that were given up, and orders for a queue. */
import { z } from "zod";
import { visible } from "../observe/visible.ts";
import { date, show } from "./apps.ts";
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
import { ChangeProgress } from "./following.ts";
import { WAIT_OPTIONS, waitMs } from "./waiting.ts";

const counts = {
  ...{ ready: z.number(), delayed: z.number(), lent: z.number(), dead: z.number(), bytes: z.number() },
  oldestMs: z.number().nullable(),
};
const missingSchema = z.array(z.object({ site: z.string(), why: z.string() }));
const listSchema = z.object({
  queues: z.array(z.object({
    ...{ app: z.string(), queue: z.string(), consumer: z.string().nullable(), paused: z.boolean() },
    lacks: z.string().nullable().default(null),
    ...counts,
    sites: z.array(z.object({ site: z.string(), ...counts })),
  })),
  missing: missingSchema,
});
const deadSchema = z.object({
  messages: z.array(z.object({
    ...{ site: z.string(), id: z.string(), attempts: z.number(), cause: z.string(), error: z.string() },
    ...{ sentMs: z.number(), owners: z.array(z.string()), format: z.string(), body: z.unknown() },
  })),
  next: z.string().nullable(),
  missing: missingSchema,
});
const countSchema = z.object({
  ...{ app: z.string(), queue: z.string(), count: z.number() },
  missing: missingSchema,
});

const LIMIT = { min: 1, max: 1_000_000, or: 20 };
/** Dead messages of one call. */
const PAGE_MAX = 100;
/** Ids of one call, and thereby of a command. */
const IDS_MAX = 500;
/** Characters of a body on a line for people. */
const BODY_CHARS = 80;

/** Queue that a command is about. */
interface Named {
  readonly app: string;
  readonly queue: string;
  readonly ids: readonly string[];
}

type Verb = "dead" | "redrive" | "purge" | "pause" | "resume";
const VERBS: Readonly<Record<Verb, (named: Named, args: Parsed, shell: Shell) => Promise<ExitCode>>> = {
  dead,
  redrive,
  purge,
  pause: (named, args, shell) => order(named, "pause", args, shell),
  resume: (named, args, shell) => order(named, "resume", args, shell),
};
const isVerb = (word: string): word is Verb => Object.hasOwn(VERBS, word);

/** `sojourn queues` */
export const queues: Command = {
  name: "queues",
  usage: "list [APP] | dead APP QUEUE | redrive APP QUEUE [ID…] | purge APP QUEUE [ID…] | " +
    "pause APP QUEUE | resume APP QUEUE",
  summary: "Shows what waits in the queues of apps, and looks after messages that were given up.",
  details: [
    "",
    ...columns([
      ["list", "how many messages of each are ready, delayed, with a consumer, given up; since when the"],
      ["", "oldest has been ready; and which sites have them. Without any word, too"],
      ["dead", "messages that were given up: why, after how many attempts, and what they say"],
      ["redrive", "has those come again, all or by their ids, as if they had never been tried"],
      ["purge", "removes those, all or by their ids"],
      ["", "--all: all messages that were sent to the queue so far, at whichever site"],
      ["pause", "has the queue give out nothing; what is sent is kept"],
      ["resume", "has it go on"],
    ]).map((line) => `  ${line}`),
  ],
  options: {
    ...CLUSTER_OPTIONS,
    ...WAIT_OPTIONS,
    limit: { type: "string", value: "N", says: `dead: at most so many, ${LIMIT.or} by default` },
    all: { type: "boolean", says: "purge: also what was not given up" },
    yes: { type: "boolean", says: "purge: do it" },
  },
  verbs: { at: 0, names: ["list", ...Object.keys(VERBS)] },
  words: [0, 3 + IDS_MAX],
  async run(args, shell) {
    const [verb = "list", app, queue, ...ids] = args.words;
    if (verb === "list") {
      if (queue !== undefined) throw new UsageError("list takes an app at most");
      return await list(app, args, shell);
    }
    if (!isVerb(verb)) {
      throw new UsageError(`queues has list, ${Object.keys(VERBS).join(", ")}, not ${verb}`);
    }
    if (app === undefined || queue === undefined) throw new UsageError(`${verb} takes the app and the queue`);
    if (ids.length > 0 && verb !== "redrive" && verb !== "purge") {
      throw new UsageError(`${verb} takes no ids of messages`);
    }
    if (args.flag("all") && (verb !== "purge" || ids.length > 0)) {
      throw new UsageError("--all goes with purge, without ids");
    }
    return await VERBS[verb]({ app, queue, ids }, args, shell);
  },
};

async function list(app: string | undefined, args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const of = app === undefined ? "" : `?app=${encodeURIComponent(app)}`;
  const { queues, missing } = listSchema.parse(await client.call("GET", `/queues${of}`));
  const cells = queues.map((one) => [
    `${one.app}/${one.queue}`,
    [one.consumer ?? "none", ...one.lacks === null ? [] : [one.lacks], ...one.paused ? ["paused"] : []].join(
      ", ",
    ),
    ...[one.ready, one.delayed, one.lent, one.dead].map(String),
    one.oldestMs === null ? "-" : age(one.oldestMs),
    one.sites.map((part) => `${part.site} ${part.ready + part.delayed + part.lent + part.dead}`).join(", "),
  ]);
  show(queues, args, shell, {
    head: ["queue", "consumer", "ready", "delayed", "in flight", "dead", "oldest", "at"],
    cells,
    none: app === undefined ? "no app declares a queue" : `${app} declares no queue`,
  });
  return withMissing(missing, shell);
}

async function dead({ app, queue }: Named, args: Parsed, shell: Shell): Promise<ExitCode> {
  let left = numberOption(args, "limit", LIMIT);
  const client = await findCluster(args, shell), missing: z.infer<typeof missingSchema> = [];
  let after: string | null = null, isAny = false;
  do {
    const query = new URLSearchParams({
      limit: `${Math.min(left, PAGE_MAX)}`,
      ...after === null ? {} : { after },
    });
    const page = deadSchema.parse(await client.call("GET", `${pathOf(app, queue)}/dead?${query}`));
    for (const message of page.messages) {
      isAny = true;
      if (args.json) shell.out(JSON.stringify(message));
      else for (const line of told(message)) shell.out(visible(line));
    }
    for (const one of page.missing) if (!missing.some(({ site }) => site === one.site)) missing.push(one);
    left -= page.messages.length;
    after = page.next;
  } while (left > 0 && after !== null);
  if (!isAny && !args.json) shell.err(`no message of ${app}/${queue} was given up`);
  else if (after !== null && !args.json) shell.err("there are more: --limit shows them");
  return withMissing(missing, shell);
}

function told(message: z.infer<typeof deadSchema>["messages"][number]): string[] {
  const { site, id, attempts, cause, error, sentMs, format, body } = message;
  const text = format === "json" ? JSON.stringify(body) : String(body);
  const why = error === "" ? cause : `${cause}: ${error}`;
  return [
    `${id}  at ${site}  sent ${date(sentMs)}  attempts ${attempts}  ${why}`,
    `  ${text.length > BODY_CHARS ? `${text.slice(0, BODY_CHARS)}…` : text}`,
  ];
}

async function redrive({ app, queue, ids }: Named, args: Parsed, shell: Shell): Promise<ExitCode> {
  return await changed({ app, queue, ids }, "redrive", args, shell);
}

async function purge(named: Named, args: Parsed, shell: Shell): Promise<ExitCode> {
  const { app, queue, ids } = named, isAll = args.flag("all");
  if (!args.flag("yes")) {
    const what = isAll ? "all messages" : ids.length > 0 ? `${ids.length} messages` : "all dead messages";
    shell.err(`purge removes ${what} of ${app}/${queue} for good; --yes does it`);
    return EXIT.failed;
  }
  return isAll ? await order(named, "purge", args, shell) : await changed(named, "remove", args, shell);
}

/** Does something with dead messages, at all sites. */
async function changed(
  { app, queue, ids }: Named,
  verb: "redrive" | "remove",
  args: Parsed,
  shell: Shell,
): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const body = ids.length === 0 ? {} : { ids };
  const done = countSchema.parse(await client.call("POST", `${pathOf(app, queue)}/${verb}`, body));
  if (args.json) shell.out(JSON.stringify(done));
  else {
    const what = `${done.count} ${done.count === 1 ? "message" : "messages"} of ${app}/${queue}`;
    shell.out(verb === "redrive" ? `${what} will come again` : `removed ${what}`);
  }
  return withMissing(done.missing, shell);
}

/** Orders something for a whole queue, and waits until the sites know. */
async function order(
  { app, queue }: Named,
  what: "pause" | "resume" | "purge",
  args: Parsed,
  shell: Shell,
): Promise<ExitCode> {
  const wait = waitMs(args), client = await findCluster(args, shell);
  const { changed, missing } = await new ChangeProgress(shell).run(
    client,
    (progress) => client.orderQueue(app, queue, what, wait, progress),
    { look: `queues list ${app}`, made: "it is done all the same; only waiting was given up" },
  );
  if (args.json) shell.out(JSON.stringify({ app, queue, order: what, changed, missing }));
  else {shell.out(
      `${app}/${queue} ${{ pause: "gives out nothing", resume: "goes on", purge: "is purged" }[what]}`,
    );}
  for (const id of missing) shell.err(`${id} has not followed yet`);
  return missing.length === 0 ? EXIT.done : EXIT.partly;
}

function withMissing(missing: z.infer<typeof missingSchema>, shell: Shell): ExitCode {
  for (const { site, why } of missing) shell.err(visible(`${site} did not answer: ${why}`));
  return missing.length === 0 ? EXIT.done : EXIT.partly;
}

const pathOf = (app: string, queue: string): string =>
  `/queues/${encodeURIComponent(app)}/${encodeURIComponent(queue)}`;

/** Returns a time that has passed as people read it. */
function age(ms: number): string {
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}
