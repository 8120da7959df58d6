/**
 * A day and more of low load: whether what sites keep in memory and on disk stays flat.
 *
 * Each virtual minute is one second in which users come and go, then a nap of 59: all clocks jump, so that what
 * comes due by age does (collections, horizons, footprints, tokens), without the millions of idle marks between.
 * Each hour somebody crashes and starts again.
 *
 * E1  Rows, bytes and records on each disk do not grow after the first hours: the keys are a fixed set, and what
 *     was deleted is collected.
 * E2  The heap's least size within an hour does not grow.
 * E3  In the end all sites show what the root shows, and nothing is pending.
 */
import { COMPARE_ROWS_BYTES, HORIZON_MS, PENDING_BYTES_MAX, STEP_ROWS } from "../../store/model/limits.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { openReplica } from "../../store/replica.ts";
import { Client } from "./client.ts";
import type { HistoryEvent } from "./history.ts";
import { Keyspace } from "./keyspace.ts";
import { SimNetwork } from "./network.ts";
import { Probes } from "./probes.ts";
import { Draws } from "./random.ts";
import { SimSite } from "./site.ts";
import { drawPlan, NO_FAULTS, type Plan, type SitePlan } from "./topology.ts";
import { World } from "./world.ts";

/** What an hour left behind. */
export interface HourReport {
  readonly hour: number;
  readonly requests: number;
  /** Of all sites together. */
  readonly rows: number;
  readonly bytes: number;
  readonly records: number;
  readonly heapMb: number;
}

/** What a run of hours gives. */
export interface EnduranceReport {
  readonly hours: readonly HourReport[];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly findings: readonly string[];
}

const AWAKE_MS = 1_000;
const NAP_MS = 59_000;
const REQUESTS_A_MINUTE = 6;
/** Users stay for some minutes; a new one comes each minute. */
const USERS = 5;
const SETTLE_MS = 20_000;
const DOWN_MS = 200;
/** Growth that is none: what one hour has in flight and the other has not. */
const DISK_SLACK = 1.1;
const DISK_SLACK_ROWS = 20;
const HEAP_SLACK = 1.25;
const HEAP_SLACK_MB = 8;

/** root, two cores, two edges each. */
const SITES: readonly (readonly [SiteId, SiteId | null, number])[] = [
  ["root", null, 0],
  ["c1", "root", 1],
  ["c2", "root", 1],
  ["e1", "c1", 2],
  ["e2", "c1", 2],
  ["e3", "c2", 2],
  ["e4", "c2", 2],
];

function planOf(seed: number): Plan {
  const sites = SITES.map(([id, parent, depth]): SitePlan => ({
    id,
    parent,
    depth,
    tier: parent === null ? "root" : depth === 1 ? "core" : "edge",
    skewMs: 0,
    // Below what the keys take together: sites evict, and fetch again.
    capacityBytes: depth === 2 ? 4_000 : 1 << 30,
    linkMs: [1, 3],
    linkLoss: 0,
    linkBytesPerMs: Infinity,
    commitMs: [0.2, 1],
    readMs: null,
    drift: 0,
    owners: NO_OWNERS,
  }));
  return {
    ...drawPlan(seed),
    sites,
    groups: 6,
    keysPerGroup: 10,
    sumKeys: 0,
    valueBytes: 60,
    sessions: USERS,
    moveChance: 0.3,
    edgeShare: 1,
    oldTokenChance: 0,
    concurrency: 3,
    weights: { get: 4, getMany: 1, list: 2, set: 4, delete: 2, atomic: 1, checked: 1, sum: 0, expiring: 1 },
    faults: NO_FAULTS,
    noticeMs: [0, 20],
    lateChance: 0,
    crashes: [],
  };
}

class Endurance {
  readonly #plan: Plan;
  readonly #world = new World();
  readonly #draws: Draws;
  readonly #sites = new Map<SiteId, SimSite>();
  readonly #around;
  readonly #outcomes = new Map<string, number>();
  readonly #faults: string[] = [];
  /** Writes of values that expire. */
  readonly #expiring = new Set<number>();
  #clients: Client[] = [];
  #users = 0;

