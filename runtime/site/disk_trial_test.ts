import { strict as assert } from "node:assert";
import { diskWorks } from "./disk_trial.ts";

/** Runs with timers that go off at once, and counts files that are synced. */
async function tried(folder: string): Promise<number> {
  const { setTimeout } = globalThis, { syncData } = Deno.FsFile.prototype;
  let synced = 0;
  globalThis.setTimeout = ((run: () => void) => setTimeout(run, 0)) as typeof setTimeout;
  Deno.FsFile.prototype.syncData = function (this: Deno.FsFile) {
    synced += this.statSync().size;
    return syncData.call(this);
  };
  try {
    await diskWorks(folder, new AbortController().signal);
    return synced;
  } finally {
    globalThis.setTimeout = setTimeout;
    Deno.FsFile.prototype.syncData = syncData;
  }
}

Deno.test("a disk works when what was written there is synced, and nothing of the trial is left (T1)", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-trial-" });
  try {
    assert.equal(await tried(folder), 4 * 1024 * 1024);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
