/** `sojourn routes`: the paths and hosts of an app, and changes of its hosts. */
import { WAIT_OPTIONS, waitMs } from "./waiting.ts";
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

/** `sojourn routes APP [add HOST | remove HOST]` */
export const routes: Command = {
  name: "routes",
  usage: "APP [add HOST | remove HOST]",
  summary: [
    "Shows where an app is reached and which paths run at which tier. `add` gives it a host of its own, at which it",
    "is served without /APP/ before its paths; a host belongs to one app. (DNS is not changed: point the name to",
    "the sites.)",
  ].join("\n"),
  options: { ...CLUSTER_OPTIONS, ...WAIT_OPTIONS },
  verbs: { at: 1, names: ["add", "remove"] },
  words: [1, 3],
  async run(args, shell) {
    const [app = "", verb, host] = args.words;
    const wait = waitMs(args);
    if (verb === undefined) return await show(app, args, shell);
    if (verb !== "add" && verb !== "remove") throw new UsageError(`routes has add and remove, not ${verb}`);
    if (host === undefined) throw new UsageError(`${verb} takes a host, such as shop.example`);
    const client = await findCluster(args, shell);
    const { missing } = await new ChangeProgress(shell).run(
      client,
      (progress) => client.changeHost(app, verb, host, wait, progress),
      { look: `routes ${app}`, made: "it is done all the same; only waiting was given up" },
    );
    for (const id of missing) shell.err(`${id} has not followed yet`);
    const shown = await show(app, args, shell);
    return missing.length === 0 ? shown : EXIT.partly;
  },
};

async function show(app: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const found = await (await findCluster(args, shell)).routes(app);
  if (args.json) shell.out(JSON.stringify(found));
  else {
    for (const address of [`/${app}/`, `${app}.localhost`, ...found.hosts]) shell.out(address);
    const paths = found.paths.map(({ path, at }) => [`  ${path}`, `at the nearest ${at}`]);
    for (const line of columns([...paths, ["  every other path", "where the request arrives"]])) {
      shell.out(line);
    }
  }
  return EXIT.done;
}
