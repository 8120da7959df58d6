import { strict as assert } from "node:assert";
import { bootstrapFiles } from "./bootstrap_file.ts";
import { makeIsolatesFolder, removeIsolatesFolder } from "./isolates_folder.ts";
import { DEFAULT_ISOLATE_LIMITS } from "./limits.ts";
import { type IsolateProcess, startProcess } from "./process.ts";

async function withProcess(run: (process: IsolateProcess) => void, givesWay = false): Promise<void> {
  const folder = await makeIsolatesFolder();
  const { heapMib, buffersMib } = DEFAULT_ISOLATE_LIMITS;
  const process = await startProcess({
    bootstrap: (await bootstrapFiles()).serve,
    folder,
    heapMib,
    buffersMib,
    givesWay,
  });
  try {
    run(process);
  } finally {
    process.kill();
    await process.exited;
    process.release();
    await removeIsolatesFolder(folder);
  }
}

/** Of /proc/PID/stat, by the numbers of proc(5). */
function fieldOf(pid: number | string, field: number): number {
  const line = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[field - 3]);
}

const SESSION = 6;

Deno.test({
  name: "a process of an app is in a session of its own (P5)",
  ignore: Deno.build.os !== "linux",
  fn: () => withProcess(({ pid }) => assert.equal(fieldOf(pid, SESSION), pid)),
});

const NICE = 19;

/** How much all threads of a process give way, beside this one. */
function nicenesses(pid: number): Set<number> {
  const own = fieldOf(Deno.pid, NICE);
  return new Set(
    [...Deno.readDirSync(`/proc/${pid}/task`)].map(({ name }) => fieldOf(`${pid}/task/${name}`, NICE) - own),
  );
}

/** How much a session gives way where the kernel shares its cores among sessions; null where it does not. */
function sessionNice(pid: number): number | null {
  try {
    return Number(Deno.readTextFileSync(`/proc/${pid}/autogroup`).split(" ").at(-1)); // /autogroup-12 nice 10
  } catch {
    return null;
  }
}

Deno.test({
  name: "a process gives way with all its threads and as a session when it is told to, and no more (P7)",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    withProcess((process) => {
      assert.deepEqual([...nicenesses(process.pid)], [0]);
      assert.ok(process.giveWay(true));
      assert.deepEqual([...nicenesses(process.pid)], [10]);
      assert.equal(sessionNice(process.pid) ?? 10, 10);
      assert.ok(process.giveWay(false));
      assert.equal(sessionNice(process.pid) ?? 0, 0);
    }),
});

Deno.test({
  name: "a process may give way from its start (P7)",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    withProcess((process) => {
      assert.ok(process.startedGivingWay);
      assert.deepEqual([...nicenesses(process.pid)], [10]);
      assert.equal(sessionNice(process.pid) ?? 10, 10);
    }, true),
});

Deno.test("what was begun of a process that can't start is given back: its socket, and its path", async () => {
  const folder = await makeIsolatesFolder();
  // Its mark can't be made, whichever number it has.
  for (let i = 0; i < 256; i++) await Deno.writeTextFile(`${folder}/${Deno.pid}-${i}.mark`, "");
  const { heapMib, buffersMib } = DEFAULT_ISOLATE_LIMITS, { serve } = await bootstrapFiles();
  await assert.rejects(
    startProcess({ bootstrap: serve, folder, heapMib, buffersMib }),
    Deno.errors.AlreadyExists,
  );
  assert.deepEqual([...Deno.readDirSync(folder)].filter(({ name }) => name.endsWith(".sock")), []);
  await removeIsolatesFolder(folder); // and nothing is open any more, or this test fails
});
