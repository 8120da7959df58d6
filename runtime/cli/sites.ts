/**
 * `sojourn sites`: lists the sites, and changes who belongs to the tree.
 */
import { admittedSchema, removedSchema } from "../deploy/answers.ts";
import { show } from "./apps.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import { type Command, EXIT, type ExitCode, type Parsed, type Shell, UsageError } from "./command.ts";

/** `sojourn sites [remove SITE [--force] | add SITE]` */
export const sites: Command = {
  name: "sites",
  usage: "[remove SITE [--force] | add SITE]",
  summary: [
    "Lists the sites of the cluster, root first. `remove` takes a site that will never come back off the tree: what",
    "it had not pushed is lost, and sessions that saw such things are told so. A site that is connected is only",
    "removed with --force. `add` lets a removed site in again, with an empty data folder.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    force: { type: "boolean", says: "remove a site although it is connected" },
  },
  verbs: { at: 0, names: ["remove", "add"] },
  words: [0, 2],
  async run(args, shell) {
    const [verb, site] = args.words;
    if (verb === undefined) return await list(args, shell);
    if (verb !== "remove" && verb !== "add") throw new UsageError(`sites has remove and add, not ${verb}`);
    if (site === undefined) throw new UsageError(`${verb} takes the site's id`);
    return await (verb === "remove" ? remove : add)(site, args, shell);
  },
};

async function list(args: Parsed, shell: Shell): Promise<ExitCode> {
  const rows = await (await findCluster(args, shell)).sites();
  const cells = rows.map((row) => [row.id, row.tier, row.parent ?? "-", row.url]);
  return show(rows, args, shell, { head: ["site", "tier", "parent", "url"], cells, none: "no sites" });
}

const pathOf = (site: string): string => `/sites/${encodeURIComponent(site)}`;

async function remove(site: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const query = args.flag("force") ? "?force=1" : "";
  const removed = removedSchema.parse(await client.call("DELETE", pathOf(site) + query));
  if (args.json) shell.out(JSON.stringify(removed));
  else {
    const until = removed.keptUntilMs === null ? "nothing" : new Date(removed.keptUntilMs).toISOString();
    shell.out(`${site} is removed; the root has what it knew until ${until}`);
    if (removed.pending !== null && removed.pending > 0) {
      shell.out(`  ${removed.pending} rows that it had not pushed are lost`);
    }
  }
  return EXIT.done;
}

async function add(site: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const admitted = admittedSchema.parse(await client.call("POST", `${pathOf(site)}/admit`));
  if (args.json) shell.out(JSON.stringify(admitted));
  else shell.out(`${site} may join again: start it with an empty data folder`);
  return EXIT.done;
}
