/** What homes ask of the keepers of their own site, where its disk gives nothing any more. */
import { strict as assert } from "node:assert";
import { Keepers, loadDisk } from "../../../../functions/sessions/log/keepers.ts";
import { GroupCommit } from "../../../../functions/sessions/log/group_commit.ts";
import { ownLogs } from "../../../../functions/sessions/home/own_logs.ts";
import { MemoryRows, MemoryStorage } from "../../../../runtime/storage/memory.ts";

const NAME = { app: "shop", class: "cart", id: "a" };
const clock = {
  nowMs: () => 0,
  steadyMs: () => 0,
  after: () => () => {},
  turn: () => Promise.resolve(),
};

Deno.test("a disk that fails says so, and gives no base, which would be taken for a log without one", async () => {
  const storage = new MemoryStorage(new MemoryRows());
  const loaded = await loadDisk(storage, { bytes: (length) => new Uint8Array(length).fill(1) }, () => 0);
  const failing = Object.create(storage, {
    commit: { value: () => Promise.reject(new Error("no space left")) },
  }) as MemoryStorage;
  const fatal: string[] = [], unread: string[] = [];
  const disk = new GroupCommit(
    { storage: failing, clock, fatal: ({ message }) => void fatal.push(message) },
    loaded.position,
  );
  const keepers = new Keepers({
    ...{ storage, disk, nowMs: () => 0, fenced: () => {}, openOf: () => 0, changed: () => {} },
  }, loaded);
  await assert.rejects(disk.durable(), /no space left/);
  const logs = ownLogs(keepers, "edge-1", ({ message }) => void unread.push(message));
  let answered = false;
  void Promise.resolve(logs.base(NAME)).then(() => answered = true);
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual([answered, fatal, unread], [false, ["no space left"], ["no space left"]]);
});
