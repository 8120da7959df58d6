/** The process that waits for the loss of an isolate of stateful sessions. */
import { strict as assert } from "node:assert";
import { bootstrapFile } from "../../../runtime/isolate/bootstrap_file.ts";
import type { IsolateApp } from "../../../runtime/isolate/call.ts";
import { makeIsolatesFolder } from "../../../runtime/isolate/isolates_folder.ts";
import { DEFAULT_ISOLATE_LIMITS } from "../../../runtime/isolate/limits.ts";
import { endProcess, startProcess } from "../../../runtime/isolate/process.ts";
import { type Spare, SpareIsolate } from "../../../runtime/isolate/spare_isolate.ts";
import { StatefulIsolate } from "../../../runtime/isolate/stateful_isolate.ts";
import { appOf } from "./apps.ts";

const ANY = appOf("export default {};");
const SMALLER = appOf("export default {};", { limits: { heapMib: DEFAULT_ISOLATE_LIMITS.heapMib / 2 } });
const quiet = () => {};
const pidOf = (spare: Spare): number => spare.kind === "loaded" ? spare.isolate.pid : spare.process.pid;

interface Bench {
  readonly spare: SpareIsolate;
  /** Resolves when so many processes were asked for. */
  started(count: number): Promise<void>;
  readonly taken: Spare[];
  /** Of all that were started. */
  readonly pids: number[];
  /** What the next one is for. */
  likely: IsolateApp | null;
}

