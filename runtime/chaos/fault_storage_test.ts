import assert from "node:assert/strict";
import type { Key } from "../../store/model/key.ts";
import type { DiskCommit } from "../../store/model/ports.ts";
import { MemoryStorage } from "../storage/memory.ts";
import { FaultStorage } from "./fault_storage.ts";

const commit = (key: string, position: number): DiskCommit => ({
  rows: [{
    key: key as Key,
    value: new Uint8Array(1),
    clock: 1,
    replica: 1,
    position,
    known: 0,
    expiresAtMs: 0,
  }],
  drop: [],
  records: new Map(),
});

Deno.test("a storage that is full writes nothing more, and stays failed when there is room again (B1, B2)", async () => {
  const inner = new MemoryStorage();
  const storage = new FaultStorage(inner, "ok");
  await storage.commit(commit("a", 1));
  storage.state = "full";
  await assert.rejects(storage.commit(commit("b", 2)), { code: "disk_failed", message: /ENOSPC/ });
  assert.equal(await inner.get("b" as Key), undefined);
  assert.equal((await storage.get("a" as Key))?.position, 1, "what is there can be read");
  storage.state = "ok";
  await assert.rejects(storage.commit(commit("c", 2)), { code: "disk_failed" });
  await storage.close();
});

Deno.test("a storage that fails may have written what it refuses, and reads nothing (B1)", async () => {
  const inner = new MemoryStorage();
  const storage = new FaultStorage(inner, "fail");
  await assert.rejects(storage.get("a" as Key), { code: "disk_failed", message: /EIO/ });
  await assert.rejects(storage.commit(commit("a", 1)), { code: "disk_failed", message: /EIO/ });
  assert.equal((await inner.get("a" as Key))?.position, 1);
  await assert.rejects(storage.commit(commit("b", 2)), { code: "disk_failed" });
  assert.equal(await inner.get("b" as Key), undefined, "nothing after the first");
  await storage.close();
});
