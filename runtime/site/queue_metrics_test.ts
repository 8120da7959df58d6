import assert from "node:assert/strict";
import { SiteQueues } from "../isolate/mod.ts";
import { QueueMetrics } from "./queue_metrics.ts";

Deno.test("what waits of an app is told by queue, with what it may, and what was given up is counted", () => {
  const metrics = new QueueMetrics();
  const read = () =>
    Object.fromEntries(metrics.families.map(({ name, series }) => [
      name,
      series.map((each) => "value" in each ? [...each.labels.map(([, value]) => value), each.value] : []),
    ]));
  assert.deepEqual(read(), { "app.queues.size": [], "app.queues.limit": [], "app.queues.shed": [] });
  const queues = new SiteQueues(100, { shed: (shed) => metrics.shed(shed) });
  metrics.watch(queues);
  queues.of("slow").hold("isolate", () => {}).add(30);
  queues.of("slow").hold("socket to client", () => {}).add(20);
  queues.of("greedy").hold("response body", () => {}).add(101);
  assert.deepEqual(read(), {
    "app.queues.size": [["slow", "isolate", 30], ["slow", "socket to client", 20]],
    "app.queues.limit": [[100]],
    "app.queues.shed": [["greedy", "response body", 1]],
  });
});