async function withSpare(run: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = await makeIsolatesFolder();
  const bootstrap = await bootstrapFile("stateful");
  let starts = 0;
  const until = async (is: () => boolean) => {
    for (let i = 0; i < 4_000 && !is(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const spare = new SpareIsolate({
    start: async (sizes) => {
      starts++;
      const process = await startProcess({ bootstrap, folder, ...sizes });
      bench.pids.push(process.pid);
      return process;
    },
    load: async (process, app, log) => {
      const isolate = new StatefulIsolate(process, app, log);
      const outcome = await isolate.load(await app.bundle(), { site: "edge-1", clockShare: 0 });
      if (outcome.kind === "loaded") return isolate;
      await isolate.close();
      throw new Error(outcome.message);
    },
    likely: () => bench.likely,
    afterMs: 1,
  });
  const bench: Bench = {
    spare,
    likely: null,
    ...{ taken: [], pids: [] },
    started: async (count) => {
      await until(() => starts >= count);
      assert.equal(starts, count);
    },
  };
  try {
    await run(bench);
  } finally {
    await spare.close();
    for (const one of bench.taken) {
      await (one.kind === "loaded" ? one.isolate.close() : endProcess(one.process));
    }
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a process waits behind each that was taken, and is given next", () =>
  withSpare(async ({ spare, started, taken }) => {
    const first = await spare.take(ANY, quiet);
    taken.push(first);
    await started(2);
    const second = await spare.take(ANY, quiet);
    taken.push(second);
    await started(3); // the one that waits now; none was started for the second
    assert.notEqual(pidOf(first), pidOf(second));
  }));

Deno.test("one that waits has its app where that can be told, says what it said when it is taken, and is no other's (SP2, SP3)", () =>
  withSpare(async (bench) => {
    const { spare, started, taken } = bench;
    const own = appOf('console.log("loads"); export default {};'), other = appOf("export default { a: 1 };");
    const lines: string[] = [];
    const log = (_: string, text: string) => void lines.push(text.trim());
    bench.likely = own;
    taken.push(await spare.take(own, log));
    await started(2);
    const loaded = await spare.take(own, log);
    taken.push(loaded);
    assert.equal(loaded.kind, "loaded");
    assert.deepEqual(lines, ["loads"]);
    await started(3);
    const others = await spare.take(other, log);
    taken.push(others);
    assert.equal(others.kind, "process");
    await started(5); // for the other, and the next
    assert.deepEqual(lines, ["loads"]);
  }));

Deno.test("one whose app does not load leaves the next to be started as if none had waited", () =>
  withSpare(async (bench) => {
    const { spare, started, taken } = bench;
    const broken = appOf('throw new Error("not today");');
    bench.likely = broken;
    taken.push(await spare.take(broken, quiet));
    await started(2);
    const next = await spare.take(broken, quiet);
    taken.push(next);
    assert.equal(next.kind, "process");
  }));

/** Of this process, those that have ended and of whose end it has not heard yet as well. */
const children = async (): Promise<number[]> => {
  const { stdout } = await new Deno.Command("ps", { args: ["--ppid", `${Deno.pid}`, "-o", "pid=,comm="] })
    .output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  const own = lines.filter((line) => !/\sps\b/.test(line)); // asks by itself
  return own.map((line) => Number(line.trim().split(/\s+/)[0]));
};

Deno.test("one that has ended while it waited, or has other sizes, is not given (SP2, SP1)", () =>
  withSpare(async ({ spare, started, taken }) => {
    const before = await children();
    const first = await spare.take(ANY, quiet);
    taken.push(first);
    await started(2);
    const waits = async () => (await children()).find((pid) => !before.includes(pid) && pid !== pidOf(first));
    let dead: number | undefined;
    while ((dead = await waits()) === undefined);
    // It may be about to connect: then it is one that can't be started.
    Deno.kill(dead, "SIGKILL");
    while ((await children()).includes(dead));
    await children(); // whoever was told of its end has acted on it
    taken.push(await spare.take(ANY, quiet));
    assert.ok(taken.every((one) => pidOf(one) !== dead));
    await started(4); // one in its place, and the next
    taken.push(await spare.take(SMALLER, quiet));
    await started(6); // so, too
    taken.push(await spare.take(SMALLER, quiet));
    await started(7);
    await spare.close();
    taken.push(await spare.take(SMALLER, quiet));
    await started(8); // after it was closed nothing waits
  }));

Deno.test("one waits before any was taken where it is kept, until it is released", () =>
  withSpare(async (bench) => {
    const { spare, started, taken } = bench;
    const app = appOf("export default {};");
    const { heapMib, buffersMib } = app.limits, sizes = { heapMib, buffersMib };
    bench.likely = app;
    spare.keep(sizes);
    spare.keep(sizes); // it is about to be started
    await started(1);
    spare.keep(sizes);
    const first = await spare.take(app, quiet);
    taken.push(first);
    assert.equal(first.kind, "loaded");
    await started(2); // behind it
    await until(() => Promise.resolve(bench.pids.length === 2));
    const behind = bench.pids.find((pid) => pid !== pidOf(first)) ?? 0;
    spare.release();
    await until(async () => !(await children()).includes(behind));
    assert.ok((await children()).includes(pidOf(first)));
    taken.push(await spare.take(app, quiet));
    await started(4); // none waited
    spare.release();
    spare.keep(sizes);
    await started(5);
  }));

Deno.test("one that is kept is another when it has ended, or another app is likely", () =>
  withSpare(async (bench) => {
    const { spare, started, pids } = bench;
    const { heapMib, buffersMib } = ANY.limits, sizes = { heapMib, buffersMib };
    bench.likely = ANY;
    spare.keep(sizes);
    await until(() => Promise.resolve(pids.length === 1));
    bench.likely = appOf("export default { a: 1 };");
    spare.keep(sizes);
    await started(2);
    await until(async () => pids.length === 2 && !(await children()).includes(pids[0] ?? 0));
    Deno.kill(pids[1] ?? 0, "SIGKILL");
    // Who is told of its end acts on it in his own time.
    await until(() => {
      spare.keep(sizes);
      return Promise.resolve(pids.length === 3);
    });
    await started(3);
  }));

async function until(is: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!await is()) {
    if (performance.now() > endMs) throw new Error("not within 20 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
