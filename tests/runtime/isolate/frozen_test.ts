/** What the language brings is frozen where stateful sessions run, in a real isolate. */
import assert from "node:assert/strict";
import { runDenoBundle } from "../../../runtime/bundle/deno_bundle.ts";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

Deno.test("a session leaves nothing on what the language brings, and does as it likes with its own", async () => {
  const bundled = await runDenoBundle({
    entry: fromFileUrl(new URL("frozen_app.ts", import.meta.url)),
    config: fromFileUrl(new URL("../../../deno.json", import.meta.url)),
    minify: false,
  });
  if (bundled.kind === "failed") throw new Error(bundled.message);
  const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 2_000 } });
  const pool = new StatefulPool({ site: "edge-1", log: () => {}, note: () => {} });
  try {
    const home = new TestHome(pool, app, "a");
    await home.open();
    const left = await home.value("leave") as string[];
    assert.deepEqual(left.slice(0, -1), Array.from({ length: left.length - 1 }, () => "TypeError"));
    assert.equal(left.at(-1), "done", "an app's own classes are its own");
    assert.deepEqual(await home.value("assign"), [
      "Own: m",
      "mine",
      "toString,constructor,hasOwnProperty",
      "old",
      7,
      3,
      2,
      "Custom: custom",
      "c",
      '{"toString":1}',
    ]);
    assert.deepEqual(await home.value("packages"), [
      { id: "1", of: ["tea"] },
      2,
      { hello: "ann", agent: "test" },
    ]);
    await home.move();
    assert.equal(home.parked, null);
  } finally {
    await pool.close();
  }
});
