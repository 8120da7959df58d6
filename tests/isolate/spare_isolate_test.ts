/** The process that waits for the loss of an isolate of stateful sessions. */
import { strict as assert } from "node:assert";
import { statefulBootstrap } from "../../runtime/isolate/bootstrap_file.ts";
import { makeIsolatesFolder } from "../../runtime/isolate/isolates_folder.ts";
import { DEFAULT_LIMITS } from "../../runtime/isolate/limits.ts";
import type { IsolateProcess } from "../../runtime/isolate/process.ts";
import { SpareProcess } from "../../runtime/isolate/spare_process.ts";

const SMALLER = { ...DEFAULT_LIMITS, heapMib: DEFAULT_LIMITS.heapMib / 2 };

/** Resolves when so many processes were asked for. */
async function withSpare(
  run: (
    spare: SpareProcess,
    started: (count: number) => Promise<void>,
    taken: IsolateProcess[],
  ) => Promise<void>,
): Promise<void> {
  const folder = await makeIsolatesFolder();
  const bootstrap = await statefulBootstrap();
  let starts = 0;
  const spare = new SpareProcess(() => {
    starts++;
    return Promise.resolve({ bootstrap, folder });
  }, 1);
  const started = async (count: number) => {
    for (let i = 0; i < 2_000 && starts < count; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(starts, count);
  };
  const taken: IsolateProcess[] = [];
  try {
    await run(spare, started, taken);
  } finally {
    await spare.close();
    for (const process of taken) {
      process.kill();
      await process.exited;
      process.release();
    }
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a process waits behind each that was taken, and is given next", () =>
  withSpare(async (spare, started, taken) => {
    taken.push(await spare.take(DEFAULT_LIMITS));
    await started(2);
    taken.push(await spare.take(DEFAULT_LIMITS));
    await started(3); // the one that waits now; none was started for the second
    assert.notEqual(taken[0]?.pid, taken[1]?.pid);
  }));

/** Of this process. */
const children = async (): Promise<number[]> => {
  const { stdout } = await new Deno.Command("ps", { args: ["--ppid", `${Deno.pid}`, "-o", "pid=,stat="] })
    .output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  return lines.filter((line) => !line.includes("Z")).map((line) => Number(line.trim().split(/\s+/)[0]));
};

Deno.test("one that has ended while it waited, or has other sizes, is not given", () =>
  withSpare(async (spare, started, taken) => {
    const before = await children();
    const first = await spare.take(DEFAULT_LIMITS);
    taken.push(first);
    await started(2);
    const waits = async () => (await children()).find((pid) => !before.includes(pid) && pid !== first.pid);
    let dead: number | undefined;
    while ((dead = await waits()) === undefined);
    // It may be about to connect: then it is one that can't be started.
    Deno.kill(dead, "SIGKILL");
    while ((await children()).includes(dead));
    taken.push(await spare.take(DEFAULT_LIMITS));
    assert.ok(taken.every(({ pid }) => pid !== dead));
    await started(4); // one in its place, and the next
    taken.push(await spare.take(SMALLER));
    await started(6); // so, too
    taken.push(await spare.take(SMALLER));
    await started(7);
    await spare.close();
    taken.push(await spare.take(SMALLER));
    await started(8); // after it was closed nothing waits
  }));
