/**
 * `sojourn secrets`: values that only the operator knows. A value comes from standard input, and no command shows
 * one.
 */
import { APP_NAME } from "../deploy/records.ts";
import { SECRET_NAME } from "../secrets/mod.ts";
import type { AdminClient } from "../deploy/client.ts";
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
import { ChangeProgress } from "./following.ts";
import { readValue } from "./secret_input.ts";
import { WAIT_OPTIONS, waitMs } from "./waiting.ts";

/** `sojourn secrets APP set NAME | list | delete NAME` */
export const secrets: Command = {
  name: "secrets",
  usage: "APP set NAME [--wait] [--timeout 30] | APP list | APP delete NAME",
  verbs: { at: 1, names: ["set", "list", "delete"] },
  summary: [
    "Sets an app's secret from standard input, lists them (never their values), deletes one. `set` waits until every",
    "site has the value, so that the next request gets it wherever it is made; exit 3 where a site has not in time.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    wait: { type: "boolean", says: "set: wait until every site has it; so it is by default" },
    "no-wait": { type: "boolean", says: "set: return once it is kept at the root" },
    ...WAIT_OPTIONS,
  },
  words: [2, Infinity],
  async run(args, shell) {
    const [app = "", verb = "", name, ...more] = args.words;
    const wrong = misuse(app, verb, name, more.length);
    if (wrong !== null) throw new UsageError(wrong);
    if (verb === "list" || name === undefined) {
      return await list(await findCluster(args, shell), app, args, shell);
    }
    if (verb === "set") return await set(app, name, args, shell);
    await (await findCluster(args, shell)).deleteSecret(app, name);
    if (args.json) shell.out(JSON.stringify({ app, name }));
    else shell.out(`${app} ${name} deleted`);
    return EXIT.done;
  },
};

/**
 * Returns what is wrong with the words, which are not repeated: one that is out of place may be the value. Null where
 * nothing is.
 */
function misuse(app: string, verb: string, name: string | undefined, more: number): string | null {
  if (verb !== "set" && verb !== "list" && verb !== "delete") {
    return "after the app comes set, list or delete";
  }
  if (!APP_NAME.test(app)) return "the first word is the app's name: a letter, then letters, digits and -";
  if (verb === "list") return name === undefined ? null : "list takes no name";
  if (name === undefined) return `${verb} takes the secret's name`;
  if (more > 0 || (verb === "set" && name.includes("="))) {
    return "a value is no argument: there, histories and lists of processes show it; it is read from standard input";
  }
  return SECRET_NAME.test(name)
    ? null
    : "a secret's name is a letter or _, then at most 63 letters, digits, _ and -";
}

async function set(app: string, name: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  if (args.flag("wait") && args.flag("no-wait")) throw new UsageError("either --wait or --no-wait");
  const timeoutMs = args.flag("no-wait") ? 0 : waitMs(args);
  const client = await findCluster(args, shell);
  const input = shell.input ?? Deno.stdin;
  const prompt = `value of ${name} for ${app} (not shown): `;
  const value = await readValue(input, prompt, (text) => shell.show?.(text));
  if (value === null || value === "") {
    shell.err(`${name} is unchanged: no value was given on standard input`);
    return EXIT.failed;
  }
  const { stamp, ...done } = await client.setSecret(app, name, value, "command");
  const isAwaited = done.tier === "everywhere" && timeoutMs > 0;
  const { sites, missing } = isAwaited
    ? await arrived(client, { app, name, stamp, timeoutMs }, shell)
    : { sites: [], missing: [] };
  if (args.json) shell.out(JSON.stringify({ ...done, ...isAwaited ? { sites, missing } : {} }));
  else {
    const where = done.tier === "root"
      ? "kept at the root"
      : !isAwaited
      ? "on its way to every site"
      : missing.length === 0
      ? `at all ${sites.length} sites`
      : `at ${sites.length} of ${sites.length + missing.length} sites`;
    shell.out(`${app} ${name} ${done.changed ? "set" : "has this value already"}, ${where}`);
  }
  if (missing.length > 0) {
    shell.err(`not there yet: ${missing.join(", ")}; it arrives as soon as they can be reached`);
  }
  if (done.declared === null) shell.err(`note: no app is called ${app} yet; the value waits for it`);
  else if (!done.declared) shell.err(`note: ${app} does not declare ${name} in secrets, and does not get it`);
  if (!done.redacted) shell.err("note: a value of fewer than 8 characters is not taken out of logs");
  return missing.length === 0 ? EXIT.done : EXIT.partly;
}

/** Waits for the sites to have a secret; progress is told once it takes longer than a moment. */
async function arrived(
  client: AdminClient,
  { app, name, stamp, timeoutMs }: {
    readonly app: string;
    readonly name: string;
    readonly stamp: string;
    readonly timeoutMs: number;
  },
  shell: Shell,
) {
  const following = new ChangeProgress(shell);
  following.say("kept at the root; waiting for the sites");
  return await following.run(
    null,
    (progress) => client.awaitSecret(app, name, { stamp, waitMs: timeoutMs }, progress),
    {
      look: `secrets ${app} list`,
      made: `${name} is set all the same; only waiting was given up`,
      isMade: true,
    },
  );
}

async function list(client: AdminClient, app: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const rows = await client.secrets(app);
  if (args.json) shell.out(JSON.stringify(rows));
  else if (rows.length === 0) shell.err(`${app} declares no secrets, and has none`);
  else {
    const cells = rows.map((row) => [
      row.name,
      row.setMs === null ? "no value" : new Date(row.setMs).toISOString().slice(0, 19) + "Z",
      row.tier === "root" ? "root" : "every site",
      row.declared ? "declared" : "not declared",
      row.readable ? row.from === "dotenv" ? "from .env" : "" : "unreadable: set it again",
    ]);
    for (const line of columns([["secret", "set", "kept at", "", ""], ...cells])) shell.out(line);
  }
  return EXIT.done;
}
