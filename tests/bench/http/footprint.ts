/** What a site costs while nobody asks anything, and how long its beginnings take. */
import { join } from "node:path";
import { runFresh } from "../fresh.ts";
import { type BenchRecord, record } from "../record.ts";
import type { BenchContext } from "../bench.ts";
import { startCluster } from "../../e2e/cluster.ts";

const ROOT = join(import.meta.dirname ?? ".", "..", "..", "..");
const APP = join(ROOT, "tests", "bench", "apps", "load");
const COLD = new URL("./cold.ts", import.meta.url);
/** What starting allocated has been collected by then. */
const SETTLE_MS = 5_000;

/** A new isolate's first response, in a process of its own. */
export async function coldIsolates(context: BenchContext): Promise<BenchRecord[]> {
  const samples: number[] = [];
  for (let run = 0; run < (context.quick ? 1 : 3); run++) {
    const tookMs = await runFresh({
      name: "cold isolates",
      script: COLD,
      input: { isolates: context.quick ? 3 : 20 },
    }) as number[];
    samples.push(...tookMs);
    context.say(`a new isolate's first response: ${tookMs.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  }
  return [record({
    bench: "http",
    case: "new isolate, cold, to its first response",
    unit: "ms",
    samples,
    target: { of: "median", op: "<=", value: 50 },
    comparable: !context.quick,
  })];
}

interface Memory {
  readonly rssMb: number;
  /** Shared pages counted in parts. */
  readonly pssMb: number;
  /** What only this process has. */
  readonly ownMb: number;
}

/** Linux: sums over a process's mappings. */
function memoryOf(pid: number): Memory {
  const text = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) / 1024;
  return { rssMb: mb("Rss"), pssMb: mb("Pss"), ownMb: mb("Private_Clean") + mb("Private_Dirty") };
}

function childrenOf(parent: number): number[] {
  const out: number[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
      if (Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]) === parent) out.push(pid);
    } catch {
      // It ended between the listing and the read.
    }
  }
  return out;
}

/** A cluster of six sites: start, a deploy over a deploy, and what it holds in memory when it is idle. */
export async function cluster(context: BenchContext): Promise<BenchRecord[]> {
  const readyMs: number[] = [], redeployMs: number[] = [], commandMs: number[] = [];
  const sites: Memory[] = [], isolates: Memory[] = [], totals: number[] = [], commands: number[] = [];
  for (let run = 0; run < 3; run++) {
    await using six = await startCluster({ apps: [APP] });
    readyMs.push(six.readyMs);
    for (let n = 0; n < 3; n++) {
      const begunMs = performance.now();
      redeployMs.push(await redeploy(six.data, context.folder, `${run}${n}`));
      commandMs.push(performance.now() - begunMs);
    }
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    let total = 0;
    commands.push(memoryOf(six.pid).pssMb);
    for (const { pid } of Object.values(six.sites)) {
      const site = memoryOf(pid), below = childrenOf(pid).map(memoryOf);
      sites.push(site);
      isolates.push(...below);
      total += [site, ...below].reduce((sum, { pssMb }) => sum + pssMb, 0);
    }
    totals.push(total);
    context.say(`six sites: ready after ${six.readyMs.toFixed(0)} ms, ${total.toFixed(0)} MB`);
  }
  const base = { bench: "http" };
  const bound = (value: number) => ({ target: { of: "median", op: "<=", value } as const });
  const of = (all: readonly Memory[], field: keyof Memory) => all.map((one) => one[field]);
  return [
    record({ ...base, case: "six sites: dev to ready", unit: "ms", samples: readyMs, ...bound(3_000) }),
    record({
      ...base,
      case: "six sites: redeploy, last byte to last site",
      unit: "ms",
      samples: redeployMs,
      ...bound(1_000),
    }),
    record({ ...base, case: "six sites: redeploy, the whole command", unit: "ms", samples: commandMs }),
    record({ ...base, case: "idle site", unit: "MB RSS", samples: of(sites, "rssMb"), ...bound(150) }),
    record({ ...base, case: "idle site", unit: "MB PSS", samples: of(sites, "pssMb") }),
    record({
      ...base,
      case: "idle isolate",
      unit: "MB of its own",
      samples: of(isolates, "ownMb"),
      ...bound(15),
    }),
    record({ ...base, case: "idle isolate", unit: "MB PSS", samples: of(isolates, "pssMb") }),
    record({
      ...base,
      case: "six idle sites with their isolates and spares",
      unit: "MB PSS",
      samples: totals,
    }),
    record({ ...base, case: "the dev command beside them", unit: "MB PSS", samples: commands }),
  ];
}

/** Deploys the app again, changed; how long the slowest site took, from the last byte of the bundle on. */
async function redeploy(data: string, folder: string, change: string): Promise<number> {
  const module = join(folder, "redeployed.ts");
  await Deno.writeTextFile(
    module,
    `export default { name: "load", fetch: () => new Response(${JSON.stringify(change)}) };\n`,
  );
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--config",
      join(ROOT, "deno.json"),
      join(ROOT, "runtime", "main.ts"),
      ...["deploy", module, "--app", "load", "--json", "--data", data],
    ],
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  if (code !== 0) throw new Error(`the deploy ended with ${code}: ${text.decode(stderr)}`);
  const { sites } = JSON.parse(text.decode(stdout)) as { sites: { ms: number }[] };
  return Math.max(...sites.map(({ ms }) => ms));
}
