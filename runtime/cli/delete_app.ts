/**
 * `sojourn apps delete APP`.
 */
import { findCluster } from "./cluster.ts";
import { EXIT, type ExitCode, type Parsed, type Shell, UsageError, type ValueInput } from "./command.ts";
import { ChangeProgress } from "./following.ts";
import { waitMs } from "./waiting.ts";

/** Deletes an app, once the person who asks has confirmed it. */
export async function deleteApp(app: string | undefined, args: Parsed, shell: Shell): Promise<ExitCode> {
  if (app === undefined) throw new UsageError("delete takes the app's name");
  const wait = waitMs(args);
  if (!args.flag("yes") && !await confirmed(app, shell)) {
    shell.err(`${app} is unchanged: its name was not typed`);
    return EXIT.failed;
  }
  const client = await findCluster(args, shell);
  const { rows = 0, sites, missing } = await new ChangeProgress(shell).run(
    null,
    (progress) => client.deleteApp(app, wait, progress),
    { look: "apps", made: `${app} is deleted all the same; its rows are removed at the root` },
  );
  if (args.json) shell.out(JSON.stringify({ app, rows, sites, missing }));
  else shell.out(`${app} is deleted: ${rows} rows removed`);
  if (missing.length === 0) return EXIT.done;
  shell.err(
    `${missing.join(", ")} did not answer: ` +
      `when they do, rows that come from there are removed, and the name ${app} is free`,
  );
  return EXIT.partly;
}

/** Asks for a confirmation. @throws UsageError where nobody can be asked. */
async function confirmed(app: string, shell: Shell): Promise<boolean> {
  const input = shell.input ?? Deno.stdin;
  if (!input.isTerminal()) {
    throw new UsageError(`deleting ${app} and its rows needs --yes, or a terminal to ask`);
  }
  shell.show?.(`This removes ${app} and all of its rows, for good. Type its name: `);
  return await readLine(input) === app;
}

/** Bytes of the longest line: a name has 40 characters, and a longer line is none. */
const LINE_BYTES_MAX = 200;

async function readLine(input: ValueInput): Promise<string> {
  const buffer = new Uint8Array(LINE_BYTES_MAX);
  let text = "";
  while (text.length <= LINE_BYTES_MAX && !text.includes("\n")) {
    const count = await input.read(buffer);
    if (count === null) break;
    text += new TextDecoder().decode(buffer.subarray(0, count));
  }
  return text.trim();
}
