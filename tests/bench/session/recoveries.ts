/**
 * How long a stateful session takes to be back (CESSNA, figures 4 to 6), at real sites: its isolate killed, with one or
 * 2,000 sessions in it, and its whole site killed. State of several sizes, as the paper's blind forwarder has it, and 50
 * messages to replay.
 */
import type { BenchContext } from "../bench.ts";
import { runCli } from "../../../runtime/cli/mod.ts";
import type { TestCluster } from "../../e2e/cluster.ts";
import { type BenchRecord, record, type Target } from "../record.ts";
import { atSites, connect, isRunning, statefulIsolates, untilAnswered, youngest } from "./real_sites.ts";

/** As in the paper. */
const REPLAYED = 50;
/** Megabytes that one handler adds: more takes longer than a handler may. */
const AT_ONCE = { bytes: 5, entries: 1 };
/** TARGETS: detection, which a killed process needs none of, 80 ms for the bytes at 1 Gbit/s, and 60. */
const REMOTE_10_MB_MS = 140;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const most = (value: number): Target => ({ of: "median", op: "<=", value });

/** A process waits for the loss of an isolate by then, with the app loaded (runtime/isolate, SPARE_AFTER_MS). */
const SPARE_READY_MS = 1_000;
/** A machine that has more to do starts it later. */
const SPARE_MS_MAX = 60_000;

/** Which processes of stateful sessions are ended: those that have sessions, or the one that waits, too. */
type Killed = "isolate" | "isolate and spare";

/**
 * Ends a site's isolates of stateful sessions, and waits until the site has taken note: a request that is sent before is
 * answered 502 `isolate_killed`, for all that the site knows it was what killed the isolate.
 */
async function killIsolates(pid: number, killed: Killed): Promise<void> {
  await pause(SPARE_READY_MS);
  let isolates = statefulIsolates(pid);
  for (
    const untilMs = performance.now() + SPARE_MS_MAX;
    isolates.length < 2 && performance.now() < untilMs;
  ) {
    await pause(100);
    isolates = statefulIsolates(pid);
  }
  if (isolates.length < 2) throw new Error("there is no isolate of stateful sessions, or none that waits");
  // What waits was started last.
  const spared = killed === "isolate" ? isolates.indexOf(youngest(isolates)) : -1;
  const dead = isolates.filter((_, i) => i !== spared);
  for (const isolate of dead) Deno.kill(isolate, "SIGKILL");
  while (dead.some(isRunning)) await pause(1);
}

/** Fills one session's state, and has it take a checkpoint and some messages after it, as CESSNA did. */
async function filled(
  cluster: TestCluster,
  [className, id]: readonly [className: string, id: string],
  megabytes: number,
  kind: "bytes" | "entries",
): Promise<void> {
  const asker = await connect(cluster, "edge-1");
  const path = `?s=${id}${className === "standing" ? "&standing" : ""}`;
  const each = Math.min(megabytes, AT_ONCE[kind]);
  for (let done = 0; done < megabytes; done += each) {
    await asker.ask(`/${kind}${path}&mb=${each}&from=${done * 100_000}`);
  }
  const { sequence = 0 } = (await shown(cluster, className, id)).at ?? {};
  for (let at = 0; at < sequence;) {
    for (let i = 0; i < REPLAYED; i++) await asker.insist(`/held${path}`);
    at = (await shown(cluster, className, id)).at?.checkpoint ?? 0;
  }
  for (let i = 0; i < REPLAYED; i++) await asker.insist(`/held${path}`);
  asker.close();
}

interface LocalCase {
  readonly name: string;
  readonly megabytes: number;
  readonly kind: "bytes" | "entries";
  readonly target?: Target;
}

const LOCAL: readonly LocalCase[] = [
  ...[1, 5].map((megabytes) => ({ name: "figure 6: local cold", megabytes, kind: "bytes" as const })),
  { name: "figures 4, 6: local cold", megabytes: 10, kind: "bytes", target: most(10) },
  { name: "figures 4, 6: local cold", megabytes: 10, kind: "entries", target: most(40) },
  { name: "figures 5, 6: local cold", megabytes: 35, kind: "bytes" },
];

/** An isolate is killed; the time to the session's next answer. */
async function local(cluster: TestCluster, context: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  const { pid } = await cluster.site("edge-1");
  for (const { name: figure, megabytes, kind, target } of context.quick ? LOCAL.slice(0, 1) : LOCAL) {
    const id = `${kind}-${megabytes}`;
    await filled(cluster, ["holder", id], megabytes, kind);
    const asker = await connect(cluster, "edge-1");
    for (const killed of ["isolate", "isolate and spare"] as const) {
      const samples: number[] = [];
      for (let run = 0; run < (context.quick ? 1 : 7); run++) {
        await killIsolates(pid, killed);
        samples.push(await asker.insist(`/held?s=${id}`));
      }
      const name = `${figure}, ${megabytes} MB of ${kind}, ${killed} killed`;
      context.say(`${name}: ${samples.map((ms) => ms.toFixed(0)).join(", ")} ms`);
      records.push(record({
        ...{ bench: "session", case: name, unit: "ms to the next answer", samples },
        comparable: !context.quick,
        ...target && killed === "isolate" && { target },
      }));
    }
    // All sizes in one isolate would be more than it may have.
    await asker.ask(`/dropped?s=${id}`);
    asker.close();
  }
  return records;
}

