/**
 * `sojourn deploy`: bundle a module here, upload it, and wait until the sites serve it.
 */
import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type AdminClient } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { APP_NAME } from "../deploy/records.ts";
import { deployModule } from "../deploy/upload.ts";
import { showDeployed } from "./apps.ts";
import { WAIT_OPTIONS, waitMs } from "./waiting.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import { ChangeProgress } from "./following.ts";
import { weightOf } from "./rollout.ts";
import { type Command, type Parsed, type Shell, UsageError } from "./command.ts";

/** Name of the module in a folder, when the folder is named. */
const MODULE_DEFAULT = "app.ts";

/** `sojourn deploy MODULE` */
export const deploy: Command = {
  name: "deploy",
  usage: "MODULE [--app NAME] [--weight 10%] [--to URL] [--timeout 30]",
  summary: "Deploys a module, or a folder's app.ts, and waits until every site serves it.",
  options: {
    app: { type: "string", value: "NAME", says: "the app's name (else its defineApp's, else its folder's)" },
    weight: {
      type: "string",
      value: "WEIGHT%",
      says: "only so many of the sessions get it: begins a rollout; 0% makes it there for previews",
    },
    ...CLUSTER_OPTIONS,
    ...WAIT_OPTIONS,
  },
  words: [1, 1],
  async run(args, shell) {
    const app = appName(args);
    const wait = waitMs(args);
    const weight = args.text("weight") === undefined ? undefined : weightOf(args.text("weight"));
    const module = await findModule(args.words[0] ?? "");
    const client = await findCluster(args, shell);
    const fallback = basename(dirname(module)).toLowerCase();
    const following = new ChangeProgress(shell);
    const deployed = await following.run(client, (progress) => {
      following.say(`bundling ${module}`);
      return deployModule({ module, app, fallback, weight, waitMs: wait }, client, {
        ...progress,
        bundled: (bytes) => following.say(`bundled: ${Math.ceil(bytes / 1024)} KiB; uploading`),
        warned: (warning) => shell.err(`warning: ${warning}`),
        sending: ({ count, of }) =>
          following.say(`static files: sending ${count} of ${of}, compressed ones too`),
      });
    });
    await warnOfUnset(client, deployed.app, shell);
    return showDeployed(deployed, args, shell);
  },
};

/**
 * Warns of secrets without a value: a handler that reads one fails, and whoever deploys can do something about it now.
 */
async function warnOfUnset(client: AdminClient, app: string, shell: Shell): Promise<void> {
  const listed = await client.secrets(app).catch(() => []); // a token that may deploy need not be allowed to list them
  for (const { name, setMs, declared } of listed) {
    if (!declared || setMs !== null) continue;
    shell.err(`warning: secret ${name} has no value yet: sojourn secrets ${app} set ${name}`);
  }
}

function appName(args: Parsed): string | undefined {
  const app = args.text("app");
  if (app !== undefined && !APP_NAME.test(app)) {
    throw new UsageError(`--app takes a name like guestbook, matching ${APP_NAME.source}, not ${app}`);
  }
  return app;
}

async function findModule(named: string): Promise<string> {
  const path = resolve(named);
  for (const candidate of [path, join(path, MODULE_DEFAULT)]) {
    const found = await stat(candidate).catch(() => null); // absent, or not readable: the same to the user
    if (found?.isFile() === true) return candidate;
  }
  throw new AdminError("module_unknown", `${path} is no module and no folder with ${MODULE_DEFAULT}`);
}
