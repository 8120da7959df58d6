/** `sojourn sites`: lists the sites, and changes the tree's membership. */
import { admittedSchema, believedSchema, drainedSchema, removedSchema } from "../deploy/answers.ts";
import { show } from "./apps.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import { moveSite } from "./move_site.ts";
import { siteStates, stateText } from "./site_states.ts";
import { WAIT_OPTIONS } from "./waiting.ts";
import { type Command, EXIT, type ExitCode, type Parsed, type Shell, UsageError } from "./command.ts";

/** `sojourn sites [remove SITE [--force] | add SITE | drain SITE [--for TIME] | clock SITE | move SITE PARENT …]` */
export const sites: Command = {
  name: "sites",
  usage:
    "[remove SITE [--force] | add SITE | drain SITE [--for TIME] | clock SITE | move SITE PARENT [--lost SITES]]",
  summary: [
    "Lists the sites of the cluster, root first, and whether each answers. `remove` takes a site that will never come back off the tree: what",
    "it had not pushed is lost, and sessions that saw such things are told so. A site that is connected is only",
    "removed with --force; so is one that was drained, as long as its disk has what is needed.",
    "`add` lets a removed site in again, with an empty data folder. `drain` stops a site as",
    "planned: it takes no requests any more, pushes what is pending and tells the others until when it is away, so",
    "that its sessions go on elsewhere with nothing to carry; then its process ends. Exit 3 where rows stayed there.",
    "`move` gives a site, and all that is below it, another parent; requests go on meanwhile. The old parent, or those",
    "it was the parent of, are asked for what only they have: name with --lost who is gone for good. Exit 3 where it",
    "has not joined in time. `clock` vouches for the clock of a site's machine, as it is now: a clock that has leapt is",
    "not believed by itself. Look at it before: a site whose clock is more than a minute ahead is refused by others.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    for: {
      type: "string",
      value: "TIME",
      says: "how long a drained site is away: 90s, 10m, 2h, 1d; 10m by default",
    },
    force: { type: "boolean", says: "remove a site although it is connected, or its disk still needed" },
    lost: {
      type: "string",
      value: "SITES",
      says: "sites that nobody waits for when a site is moved: core-1,edge-7",
    },
    ...WAIT_OPTIONS,
  },
  verbs: { at: 0, names: ["remove", "add", "drain", "clock", "move"] },
  words: [0, 3],
  async run(args, shell) {
    const [verb, site, parent] = args.words;
    if (verb === undefined) return await list(args, shell);
    const run = VERBS[verb];
    if (verb === "move") {
      if (site === undefined || parent === undefined) {
        throw new UsageError("move takes the site's id and its new parent's");
      }
      return await moveSite(site, parent, args, shell);
    }
    if (run === undefined) throw new UsageError(`sites has remove, add, drain, clock and move, not ${verb}`);
    if (site === undefined || parent !== undefined) throw new UsageError(`${verb} takes the site's id`);
    return await run(site, args, shell);
  },
};

async function list(args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const [sites, states] = await Promise.all([client.sites(), siteStates(client)]);
  const rows = sites.map((row) => ({ ...row, ...states.get(row.id) ?? { up: false, silentMs: null } }));
  const cells = rows.map((row) => [row.id, row.tier, row.parent ?? "-", stateText(row), row.url]);
  return show(rows, args, shell, {
    head: ["site", "tier", "parent", "state", "url"],
    cells,
    none: "no sites",
  });
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

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

async function drain(site: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const text = args.text("for") ?? "10m";
  const [, count = "", unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const forMs = Number(count) * (UNIT_MS[unit] ?? 0);
  if (forMs === 0) {
    throw new UsageError(`--for takes a time like 90s, 10m, 2h or 1d, not ${JSON.stringify(text)}`);
  }
  const client = await findCluster(args, shell);
  const drained = drainedSchema.parse(await client.call("POST", `${pathOf(site)}/drain?forMs=${forMs}`));
  if (args.json) shell.out(JSON.stringify(drained));
  else {
    shell.out(`${site} is drained and stops; it is away until ${new Date(drained.untilMs).toISOString()}`);
    if (drained.sole.length > 0) {
      const sole = drained.sole.map(({ what, count }) => `${what} (${count})`).join(", ");
      shell.out(`  on its disk alone: ${sole}; keep it`);
    }
    if (!drained.complete) {
      shell.err(`${drained.pending} rows stay on its disk: the root could not be reached`);
    }
  }
  return drained.complete ? EXIT.done : EXIT.partly;
}

async function clock(site: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const believed = believedSchema.parse(await client.call("POST", `${pathOf(site)}/clock`));
  if (args.json) shell.out(JSON.stringify(believed));
  else if (believed.aheadMs === 0) shell.out(`${site} had no doubt of its clock`);
  else {
    const way = believed.aheadMs > 0 ? "ahead of" : "behind";
    const seconds = Math.abs(believed.aheadMs) / 1_000;
    shell.out(`${site} goes by its clock, which is ${seconds} s ${way} what it went by`);
  }
  return EXIT.done;
}

const VERBS: Readonly<Record<string, typeof remove | undefined>> = { remove, add, drain, clock };
