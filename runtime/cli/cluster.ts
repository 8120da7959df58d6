/**
 * Address of the cluster that a command talks to: `--to`, else SOJOURN_URL, else the cluster file that `dev` writes.
 * The token is SOJOURN_TOKEN's, else the cluster file's.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AdminClient, type AdminTarget } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { pause } from "../observe/pause.ts";
import type { OptionSpec, Parsed, Shell } from "./command.ts";
import { UsageError } from "./command.ts";

/** Folder in which `dev` keeps its sites unless told otherwise. */
export const DATA_DEFAULT = ".sojourn";
/** Name of the file in the data folder that tells commands of the cluster. */
export const CLUSTER_FILE = "cluster.json";

const clusterSchema = z.object({
  pid: z.number(),
  adminToken: z.string(),
  /** URL of the dev process's own door (runtime/dev/control.ts). */
  controlUrl: z.url().optional(),
  sites: z.array(z.object({
    id: z.string(),
    parent: z.string().nullable(),
    tier: z.string(),
    url: z.url(),
    pid: z.number(),
  })).min(1),
});

/** Contents of {@link CLUSTER_FILE}, which `dev` writes. */
export type ClusterFile = z.infer<typeof clusterSchema>;

/** Options of every command that talks to a cluster. */
export const CLUSTER_OPTIONS: Record<string, OptionSpec> = {
  to: {
    type: "string",
    value: "URL",
    says: "any site of the cluster (else SOJOURN_URL, else the dev cluster's)",
  },
  data: { type: "string", value: "DIR", says: `the dev cluster's folder, ${DATA_DEFAULT} by default` },
};

/** Milliseconds of a probe: long enough for a busy site on loopback, short enough to go on to the next one. */
const PROBE_MS = 2000;

/**
 * Milliseconds in which a site says something: one across an ocean, busy, over a link that loses, does; past this it
 * stands still, and would be waited for for ever.
 */
const AWAKE_MS = 5_000;

/**
 * Returns a client of the cluster that the arguments and the environment name. @throws AdminError where none answers.
 */
export async function findCluster(args: Parsed, shell: Shell): Promise<AdminClient> {
  return new AdminClient(await findSite(args, shell));
}

/** Returns a site of that cluster, and the token for it. @throws AdminError where none answers. */
export async function findSite(args: Parsed, shell: Shell): Promise<AdminTarget> {
  const token = shell.env("SOJOURN_TOKEN");
  const named = args.text("to") ?? shell.env("SOJOURN_URL");
  if (named !== undefined) {
    if (!URL.canParse(named)) {
      throw new UsageError(`${JSON.stringify(named)} is no URL like http://host:8000`);
    }
    await assertAwake(named);
    return { url: named, token };
  }
  const data = args.text("data") ?? DATA_DEFAULT;
  const cluster = await readCluster(data);
  if (cluster === null) {
    throw new AdminError(
      "cluster_unknown",
      `no cluster is known: start one with \`deno task dev\`, give --data where it runs with one, or --to URL (${
        join(data, CLUSTER_FILE)
      } is absent)`,
    );
  }
  const url = await firstAlive(cluster.sites.map((site) => site.url));
  if (url === null) {
    throw new AdminError("site_unreachable", `no site of the cluster in ${join(data, CLUSTER_FILE)} answers`);
  }
  return { url, token: token ?? cluster.adminToken };
}

/** Milliseconds between looks for a site that answers. */
const AGAIN_MS = 1_000;

/** Waits for a site that answers, whenever that is; null where the command was interrupted before. */
export async function findClusterAgain(
  args: Parsed,
  shell: Shell,
  stop: AbortSignal,
): Promise<AdminClient | null> {
  while (!stop.aborted) {
    const client = await findCluster(args, shell).catch(() => null);
    const isThere = await client?.apps().then(() => true, () => false);
    if (client !== null && isThere === true) return client;
    await pause(AGAIN_MS, stop);
  }
  return null;
}

/**
 * Reads the dev cluster's file, or returns null where there is none. @throws AdminError where the file is no cluster
 * file.
 */
export async function readCluster(data: string): Promise<ClusterFile | null> {
  const path = join(data, CLUSTER_FILE);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch {
    return null;
  }
  try {
    return clusterSchema.parse(JSON.parse(text));
  } catch (error) {
    const message = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new AdminError("cluster_file_invalid", `${path} is no cluster file: ${message}`);
  }
}

/** Throws for a site that takes connections and never says a word; any other fault shows in the call itself. */
async function assertAwake(url: string): Promise<void> {
  try {
    const answer = await fetch(new URL("/_sojourn/healthz", url), { signal: AbortSignal.timeout(AWAKE_MS) });
    await answer.body?.cancel();
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "TimeoutError")) return;
    throw new AdminError(
      "site_unreachable",
      `no site answers at ${url}: nothing came within ${AWAKE_MS / 1000} s`,
    );
  }
}

/** Returns the first site that answers: the root is listed first, and another forwards to it once it is back. */
async function firstAlive(urls: readonly string[]): Promise<string | null> {
  for (const url of urls) {
    try {
      const answer = await fetch(new URL("/_sojourn/healthz", url), {
        signal: AbortSignal.timeout(PROBE_MS),
      });
      await answer.body?.cancel();
      if (answer.ok) return url;
    } catch {
      continue; // down, or too slow: the next one
    }
  }
  return null;
}
