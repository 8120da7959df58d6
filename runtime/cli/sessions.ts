/** `sojourn sessions`: lists the stateful sessions of a cluster and their homes, moves and deletes them. */
import { z } from "zod";
import { sessionSegments } from "../deploy/session_path.ts";
import { show } from "./apps.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import { reset, resume, showLog } from "./session_mending.ts";
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
import { type SiteState, siteStates, stateText } from "./site_states.ts";
import { visible } from "../observe/visible.ts";

const listed = z.object({
  app: z.string(),
  class: z.string(),
  id: z.string(),
  home: z.string(),
  epoch: z.number(),
  owners: z.array(z.string()),
  version: z.string(),
  ended: z.boolean(),
  /** Reason why the session stands still, as a code. */
  parked: z.string().nullable(),
});
const listSchema = z.object({ sessions: z.array(listed), next: z.string().nullable() });
const shownSchema = listed.extend({
  parked: z.object({
    code: z.string(),
    message: z.string(),
    detail: z.record(z.string(), z.unknown()),
    version: z.string(),
    site: z.string(),
    atMs: z.number(),
  }).nullable(),
  /** State that the home tells of the session; null where it can't be asked. */
  at: z.object({
    state: z.string(),
    version: z.string().optional(),
    sequence: z.number(),
    checkpoint: z.number(),
    logBytes: z.number(),
    timers: z.array(z.object({ name: z.string(), dueMs: z.number() })),
    waiting: z.number(),
    unsent: z.object({ messages: z.number(), why: z.string() }).nullable().default(null),
    attached: z.number().default(0),
    apart: z.number().default(0),
    peers: z.array(z.string()).default([]),
    problem: z.string().nullable(),
  }).nullable(),
  unreachable: z.string().nullable(),
});
const movedSchema = z.object({ app: z.string(), class: z.string(), id: z.string(), home: z.string() });
const deletedSchema = z.object({
  app: z.string(),
  class: z.string(),
  id: z.string(),
  /** Sites that did not answer: what they keep of an ended session of that id goes when its time is up. */
  missing: z.array(z.string()).default([]),
});

type Shown = z.infer<typeof shownSchema>;

const LIMIT = { min: 1, max: 1_000_000, or: 100 };
/** Milliseconds for running requests when a session moves: as long as one admin call takes. */
const WAIT = { min: 0, max: 10_000, or: 10_000 };
/** Moves at the same time: each is a few trips between sites. */
const MOVES_AT_ONCE = 8;
/** Rows of a page: as many as one call is answered with. */
const PAGE_MAX = 1_000;

/** Verbs that concern one session. */
const WORK: Readonly<
  Record<string, (names: readonly string[], args: Parsed, shell: Shell) => Promise<ExitCode>>
> = {
  show: (names, args, shell) => showOne(names, args, shell),
  log: showLog,
  resume,
  reset,
  delete: (names, args, shell) => remove(names, args, shell),
};

