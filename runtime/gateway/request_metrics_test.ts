import { strict as assert } from "node:assert";
import { RequestMetrics } from "./request_metrics.ts";

Deno.test("sessions are counted by how they arrived", () => {
  const metrics = new RequestMetrics();
  metrics.attached("new", 0.01);
  metrics.attached("carry", 20);
  metrics.attached("carry", 20_000);
  assert.deepEqual(metrics.arrivals, { new: 1, same: 0, nothing: 0, carry: 2, wait: 0 });
});
