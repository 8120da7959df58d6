/** Orders for queues: whose they are, and how long they hold. */
import assert from "node:assert/strict";
import { AppTable, Deployments } from "../../../runtime/deploy/mod.ts";
import { DeclaredQueues } from "../../../runtime/queues/declared_queues.ts";
import { MemorySystem } from "./memory_system.ts";

Deno.test("what an operator orders for a queue holds over deploys, and is of no other queue", async () => {
  const system = new MemorySystem();
  let queues: Record<string, object> = { sms: {}, calls: { pull: true } }, nowMs = 1_000.5;
  const deployments = new Deployments({
    system,
    evaluate: () => Promise.resolve({ ok: true, manifest: { queues } }),
    nowMs: () => nowMs,
  });
  const deploy = async (text: string) => {
    assert.ok((await deployments.deploy({ bundle: new TextEncoder().encode(text), app: "shop" })).ok);
  };
  await deploy("first");
  const table = await AppTable.open(system), declared = new DeclaredQueues(table, 1_000);
  const settings = async (queue: string) => {
    await table.refresh();
    declared.refresh();
    const { isPaused, purgedBeforeMs } = declared.get(`shop/${queue}`)?.settings ?? {};
    return [isPaused, purgedBeforeMs];
  };
  const codeOf = async (change: ReturnType<typeof deployments.queues.pause>) => {
    const result = await change;
    return result.ok ? result.changed : result.code;
  };
  assert.deepEqual(await settings("sms"), [false, 0]);
  assert.equal(await codeOf(deployments.queues.pause("shop", "sms", true)), true);
  assert.equal(await codeOf(deployments.queues.pause("shop", "sms", true)), false);
  assert.equal(await codeOf(deployments.queues.pause("shop", "calls", false)), false);
  assert.equal(await codeOf(deployments.queues.pause("shop", "none", true)), "queue_unknown");
  assert.equal(await codeOf(deployments.queues.purge("shop", "toString")), "queue_unknown");
  assert.equal(await codeOf(deployments.queues.purge("other", "sms")), "app_unknown");
  assert.equal(await codeOf(deployments.queues.purge("shop", "calls")), true);
  assert.deepEqual(await settings("sms"), [true, 0]);
  assert.deepEqual(await settings("calls"), [false, 1_001], "all that was sent before the order");
  nowMs = 2_000;
  await deploy("second");
  assert.deepEqual(await settings("sms"), [true, 0]);
  assert.equal(await codeOf(deployments.queues.purge("shop", "sms")), true);
  assert.equal(await codeOf(deployments.queues.pause("shop", "sms", false)), true);
  assert.deepEqual(await settings("sms"), [false, 2_000]);
  queues = { calls: {} };
  await deploy("third");
  assert.equal(await codeOf(deployments.queues.pause("shop", "sms", true)), "queue_unknown");
  table.close();
});