/** `sojourn sessions` */
export const sessions: Command = {
  name: "sessions",
  usage: "list [APP [CLASS]] | show APP CLASS ID | move APP CLASS ID SITE | move --all-from SITE SITE | " +
    "log APP CLASS ID | resume APP CLASS ID | reset APP CLASS ID | delete APP CLASS ID",
  summary: [
    "Lists the stateful sessions of the cluster with where each is at home, and looks after one. CLASS is the name",
    "that its class has in defineApp({ sessions }).",
  ].join("\n"),
  details: [
    "",
    ...columns([
      ["list", "home, epoch, owners and version of each"],
      ["show", "of one, also what its home knows: its log, timers, who is attached, why it stands still"],
      ["move", "makes SITE its home: new requests wait while what was begun ends, and none is refused"],
      ["", "--all-from SITE: of all that are at home at that site"],
      ["log", "its last checkpoint and the entries after it, a JSON object a line, with what callers sent,"],
      ["", "shortened; also for a while after it has ended"],
      ["resume", "has one that stands still try again, with all of its log"],
      ["", "--from-log: from as much of its log as can be replayed, with whatever version is deployed"],
      ["", "--from-checkpoint: from its last checkpoint, which takes back what came after it"],
      ["", "--without-clients: without those that hold its log and do not come back"],
      ["reset", "drops its state: it begins anew, blank, where it is at home"],
      ["delete", "drops it and its log, at once; also the log of one that has ended"],
    ]).map((line) => `  ${line}`),
  ],
  options: {
    ...CLUSTER_OPTIONS,
    limit: { type: "string", value: "N", says: `at most so many, ${LIMIT.or} by default` },
    wait: {
      type: "string",
      value: "MS",
      says: `what was begun may go on so long before it moves, ${WAIT.or} by default`,
    },
    from: { type: "string", value: "N", says: "log: entries from this number on" },
    ended: { type: "boolean", says: "log: that of the last one of this id that ended" },
    "from-checkpoint": { type: "boolean", says: "resume: take back what came after the last checkpoint" },
    "from-log": { type: "boolean", says: "resume: take back what of its log can't be replayed" },
    "without-clients": {
      type: "boolean",
      says: "resume: also one that waits for clients that hold its log; what only they were told is gone",
    },
    yes: { type: "boolean", says: "resume --from-log, --from-checkpoint or --without-clients, reset: do it" },
    "all-from": { type: "string", value: "SITE", says: "moves all that are at home there" },
  },
  verbs: { at: 0, names: ["list", "show", "move", "log", "resume", "reset", "delete"] },
  words: [1, 5],
  async run(args, shell) {
    const [verb = "", app, name, id, site] = args.words;
    if (verb === "move") return await moveSome(args, shell);
    if (args.text("all-from") !== undefined) throw new UsageError("--all-from goes with move");
    if (site !== undefined) throw new UsageError(`${verb} takes no site`);
    if (verb === "list") {
      if (id !== undefined) throw new UsageError("list takes an app and a class at most");
      return await list({ app, name }, args, shell);
    }
    const work = Object.hasOwn(WORK, verb) ? WORK[verb] : undefined;
    if (work === undefined) {
      throw new UsageError(`sessions has list, move, ${Object.keys(WORK).join(", ")}, not ${verb}`);
    }
    if (app === undefined || name === undefined || id === undefined) {
      throw new UsageError(`${verb} takes the app, the class and the id`);
    }
    return await work([app, name, id], args, shell);
  },
};

async function moveSome(args: Parsed, shell: Shell): Promise<ExitCode> {
  const [, ...words] = args.words;
  const from = args.text("all-from");
  if (from !== undefined) {
    const [to] = words;
    if (to === undefined || words.length > 1) {
      throw new UsageError("move --all-from SITE takes the site to move them to, and nothing else");
    }
    return await moveAll(from, to, args, shell);
  }
  const [app, name, id, to] = words;
  if (app === undefined || name === undefined || id === undefined || to === undefined) {
    throw new UsageError("move takes the app, the class, the id and the site");
  }
  const client = await findCluster(args, shell);
  const moved = movedSchema.parse(await client.call("POST", movePath([app, name, id], to, args)));
  if (args.json) shell.out(JSON.stringify(moved));
  else shell.out(`${moved.class} ${moved.id} of ${moved.app} is at home at ${moved.home}`);
  return EXIT.done;
}

const movePath = (names: readonly string[], to: string, args: Parsed): string =>
  `${pathOf(names)}/move?to=${encodeURIComponent(to)}&drainMs=${numberOption(args, "wait", WAIT)}`;

