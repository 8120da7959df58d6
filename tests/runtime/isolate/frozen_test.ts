/** What the language brings is frozen where stateful sessions run, in a real isolate. */
import assert from "node:assert/strict";
import { bundleApp, fromFileUrl, runDenoBundle } from "../../../runtime/bundle/mod.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

const entry = fromFileUrl(new URL("frozen_app.ts", import.meta.url));
const config = fromFileUrl(new URL("../../../deno.json", import.meta.url));
/** As an app is deployed, and without what it is asked about its modules, as versions of before have none. */
const BUNDLES = [
  ["a bundle", () => bundleApp(entry)],
  ["a bundle that tells nothing", () => runDenoBundle({ entry, config, minify: false })],
] as const;

const OVERRIDDEN = [
  ...["mine", "refused", true, 1, "own", "seen", 3, "not extensible", "not writable", "a prototype"],
];

for (const [what, bundle] of BUNDLES) {
  Deno.test(`a session leaves nothing on what the language brings, and does as it likes with its own: ${what} (IN1, stateful_host.ts SH3)`, async () => {
    const bundled = await bundle();
    if (bundled.kind === "failed") throw new Error(bundled.message);
    const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 2_000 } });
    const pool = new StatefulPool({ site: "edge-1", log: () => {}, note: () => {} });
    try {
      const home = new TestHome(pool, app, "a");
      await home.open();
      const left = await home.value("leave") as string[];
      const isAsked = what === "a bundle";
      const refused = isAsked ? left : left.slice(0, -1);
      assert.deepEqual(refused.filter((each) => each !== "TypeError"), []);
      if (!isAsked) assert.equal(left.at(-1), "done", "an app's own classes are its own");
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
      assert.deepEqual(await home.value("override"), OVERRIDDEN);
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
}
