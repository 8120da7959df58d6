/**
 * `sojourn logs`: lines of all sites, by time; with `--follow` until Ctrl-C.
 *
 * L1  When the site that gives the lines goes away, another one is asked from where this one stopped; no line is
 *     printed twice for that.
 * L2  Lines of an app cannot steer the terminal: control characters are shown, not sent.
 */
import { type AdminClient } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { LINES_MAX, LOG_LEVELS, type LogLine, logLineSchema, timeOf } from "../observe/log_line.ts";
import { CLUSTER_OPTIONS, findCluster, findClusterAgain } from "./cluster.ts";
import { type Command, EXIT, numberOption, type Parsed, type Shell } from "./command.ts";
import { UsageError } from "./command.ts";
import { LogMemory } from "./log_memory.ts";
import { visible } from "../observe/visible.ts";

/** `sojourn logs [APP]` */
export const logs: Command = {
  name: "logs",
  usage: "[APP] [--follow] [--level LEVEL] [--site ID] [--since TIME] [--limit N]",
  summary:
    "Shows what apps and sites have printed, of all sites, by time. Exit 3 where a site does not answer.",
  options: {
    ...CLUSTER_OPTIONS,
    follow: { type: "boolean", says: "go on with each new line, until Ctrl-C" },
    level: { type: "string", value: "LEVEL", says: `this grave or graver: ${LOG_LEVELS.join(", ")}` },
    site: { type: "string", value: "ID", says: "of this site only" },
    since: { type: "string", value: "TIME", says: "90s, 10m, 2h, 1d, or a date like 2026-01-31T12:00:00Z" },
    limit: { type: "string", value: "N", says: "the newest N lines: 200 by default, all with --since" },
  },
  words: [0, 1],
  async run(args, shell) {
    const query = queryOf(args);
    const printer = new Printer(args.json, shell);
    const stop = args.flag("follow") ? shell.interrupted?.() : undefined;
    let client = await findCluster(args, shell);
    const unknown = await unknownApp(client, args.words[0]);
    if (unknown !== null && stop !== undefined) {
      shell.err(`${unknown}; its lines are shown when there is one`);
    }
    let connected = false;
    for (;;) {
      try {
        for await (const value of client.lines(`/logs?${query}`, stop)) {
          connected = true;
          if (value !== undefined && !printer.print(logLineSchema.parse(value))) return EXIT.done;
        }
        if (stop === undefined) {
          // The lines of a deleted app are there for a while.
          if (unknown !== null && !printer.hasShown) throw new AdminError("app_unknown", unknown);
          return printer.isPartial ? EXIT.partly : EXIT.done;
        }
      } catch (error) {
        // A follower that has seen nothing yet is told of the error; later it looks for another site (L1).
        const isLost = error instanceof AdminError && error.code === "site_unreachable";
        if (stop === undefined || !isLost || !connected) throw error;
        shell.err(`${error.message}; looking for a site that answers`);
      }
      if (stop.aborted) return EXIT.done;
      const next = await findClusterAgain(args, shell, stop);
      if (next === null) return EXIT.done;
      client = next;
      printer.memory.brokeOff();
      const { sinceMs } = printer.memory;
      if (sinceMs !== null) query.set("since", String(sinceMs));
      query.set("limit", String(LINES_MAX));
    }
  },
};

/** Returns the text that says that there is no such app; null where there is, or where none is named. */
async function unknownApp(client: AdminClient, app: string | undefined): Promise<string | null> {
  if (app === undefined || (await client.apps()).some(({ app: name }) => name === app)) return null;
  return `no app is called ${JSON.stringify(app)}`;
}

function queryOf(args: Parsed): URLSearchParams {
  const query = new URLSearchParams();
  const level = args.text("level");
  if (level !== undefined && !LOG_LEVELS.some((known) => known === level)) {
    throw new UsageError(`--level takes one of ${LOG_LEVELS.join(", ")}, not ${level}`);
  }
  const since = args.text("since");
  if (since !== undefined && Number.isNaN(timeOf(since, Date.now()))) {
    throw new UsageError(`--since takes 90s, 10m, 2h, 1d, or a date like 2026-01-31T12:00:00Z, not ${since}`);
  }
  const [app] = args.words;
  const asked = { app, level, site: args.text("site"), since };
  for (const [name, value] of Object.entries(asked)) if (value !== undefined) query.set(name, value);
  const or = asked.since === undefined ? 200 : LINES_MAX;
  query.set("limit", String(numberOption(args, "limit", { min: 0, max: LINES_MAX, or })));
  if (args.flag("follow")) query.set("follow", "1");
  return query;
}

/** Prints lines, and remembers them. */
class Printer {
  readonly #json: boolean;
  readonly #shell: Shell;
  readonly #colours: boolean;
  readonly memory = new LogMemory();
  #siteWidth = 7;
  #sourceWidth = 12;
  isPartial = false;
  /** True when a line of a log was among the printed ones. */
  hasShown = false;

  constructor(json: boolean, shell: Shell) {
    this.#json = json;
    this.#shell = shell;
    this.#colours = shell.terminal !== undefined && (shell.env("NO_COLOR") ?? "") === "";
  }

  /** Prints a line. @returns whether there is still a reader. */
  print(line: LogLine): boolean {
    if (line.notice === "unreachable") this.isPartial = true;
    if (line.notice === undefined) this.hasShown = true;
    if (!this.memory.isNew(line)) return true;
    try {
      this.#shell.out(this.#json ? JSON.stringify(line) : this.#human(line));
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.BrokenPipe) return false; // `logs | head`
      throw error;
    }
  }

  #human(line: LogLine): string {
    const { app, version, site, level, traceId } = line;
    const source = app === undefined ? "-" : version === undefined ? app : `${app}@${version.slice(0, 8)}`;
    this.#siteWidth = Math.max(this.#siteWidth, site.length);
    this.#sourceWidth = Math.min(Math.max(this.#sourceWidth, source.length), 32);
    const head = [
      new Date(line.atMs).toISOString().slice(11, 23),
      site.padEnd(this.#siteWidth),
      level.padEnd(5),
      source.padEnd(this.#sourceWidth),
    ];
    const indent = " ".repeat(head.join(" ").length + 1);
    const trace = traceId === undefined ? "" : ` ${this.#paint("dim", `trace=${traceId}`)}`;
    const text = visible(line.text).replaceAll("\n", `\n${indent}`) + trace;
    const [at = "", where = "", grave = "", who = ""] = head;
    return [
      this.#paint("dim", at),
      this.#paint("cyan", where),
      this.#paint(COLOUR[level], grave),
      this.#paint("dim", who),
      line.notice === undefined ? text : this.#paint("yellow", text),
    ].join(" ");
  }

  #paint(colour: keyof typeof SGR, text: string): string {
    return this.#colours && SGR[colour] !== "" ? `\x1b[${SGR[colour]}m${text}\x1b[0m` : text;
  }
}

const SGR = { dim: "2", cyan: "36", yellow: "33", red: "31", plain: "" } as const;
const COLOUR = { debug: "dim", info: "plain", warn: "yellow", error: "red" } as const;