/** Moves all sessions of a site. One that can't be moved is reported, and stays. */
async function moveAll(from: string, to: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  let next: string | null = null;
  const moved: string[] = [], stayed: string[] = [];
  const one = async (names: readonly string[]) => {
    try {
      await client.call("POST", movePath(names, to, args));
      moved.push(names.join(" "));
    } catch (error) {
      stayed.push(names.join(" "));
      shell.err(error instanceof Error ? error.message : String(error));
    }
  };
  do {
    const query = new URLSearchParams({ limit: String(PAGE_MAX), ...next === null ? {} : { after: next } });
    const page = listSchema.parse(await client.call("GET", `/sessions?${query}`));
    next = page.next;
    const there = page.sessions.filter(({ home, ended }) => home === from && !ended);
    while (there.length > 0) {
      await Promise.all(there.splice(0, MOVES_AT_ONCE).map((each) => one([each.app, each.class, each.id])));
    }
  } while (next !== null);
  if (args.json) shell.out(JSON.stringify({ from, to, moved: moved.length, stayed: stayed.length }));
  else {
    shell.out(
      `${moved.length} of ${moved.length + stayed.length} stateful sessions of ${from} are at home at ${to}`,
    );
  }
  return stayed.length === 0 ? EXIT.done : EXIT.failed;
}

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
  const states = found.some(({ ended }) => !ended) ? await siteStates(client) : new Map<string, SiteState>();
  const rows = found.map((one) => ({ ...one, homeUp: one.ended ? null : states.get(one.home)?.up ?? false }));
  const cells = rows.map((one) => [
    one.app,
    one.class,
    one.id,
    one.ended ? "ended" : homeText(one, states.get(one.home)),
    String(one.epoch),
    one.ended ? "-" : ownersText(one, states),
    one.version.slice(0, 8),
  ]);
  const code = show(rows, args, shell, {
    head: ["app", "class", "id", "home", "epoch", "owners", "version"],
    cells,
    none: "no stateful sessions",
  });
  if (next !== null) shell.err(`there are more: --limit ${limit * 10}`);
  return code;
}

/**
 * Returns the text about a session's home. A session whose home is away goes on elsewhere with its next request, where
 * others keep its log.
 */
function homeText({ home, parked }: z.infer<typeof listed>, state: SiteState | undefined): string {
  const notes = [
    ...state === undefined ? ["removed"] : state.up ? [] : [stateText(state)],
    ...parked === null ? [] : [`parked: ${parked}`],
  ];
  return [home, ...notes].join(", ");
}

/** Returns the text about the owners, which keep the log; without too many of them nobody can open the session. */
export function ownersText(
  { owners }: Pick<z.infer<typeof listed>, "owners">,
  states: ReadonlyMap<string, SiteState>,
): string {
  const texts = owners.map((owner) => {
    if (isClient(owner)) return owner;
    const state = states.get(owner);
    if (state?.up) return owner;
    return `${owner} (${state === undefined ? "removed" : stateText(state)})`;
  });
  return texts.join(",") || "-";
}

const pathOf = ([app = "", name = "", id = ""]: readonly string[]): string =>
  sessionSegments({ app, class: name, id });

async function showOne(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const one = shownSchema.parse(await client.call("GET", pathOf(names)));
  if (args.json) {
    shell.out(JSON.stringify(one));
    return EXIT.done;
  }
  const rows = [
    ["home", one.ended ? "ended" : `${one.home}, epoch ${one.epoch}`],
    ...one.ended ? [] : [["owners", disksOf(one)]],
    ["version", one.at?.version ?? one.version],
  ];
  const clients = one.owners.filter(isClient).map((owner) => owner.slice(1));
  if (clients.length > 0) rows.push(["held by", `${clients.length} clients or agents, on record`]);
  for (const id of clients) rows.push(["", `${id}${presenceOf(id, one.at)}`]);
  if (one.at === null) {
    if (one.unreachable !== null) rows.push(["state", `not known: ${one.unreachable}`]);
    else if (!one.ended) rows.push(["state", "at rest, out of memory"]);
  } else {
    const { state, sequence, checkpoint, logBytes, waiting, attached, apart, peers, timers, problem } =
      one.at;
    const { unsent } = one.at;
    rows.push(["state", problem === null ? state : `${state}: ${problem}`]);
    // The home has nothing in memory of a session that is not open.
    if (state === "open") {
      rows.push([
        "log",
        `${sequence - checkpoint} entries after the checkpoint at ${checkpoint}, ${logBytes} bytes`,
      ]);
    }
    rows.push(["waiting", `${waiting} requests`]);
    if (unsent !== null) rows.push(["unsent", `${unsent.messages} of its messages to queues: ${unsent.why}`]);
    rows.push(["attached", `${attached}${apart === 0 ? "" : `, ${apart} of them out of reach`}`]);
    for (const id of peers) rows.push(["", id]);
    if (attached > peers.length) rows.push(["", "…"]);
    for (const { name, dueMs } of timers) rows.push(["timer", `${name} at ${new Date(dueMs).toISOString()}`]);
  }
  for (const line of columns(rows)) shell.out(line);
  if (one.parked !== null) {
    for (const line of [...reportLines(one.parked), ...nextLines(names)]) shell.out(visible(line));
  }
  return EXIT.done;
}

