/**
 * A soak: a cluster of processes, clients at all edges, one fault a round, and the clients' own records judged.
 *
 * Life: clients start, some writes → rounds (fault, some time, undone, some writes) → clients stop → the tree comes to rest → each client
 * reads everything at each edge → judged: the session guarantees, the root against all that was acknowledged, the
 * edges against the root.
 *
 * J1  What the clients recorded is all that the judges know.
 * J2  A site that ends by itself or does not come back, an edge that does not serve any more, and an answer that
 *     no fault explains are findings as well.
 * J3  The seed draws the faults and what clients do. It does not repeat a run exactly: processes and disks keep
 *     their own time.
 */
import { readCluster } from "../../runtime/cli/cluster.ts";
import { AdminClient } from "../../runtime/deploy/client.ts";
import { audit } from "../examples/board/audit.ts";
import { check } from "../examples/board/checker.ts";
import type { Edge } from "../examples/board/client.ts";
import { History } from "../examples/board/history.ts";
import type { Send } from "../examples/board/loader.ts";
import { Random } from "../examples/board/random.ts";
import { isReady, settle, type SiteAddress, siteStatus } from "../examples/board/site_status.ts";
import type { TestCluster } from "../e2e/cluster.ts";
import { emptyTally, SoakClient, type Tally } from "./client.ts";
import { drawFault, type Fault } from "./faults.ts";

/** What to run. */
export interface SoakOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly clients: number;
  /** Writes that are acknowledged before the first fault. */
  readonly writesFirst: number;
  /** No round begins after this long. */
  readonly msMax: number;
  readonly say: (line: string) => void;
  /** Only the guarantees are judged, without waiting for the tree to come to rest. */
  readonly guaranteesOnly?: boolean;
}

/** What came of it. */
export interface Soaked {
  readonly rounds: number;
  readonly seed: number;
  /** How often each kind of fault was drawn. */
  readonly faults: Readonly<Record<string, number>>;
  readonly sessions: number;
  readonly tally: Tally;
  /** Reads that were held against something. */
  readonly checked: number;
  readonly audited: { readonly rows: number; readonly counters: number };
  readonly findings: readonly string[];
  readonly ms: number;
  readonly history: History;
}

/** The module that clusters of a soak serve. */
export const SOAK_APP = new URL("./app.ts", import.meta.url).pathname;

/** A site that has not come back by then will not; a loaded machine starts one in ten seconds. */
const BACK_MS_MAX = 60_000;
/** Between two faults, so that there is something to lose, however slow the machine is. */
const WRITES_BETWEEN_MAX = 60;
const THINK_MS = 15;
/** After a request that got no answer. */
const RETRY_MS = 60;
const SETTLE_MS = 120_000;

/** Runs a soak on a cluster that serves {@link SOAK_APP}. */
export async function soak(cluster: TestCluster, options: SoakOptions): Promise<Soaked> {
  const begunMs = performance.now();
  const random = new Random(options.seed);
  const faultRandom = new Random(options.seed);
  const history = new History();
  const tally = emptyTally();
  const findings: string[] = [];
  const sites = await sitesOf(cluster);
  const edges = sites.filter((site) => site.tier === "edge").map(edgeOf);
  const stop = { now: false };
  const clients = Array.from(
    { length: options.clients },
    (_, i) => new SoakClient(`c${i}`, edges, history, random.fork(i), tally),
  );
  const living = clients.map((client, i) => live(client, random.fork(1000 + i), stop));
  const faults: Record<string, number> = {};
  let rounds = 0;
  try {
    await acknowledged(tally, options.writesFirst);
    for (; rounds < options.rounds && performance.now() - begunMs < options.msMax; rounds++) {
      const fault = drawFault(sites.map((site) => site.id), faultRandom);
      faults[fault.kind] = (faults[fault.kind] ?? 0) + 1;
      options.say(`round ${rounds + 1}: ${describe(fault)}; ${tally.requests} requests so far`);
      await suffer(cluster, fault);
      await acknowledged(tally, 1 + random.below(WRITES_BETWEEN_MAX));
    }
    await whole(cluster, true);
  } catch (error) {
    findings.push(`round ${rounds + 1}: ${error instanceof Error ? error.message : error}`);
  } finally {
    stop.now = true;
    await Promise.all(living);
  }
  options.say(`${rounds} rounds in ${(performance.now() - begunMs).toFixed(0)} ms; coming to rest`);
  const isWhole = options.guaranteesOnly !== true;
  if (isWhole && findings.length === 0) findings.push(...await rest(cluster, clients, edges));
  const judged = await judge(isWhole ? cluster : null, history, findings);
  if (isWhole) findings.push(...await differences(history, await sitesOf(cluster)));
  findings.push(...tally.unexpected, ...endedByThemselves(cluster.log()));
  const sessions = history.sessions.length;
  const ms = performance.now() - begunMs;
  return { rounds, seed: options.seed, faults, sessions, tally, ...judged, findings, ms, history };
}

const describe = (fault: Fault): string =>
  `${fault.begin.map((action) => JSON.stringify(action)).join(" ")} for ${fault.awayMs} ms`;

/** Sites that the dev process had to start again though nobody had killed them. */
const endedByThemselves = (log: string): string[] =>
  log.split("\n").filter((line) => /^\S+ ended \(.+\); it starts again in \d+ ms$/.test(line));

async function live(client: SoakClient, random: Random, stop: { now: boolean }): Promise<void> {
  while (!stop.now) {
    const answered = await client.step();
    await pause(answered ? random.exponential(THINK_MS) : RETRY_MS);
  }
}

