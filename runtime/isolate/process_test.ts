import { strict as assert } from "node:assert";
import { bootstrapFiles } from "./bootstrap_file.ts";
import { makeIsolatesFolder, removeIsolatesFolder } from "./isolates_folder.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { type IsolateProcess, startProcess } from "./process.ts";

async function withProcess(run: (process: IsolateProcess) => void): Promise<void> {
  const folder = await makeIsolatesFolder();
  const { heapMib, buffersMib } = DEFAULT_LIMITS;
  const process = await startProcess({
    bootstrap: (await bootstrapFiles()).serve,
    folder,
    heapMib,
    buffersMib,
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
function fieldOf(pid: number, field: number): number {
  const line = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[field - 3]);
}

const SESSION = 6;

Deno.test({
  name: "a process of an app is in a session of its own (P5)",
  ignore: Deno.build.os !== "linux",
  fn: () => withProcess(({ pid }) => assert.equal(fieldOf(pid, SESSION), pid)),
});
