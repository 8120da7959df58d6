import { strict as assert } from "node:assert";
import type { LiveVersion } from "../deploy/app_table.ts";
import { RequestMetrics } from "./request_metrics.ts";

Deno.test("sessions are counted by how they arrived", () => {
  const metrics = new RequestMetrics();
  metrics.attached("new", 0.01);
  metrics.attached("carry", 20);
  metrics.attached("carry", 20_000);
  assert.deepEqual(metrics.arrivals, { new: 1, same: 0, nothing: 0, carry: 2, wait: 0 });
});

Deno.test("labels of requests are known methods and statuses, whatever a client sends or an app answers (RM2)", () => {
  const metrics = new RequestMetrics(), version = { app: "shop", version: "0123456789abcdef" } as LiveVersion;
  for (let i = 0; i < 400; i++) {
    metrics.answered({ method: `METHOD-${i}`, version }, 200 + i, 1);
    metrics.answered({ method: `METHOD-${i}` }, 200 + i, 1);
  }
  const labels = metrics.families.flatMap(({ series }) => series.map(({ labels }) => labels));
  const values = (name: string) =>
    new Set(labels.flatMap((each) => each.filter(([label]) => label === name).map(([, value]) => value)));
  assert.deepEqual(values("http.request.method"), new Set(["_OTHER"]));
  assert.ok(values("http.response.status_code").size < 50);
  assert.deepEqual(values("sojourn.app.version"), new Set(["0123456789ab"]));
});