/** An isolate is killed that 2,000 sessions share. */
async function crowd(cluster: TestCluster, context: BenchContext): Promise<BenchRecord[]> {
  const sessions = context.quick ? 100 : 2_000;
  const { pid } = await cluster.site("edge-1");
  const askers = await Promise.all(Array.from({ length: 32 }, () => connect(cluster, "edge-1")));
  const all = async (): Promise<number[]> => {
    let next = 0;
    const begun = performance.now(), tookMs: number[] = [];
    await Promise.all(askers.map(async (asker) => {
      while (next < sessions) {
        await asker.insist(`/count?s=crowd-${next++}`);
        tookMs.push(performance.now() - begun);
      }
    }));
    return tookMs;
  };
  await all();
  const first: number[] = [], last: number[] = [], whole: number[] = [];
  for (let run = 0; run < (context.quick ? 1 : 5); run++) {
    whole.push(Math.max(...await all())); // what asking them takes by itself
    await killIsolates(pid, "isolate");
    const tookMs = await all();
    first.push(Math.min(...tookMs));
    last.push(Math.max(...tookMs));
  }
  for (const asker of askers) asker.close();
  const name = `isolate with ${sessions} stateful sessions killed`;
  context.say(
    `${name}: first ${first.map(Math.round)}, all ${last.map(Math.round)}, unkilled ${
      whole.map(Math.round)
    } ms`,
  );
  const of = { bench: "session", unit: "ms", comparable: !context.quick };
  return [
    record({ ...of, case: `${name}: the first is back`, samples: first, target: most(5) }),
    record({ ...of, case: `${name}: all are back, each asked once`, samples: last, target: most(200) }),
    record({ ...of, case: `${name}: asking them all, without a kill`, samples: whole }),
  ];
}

/** The process of a site is ended as by a power cut; the site is started again later, by the one that started it. */
async function killSite(cluster: TestCluster, site: string): Promise<number> {
  const { pid } = await cluster.site(site);
  const begun = performance.now();
  Deno.kill(pid, "SIGKILL");
  return begun;
}

interface RemoteCase {
  readonly name: string;
  readonly megabytes: number;
  /** A site runs the session along. */
  readonly isStanding: boolean;
  readonly target?: Target;
}

const REMOTE: readonly RemoteCase[] = [
  { name: "figure 4: hot standby", megabytes: 10, isStanding: true, target: most(4) },
  { name: "figures 4, 5: remote", megabytes: 10, isStanding: false, target: most(REMOTE_10_MB_MS) },
  { name: "figures 4, 5: remote", megabytes: 35, isStanding: false },
];

/** The home's site is killed; the time until the other edge has answered, which has a log of its own. */
async function remote(context: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const { name: figure, megabytes, isStanding, target } of context.quick ? [] : REMOTE) {
    const samples: number[] = [];
    for (let run = 0; run < 3; run++) {
      samples.push(
        await atSites(1, context, async (cluster) => {
          const className = isStanding ? "standing" : "holder";
          await filled(cluster, [className, "far"], megabytes, "bytes");
          if (isStanding) await standing(cluster);
          const { owners } = await shown(cluster, className, "far");
          const site = owners.find((owner) => owner !== "edge-1") ?? "edge-2";
          const url = `${cluster.url(site)}/stateful/held?s=far${isStanding ? "&standing" : ""}`;
          return await untilAnswered(url, await killSite(cluster, "edge-1"));
        }),
      );
    }
    const name = `${figure}, ${megabytes} MB of bytes, site killed`;
    context.say(`${name}: ${samples.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    records.push(record({
      ...{ bench: "session", case: `${name}: to the next answer elsewhere`, unit: "ms", samples },
      comparable: !context.quick,
      ...target && { target },
    }));
  }
  return records;
}

/** Waits until some site runs a session along. */
async function standing(cluster: TestCluster): Promise<void> {
  const headers = { authorization: `Bearer ${cluster.adminToken}` };
  const begun = performance.now();
  for (;;) {
    for (const site of ["edge-2", "edge-3"]) {
      const answer = await fetch(`${cluster.url(site)}/_sojourn/status`, { headers });
      const { stateful } = await answer.json() as { stateful: { standbys?: number } };
      if ((stateful.standbys ?? 0) > 0) return;
    }
    if (performance.now() - begun > 20_000) throw new Error("no site runs the session along");
    await pause(20);
  }
}

/** What operators are shown of a session. */
interface Shown {
  readonly owners: readonly string[];
  readonly at: { readonly sequence: number; readonly checkpoint: number } | null;
}

async function shown(cluster: TestCluster, className: string, id: string): Promise<Shown> {
  const out: string[] = [];
  const shell = { out: (text: string) => out.push(text), err: () => {}, env: () => undefined };
  const args = ["sessions", "show", "stateful", className, id, "--json"];
  const code = await runCli([...args, "--data", cluster.data], shell);
  if (code !== 0) throw new Error(`sojourn ${args.join(" ")} ended with ${code}`);
  return JSON.parse(out.join("")) as Shown;
}

/** The figures of all three. */
export const recoveries = async (context: BenchContext, given?: TestCluster): Promise<BenchRecord[]> => [
  ...await atSites(given ?? 0, context, async (cluster) => [
    ...await local(cluster, context),
    ...await crowd(cluster, context),
  ]),
  ...await remote(context),
];
