import assert from "node:assert/strict";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
import { runDenoBundle } from "../../../runtime/bundle/deno_bundle.ts";
import { rehearse } from "../../../runtime/isolate/inside/stateful_rehearsal.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

Deno.test("a rehearsal comes to its end, each time", async () => {
  await inMacrotask(() => {
    for (let i = 0; i < 3; i++) rehearse();
  });
});

Deno.test("of a rehearsal nothing is heard, and a session is in that isolate what it is in others (RE1)", async () => {
  const bundled = await runDenoBundle({
    entry: fromFileUrl(new URL("stateful_app.ts", import.meta.url)),
    config: fromFileUrl(new URL("../../../deno.json", import.meta.url)),
    minify: false,
  });
  assert.equal(bundled.kind, "bundled", JSON.stringify(bundled));
  if (bundled.kind !== "bundled") return;
  const app = appOf(new TextDecoder().decode(bundled.code));
  const lines: string[] = [];
  const pool = new StatefulPool({
    site: "edge-1",
    log: (_, level, text) => void lines.push(`${level} ${text}`),
    note: (event) => void lines.push(event),
  });
  try {
    const answers: unknown[] = [];
    for (const rehearsals of [0, 1, 2]) {
      const isolate = await pool.openAlone(app);
      for (let i = 0; i < rehearsals; i++) isolate.rehearse();
      const open = (_: unknown, ...args: Parameters<typeof isolate.open>) =>
        Promise.resolve({ isolate, channel: isolate.open(...args) });
      const home = new TestHome({ open }, app, "a");
      await home.open();
      const [[, , ...drawn] = [], , digest] = await home.value("sources") as unknown[][];
      answers.push([drawn, digest, await home.value("count", "x")]);
      assert.deepEqual(home.logged, []);
      await isolate.close();
    }
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
    assert.deepEqual(lines, []);
  } finally {
    await pool.close();
  }
});