  constructor(seed: number) {
    this.#plan = planOf(seed);
    this.#draws = new Draws(`endurance ${seed}`);
    const plan = this.#plan;
    const parents = new Map(plan.sites.map(({ id, parent }) => [id, parent]));
    const network = new SimNetwork({
      world: this.#world,
      draws: this.#draws.fork("network"),
      parentOf: (site) => parents.get(site) ?? null,
      quality: () => ({ delayMs: [1, 3], lossChance: 0, bytesPerMs: Infinity }),
      window: 64,
      noticeMs: plan.noticeMs,
      lateChance: 0,
    });
    this.#around = {
      world: this.#world,
      network,
      keyspace: new Keyspace(plan),
      probes: new Probes(),
      plan,
      open: openReplica,
      keepChance: 0.5,
      horizonMs: HORIZON_MS,
      pendingBytesMax: PENDING_BYTES_MAX,
      compareRowsBytes: COMPARE_ROWS_BYTES,
      stepRows: STEP_ROWS,
      sites: this.#sites,
      counters: { requests: 0, issues: 0, writes: 0 },
      // A history of a day would be the largest thing in memory.
      record: (event: HistoryEvent) => this.#note(event),
      passed: () => {},
      serving: () => {},
    };
    for (const site of plan.sites) {
      this.#sites.set(site.id, new SimSite(site, this.#around, this.#draws.fork(`site ${site.id}`)));
    }
  }

  async run(hours: number, said: (hour: HourReport) => void): Promise<EnduranceReport> {
    for (const site of this.#sites.values()) void site.start();
    await this.#world.run(AWAKE_MS);
    const reports: HourReport[] = [];
    for (let hour = 0; hour < hours; hour++) {
      let heapMb = Infinity;
      for (let minute = 0; minute < 60; minute++) {
        await this.#minute();
        heapMb = Math.min(heapMb, Deno.memoryUsage().heapUsed / 2 ** 20);
      }
      await this.#restartOne();
      const report = { hour, requests: this.#around.counters.requests, heapMb, ...await this.#disks() };
      reports.push(report);
      said(report);
    }
    await this.#world.run(this.#world.nowMs + SETTLE_MS);
    const findings = [...this.#faults, ...this.#unsettled(), ...grown(reports)];
    return { hours: reports, outcomes: Object.fromEntries(this.#outcomes), findings };
  }

  #note(event: HistoryEvent): void {
    if (event.kind === "end") {
      this.#outcomes.set(event.outcome, (this.#outcomes.get(event.outcome) ?? 0) + 1);
      if (event.outcome.startsWith("fault")) this.#faults.push(event.outcome);
    }
    if (event.kind === "write") {
      for (const { write, what } of event.writes) if (what === "expiring") this.#expiring.add(write);
    }
    if (event.kind === "fault" && event.text.includes("fatal: ")) this.#faults.push(event.text);
  }

  async #minute(): Promise<void> {
    const world = this.#world;
    const number = this.#users++;
    this.#clients = [...this.#clients, new Client(number, this.#around, this.#draws.fork(`user ${number}`))]
      .slice(-USERS);
    const draws = this.#draws.fork(`minute ${number}`);
    for (let i = 0; i < REQUESTS_A_MINUTE; i++) {
      const client = draws.pick(this.#clients);
      world.after(draws.between(0, AWAKE_MS * 0.7), () => client.request(draws.fork(`request ${i}`)));
    }
    await world.run(world.nowMs + AWAKE_MS);
    world.sleptMs += NAP_MS;
    for (const site of this.#sites.values()) site.napped();
  }

  async #restartOne(): Promise<void> {
    const world = this.#world;
    const site = this.#draws.pick([...this.#sites.values()]);
    site.crash();
    await world.run(world.nowMs + DOWN_MS);
    void site.start();
    await world.run(world.nowMs + AWAKE_MS);
  }

  async #disks(): Promise<{ rows: number; bytes: number; records: number }> {
    const sums = { rows: 0, bytes: 0, records: 0 };
    for (const { process } of this.#sites.values()) {
      if (process === null) continue;
      sums.rows += process.storage.size;
      sums.bytes += await process.storage.bytes();
      sums.records += (await process.storage.load()).size;
    }
    return sums;
  }

  /** E3. */
  #unsettled(): string[] {
    const root = this.#sites.get("root")?.process?.storage;
    return [...this.#sites].flatMap(([id, { process }]) => {
      if (process === null || root === undefined) return [`${id} is not up`];
      const pending = process.replica.status().pending;
      const differs = process.storage.covered.values().toArray().filter((key) => {
        const [here, there] = [process.storage.rows.get(key), root.rows.get(key)];
        // What has expired is collected by each site at its own time.
        const isGone = (row: typeof here) =>
          row === undefined || row.write === null || this.#expiring.has(row.write);
        return here?.stamp !== there?.stamp && !(isGone(here) && isGone(there));
      });
      return [
        ...pending > 0 ? [`${id} has ${pending} rows to push`] : [],
        ...differs.length > 0 ? [`${id} differs from the root at keys ${differs}`] : [],
      ];
    });
  }
}

/** E1, E2: the last hours against those after the first quarter. */
export function grown(hours: readonly HourReport[]): string[] {
  const quarter = Math.max(1, Math.floor(hours.length / 4));
  if (hours.length < 2 * quarter + 1) return [];
  const before = hours.slice(quarter, 2 * quarter), after = hours.slice(-quarter);
  const most = (list: readonly HourReport[], of: (hour: HourReport) => number) => Math.max(...list.map(of));
  const findings: string[] = [];
  for (const name of ["rows", "bytes", "records"] as const) {
    const [then, now] = [most(before, (hour) => hour[name]), most(after, (hour) => hour[name])];
    if (now > then * DISK_SLACK + DISK_SLACK_ROWS) {
      findings.push(`${name} on disk grew from ${then} to ${now}`);
    }
  }
  const [then, now] = [most(before, ({ heapMb }) => heapMb), Math.min(...after.map(({ heapMb }) => heapMb))];
  if (now > then * HEAP_SLACK + HEAP_SLACK_MB) {
    findings.push(`the heap grew from ${then.toFixed(1)} to ${now.toFixed(1)} MB`);
  }
  return findings;
}

/** Runs hours of load. */
export async function endurance(
  hours: number,
  seed: number,
  said: (hour: HourReport) => void = () => {},
): Promise<EnduranceReport> {
  return await new Endurance(seed).run(hours, said);
}

/** `deno task sim --hours N`: prints the report as JSON; the exit code. */
export async function endure(hours: number, seed: number, say: (text: string) => void): Promise<number> {
  const started = performance.now();
  const report = await endurance(hours, seed, ({ hour, requests, rows, bytes, records, heapMb }) =>
    say(
      `hour ${
        hour + 1
      }: ${requests} requests, ${rows} rows of ${bytes} bytes and ${records} records on disk, ` +
        `heap ${heapMb.toFixed(1)} MB`,
    ));
  for (const finding of report.findings) say(finding);
  console.log(JSON.stringify({ ...report, ms: Math.round(performance.now() - started) }));
  return report.findings.length > 0 ? 1 : 0;
}