/** One round: the fault, its time, its end, and everybody back. */
async function suffer(cluster: TestCluster, fault: Fault): Promise<void> {
  const file = await readCluster(cluster.data);
  if (file?.controlUrl === undefined) throw new Error("the dev process has no door for chaos");
  const door = new AdminClient({ url: file.controlUrl, token: file.adminToken });
  for (const action of fault.begin) await door.call("POST", "/chaos", action);
  await pause(fault.awayMs);
  for (const action of fault.end) await door.call("POST", "/chaos", action);
  await whole(cluster, fault.calm);
}

/** Waits until so many more writes are acknowledged. @throws Error when clients get nowhere. */
async function acknowledged(tally: Tally, count: number): Promise<void> {
  const wanted = tally.acknowledgedWrites + count;
  const untilMs = performance.now() + BACK_MS_MAX;
  while (tally.acknowledgedWrites < wanted) {
    if (performance.now() > untilMs) {
      throw new Error(`fewer than ${count} writes were acknowledged in ${BACK_MS_MAX} ms without a fault`);
    }
    await pause(20);
  }
}

/** Waits until all sites are ready, and, for a calm beginning, have their parents. @throws Error naming who lacks. */
async function whole(cluster: TestCluster, calm: boolean): Promise<void> {
  const untilMs = performance.now() + BACK_MS_MAX;
  for (;;) {
    const sites = await sitesOf(cluster);
    const lacking: string[] = [];
    await Promise.all(sites.map(async (site) => {
      if (!await isReady(site)) lacking.push(`${site.id} is not ready`);
      else if (calm) {
        const status = await siteStatus(site, cluster.adminToken).catch(() => null);
        if (status?.parent?.connected === false) lacking.push(`${site.id} has no parent`);
      }
    }));
    if (lacking.length === 0) return;
    if (performance.now() > untilMs) throw new Error(`after ${BACK_MS_MAX} ms ${lacking.join(", ")}`);
    await pause(50);
  }
}

/** The tree comes to rest, and each client reads everything at each edge, in an order of its own. */
async function rest(
  cluster: TestCluster,
  clients: readonly SoakClient[],
  edges: readonly Edge[],
): Promise<string[]> {
  try {
    await settle(await sitesOf(cluster), cluster.adminToken, SETTLE_MS);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
  const findings: string[] = [];
  await Promise.all(clients.map(async (client, i) => {
    for (let at = 0; at < edges.length; at++) {
      const edge = edges[(i + at) % edges.length];
      if (edge === undefined) continue;
      const untilMs = performance.now() + BACK_MS_MAX;
      while (!await client.readAllAt(edge)) {
        if (performance.now() > untilMs) {
          findings.push(`${edge.id} does not serve client ${i} any more`);
          return;
        }
        await pause(RETRY_MS);
      }
    }
  }));
  return findings;
}

/** Holds the records against the guarantees, and the root of a cluster, if there is one, against the records. */
export async function judge(
  cluster: TestCluster | null,
  history: History,
  findings: string[],
): Promise<Pick<Soaked, "checked" | "audited">> {
  const verdict = check(history);
  for (const { guarantee, session, operation, message } of verdict.violations) {
    const at = history.sessions[session]?.[operation]?.site ?? "?";
    findings.push(`${guarantee}: session ${session}, operation ${operation} at ${at}: ${message}`);
  }
  const audited = { rows: 0, counters: 0 };
  if (cluster === null) return { checked: verdict.checked, audited };
  try {
    const sites = await sitesOf(cluster);
    const root = sites.find((site) => site.parent === null);
    if (root === undefined) throw new Error("the cluster has no root");
    const found = await audit(history, new Map(), sendTo(root), cluster.adminToken);
    findings.push(...found.findings);
    Object.assign(audited, { rows: found.rows, counters: found.counters });
  } catch (error) {
    findings.push(`the audit could not be done: ${error instanceof Error ? error.message : error}`);
  }
  return { checked: verdict.checked, audited };
}

/** Rows and sums that an edge shows otherwise than the root once nothing is on its way. */
async function differences(history: History, sites: readonly SiteAddress[]): Promise<string[]> {
  const groups = new Set([...history.placements.values()].flat().map(({ group }) => group));
  const counters = new Set(history.sessions.flat().flatMap(({ added }) => added.map((each) => each.counter)));
  const names = [...counters].map((counter) => String((JSON.parse(counter) as string[])[1]));
  const paths = [
    ...[...groups].map((group) => `/groups/${group}`),
    ...names.flatMap((name) => [`/sums/${name}`, `/kv/${name}`]),
  ];
  const read = async (site: SiteAddress, path: string) => {
    try {
      return await (await sendTo(site)(path, {})).text();
    } catch (error) {
      return String(error);
    }
  };
  const findings: string[] = [];
  const root = sites.find((site) => site.parent === null);
  const edges = sites.filter((site) => site.tier === "edge");
  if (root === undefined) return ["the cluster has no root"];
  await Promise.all(edges.map(async (edge) => {
    for (const path of paths) {
      const wanted = await read(root, path);
      let found = "";
      const untilMs = performance.now() + BACK_MS_MAX;
      while ((found = await read(edge, path)) !== wanted && performance.now() < untilMs) await pause(50);
      if (found !== wanted) findings.push(`${edge.id} shows ${path} as ${found}, the root as ${wanted}`);
    }
  }));
  return findings;
}

async function sitesOf(cluster: TestCluster): Promise<readonly SiteAddress[]> {
  return (await readCluster(cluster.data))?.sites ?? [];
}

const sendTo = (site: SiteAddress): Send => (path, init) => fetch(new URL(`/soak${path}`, site.url), init);
const edgeOf = (site: SiteAddress): Edge => ({ id: site.id, send: sendTo(site) });

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
