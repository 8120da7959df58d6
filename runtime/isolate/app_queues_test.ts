import { strict as assert } from "node:assert";
import { BURST_MS, CORES_FREE } from "./app_cores.ts";
import { AppQueues, type QueueHold, SiteQueues } from "./app_queues.ts";

Deno.test("what an app has waiting is the sum of its queues, and one that has ended holds nothing (Q1)", () => {
  const queues = new AppQueues(100);
  const a = queues.hold("isolate", () => assert.fail()),
    b = queues.hold("response body", () => assert.fail());
  a.add(60);
  b.add(40);
  a.add(-50);
  assert.deepEqual([queues.bytes, queues.size, a.bytes, b.bytes], [50, 2, 10, 40]);
  b.end();
  b.end();
  b.add(1_000);
  assert.deepEqual([queues.bytes, queues.size, b.bytes], [10, 1, 0]);
  assert.throws(() => a.add(-11), /Q1/);
});

Deno.test("over the budget the queue that holds most is shed, until the rest fits, each once (Q2, Q3)", () => {
  const told: string[] = [];
  const queues = new AppQueues(100, ({ queue, bytes }) => told.push(`${queue} ${bytes}`));
  const shed: string[] = [];
  const holds = new Map<string, QueueHold>();
  for (const [name, bytes] of [["a", 30], ["b", 50], ["c", 15]] as const) {
    const hold = queues.hold("socket to client", () => shed.push(name));
    holds.set(name, hold);
    hold.add(bytes);
  }
  assert.deepEqual(shed, []);
  holds.get("c")?.add(20);
  assert.deepEqual([shed, queues.bytes], [["b"], 65]);
  // Whoever asks for more may be the one that has most.
  holds.get("c")?.add(70);
  assert.deepEqual([shed, queues.bytes, queues.size], [["b", "c"], 30, 1]);
  holds.get("b")?.add(1_000);
  assert.deepEqual([shed, queues.bytes], [["b", "c"], 30]);
  assert.deepEqual(told, ["socket to client 50", "socket to client 105"]);
});

Deno.test("an app's queues are its own, and those of apps that have none are forgotten", () => {
  const site = new SiteQueues(100);
  const a = site.of("a").hold("isolate", () => assert.fail("a is within its budget"));
  a.add(90);
  let isShed = false;
  site.of("b").hold("isolate", () => isShed = true).add(101);
  assert.ok(isShed);
  site.of("a").hold("response body", () => assert.fail("a is within its budget")).add(10);
  site.of("a").hold("response body", () => assert.fail("nothing waits in it")).add(0);
  assert.deepEqual([...site.waiting()], [
    { app: "a", queue: "isolate", bytes: 90 },
    { app: "a", queue: "response body", bytes: 10 },
  ]);
  assert.equal(site.of("a").bytes, 100);
  const before = site.of("b");
  site.of("c");
  assert.notEqual(site.of("b"), before);
});

Deno.test("an app that has to rest is not forgotten when its last isolate has ended and another app comes", () => {
  let nowMs = 0;
  const site = new SiteQueues(100, {}, () => nowMs), before = site.of("a");
  const member = before.cores.join({ startedGivingWay: false, giveWay: () => true });
  member.looked(2 * BURST_MS);
  member.leave();
  site.of("b");
  assert.ok(site.of("a").cores.givesWay);
  nowMs = 2 * BURST_MS / CORES_FREE;
  site.of("c");
  assert.notEqual(site.of("a"), before);
});