const disksOf = ({ owners }: Shown): string =>
  owners.filter((owner) => !isClient(owner)).join(", ") || "none: the home's disk alone";

/** Reports whether an owner is a client, or an agent of an origin, that holds the log (docs/protocol/hosts.md). */
const isClient = (owner: string): boolean => owner.startsWith("@");

/**
 * Returns the text that says that a client which holds the log is missing; "" where it is there, or that is not known.
 */
function presenceOf(id: string, at: Shown["at"]): string {
  if (at === null) return "";
  // The problem of a failed opening names all that are missing.
  if (at.state === "unreachable") return at.problem?.includes(id) === true ? ", missing" : "";
  const isAllShown = at.peers.length === at.attached;
  return at.state === "open" && isAllShown && !at.peers.includes(id) ? ", missing" : "";
}

/** Returns lines on why a session stands still, with all that is known of it. */
function reportLines({ code, message, detail, site, atMs }: NonNullable<Shown["parked"]>): string[] {
  const lines = [
    "",
    `It stands still since ${new Date(atMs).toISOString()}, when ${site} was its home: ${code}`,
  ];
  lines.push(...message.split("\n").map((line) => `  ${line}`));
  for (const [name, value] of Object.entries(detail)) {
    const acts = z.array(z.object({ what: z.string(), at: z.string() })).safeParse(value);
    if (acts.success) {
      lines.push(
        `${name}:`,
        ...acts.data.map(({ what, at }) =>
          at === "" ? `  ${what}` : `  ${what}, ${at.replaceAll("\n", ", ")}`
        ),
      );
    } else if (typeof value === "string") {
      lines.push(`${name}: ${value.replaceAll("\n", "\n  ")}`);
    } else lines.push(`${name}: ${JSON.stringify(value)}`);
  }
  return lines;
}

/** Returns lines on what can be done about a session that stands still. */
function nextLines(names: readonly string[]): string[] {
  const one = names.map((name) => /^[\w.:@-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`)
    .join(" ");
  return [
    "",
    "Deploy a version that can go on, or",
    ...columns([
      [`  sojourn sessions resume ${one}`, "to have it try again"],
      [
        `  sojourn sessions resume ${one} --from-log`,
        "to go on from as much of its log as can be replayed",
      ],
      [
        `  sojourn sessions resume ${one} --from-checkpoint`,
        "to take back what came after its last checkpoint",
      ],
      [`  sojourn sessions reset ${one}`, "to drop its state: it begins anew"],
    ]),
  ];
}

async function remove(names: readonly string[], args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const gone = deletedSchema.parse(await client.call("DELETE", pathOf(names)));
  if (args.json) shell.out(JSON.stringify(gone));
  else shell.out(`${gone.class} ${gone.id} of ${gone.app} is deleted`);
  const { missing } = gone;
  if (missing.length === 0) return EXIT.done;
  shell.err(
    `logs of those of that id that have ended may be kept at ${missing.join(", ")}: nobody answers there`,
  );
  return EXIT.partly;
}
