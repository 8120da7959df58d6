/** One case of the benchmark: ours and its peers under the same load, one after another, in fresh processes. */
import type { BenchContext } from "../bench.ts";
import { cpuMs } from "../cpu.ts";
import { runFresh } from "../fresh.ts";
import { probeFsync } from "../machine.ts";
import { type BenchRecord, record } from "../record.ts";
import type { LoadInput, LoadResult } from "./load.ts";
import type { Server } from "./server.ts";

const LOAD = new URL("./load.ts", import.meta.url);

/** What is put under load. */
export interface Contender {
  readonly name: string;
  start(): Promise<Server>;
  /** Path with `{session}`; Sojourn's own sessions travel in their tokens. */
  readonly path: string;
}

/** What one run of a contender gave. */
export interface Sample extends LoadResult {
  readonly cpuMicros: number;
}

/** A load, and who bears it. */
export interface Case {
  /** Whose records they are; `http` where nothing is said. */
  readonly bench?: string;
  readonly name: string;
  readonly connections: number;
  readonly sessions: number;
  readonly ours: Contender;
  /** `target`: at least so many times the peer's throughput. */
  readonly peers: readonly (Contender & { readonly target?: number })[];
  /** Passes, and how long each is; five of two and six seconds where nothing is said. */
  readonly runs?: number;
  readonly warmMs?: number;
  readonly runMs?: number;
}

/** Runs one contender once. */
export async function sample(contender: Contender, plan: Case, quick: boolean): Promise<Sample> {
  const server = await contender.start();
  try {
    const input: LoadInput = {
      hostname: "127.0.0.1",
      port: server.port,
      path: server.prefix + contender.path,
      connections: plan.connections,
      sessions: plan.sessions,
      warmMs: quick ? 300 : plan.warmMs ?? 2_000,
      runMs: quick ? 700 : plan.runMs ?? 6_000,
    };
    const before = await cpuMs(server.pids);
    const result = await runFresh({ name: contender.name, script: LOAD, input }) as LoadResult;
    const after = await cpuMs(server.pids);
    if (result.errors > 0) {
      throw new Error(`${contender.name}: ${result.errors} of ${result.requests} failed`);
    }
    const used = after.reduce((sum, ms, i) => sum + ms - (before[i] ?? 0), 0);
    return { ...result, cpuMicros: used * 1000 / result.total };
  } finally {
    await server.stop();
  }
}

/** Runs a case: an odd number of passes, each in the other order. A peer that does not run is left out. */
export async function runCase(plan: Case, context: BenchContext): Promise<BenchRecord[]> {
  const runs = context.quick ? 1 : plan.runs ?? 5;
  let all: readonly Contender[] = [plan.ours, ...plan.peers];
  const samples = new Map<string, Sample[]>(all.map(({ name }) => [name, []]));
  const fsyncMs: number[] = [];
  for (let run = 0; run < runs; run++) {
    for (const contender of run % 2 === 0 ? all : all.toReversed()) {
      const one = await attempt(contender, plan, context);
      if (one === null) {
        all = all.filter((other) => other !== contender);
        samples.delete(contender.name);
        continue;
      }
      samples.get(contender.name)?.push(one);
      const probe = await probeFsync(context.folder);
      fsyncMs.push(probe.medianMs);
      context.say(
        `${plan.name} ${contender.name}: ${Math.round(one.perSecond)}/s, p50 ${one.p50Ms.toFixed(2)} ms, ` +
          `p99 ${one.p99Ms.toFixed(2)} ms, ${one.cpuMicros.toFixed(1)} µs CPU; ` +
          `fsync ${probe.medianMs.toFixed(2)} ms`,
      );
    }
  }
  return [
    ...figures(plan, samples, !context.quick),
    record({ bench: plan.bench ?? "http", case: plan.name, unit: "ms fsync beside it", samples: fsyncMs }),
  ];
}

/** null: the peer does not run here. Ours has to. */
async function attempt(contender: Contender, plan: Case, context: BenchContext): Promise<Sample | null> {
  try {
    return await sample(contender, plan, context.quick);
  } catch (error) {
    if (contender === plan.ours) throw error;
    const why = error instanceof Error ? error.message : String(error);
    context.say(`${plan.name} ${contender.name} is left out, it did not run: ${why}`);
    return null;
  }
}

function figures(plan: Case, samples: ReadonlyMap<string, Sample[]>, comparable: boolean): BenchRecord[] {
  const of = (name: string, field: keyof Sample) => (samples.get(name) ?? []).map((one) => one[field]);
  const ours = plan.ours.name;
  const base = { bench: plan.bench ?? "http", case: plan.name };
  const records = [
    record({ ...base, unit: "ms p50", samples: of(ours, "p50Ms") }),
    record({ ...base, unit: "ms p99", samples: of(ours, "p99Ms") }),
  ];
  for (const { name, target } of plan.peers) {
    if (!samples.has(name)) continue;
    records.push(record({
      ...base,
      unit: "requests/s",
      samples: of(ours, "perSecond"),
      peer: { name, samples: of(name, "perSecond") },
      comparable,
      ...(target === undefined ? {} : { target: { of: "ratio", op: ">=", value: target } as const }),
    }));
    records.push(record({
      ...base,
      unit: "CPU µs/request",
      samples: of(ours, "cpuMicros"),
      peer: { name, samples: of(name, "cpuMicros") },
    }));
  }
  return records;
}
