/** Packages do in a stateful session what they do anywhere, each time and wherever it goes on: nothing of theirs is refused. */
import assert from "node:assert/strict";
import { bundleApp, fromFileUrl } from "../../../runtime/bundle/mod.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

/** They have a configuration and a lock of their own, so that nobody who runs Sojourn has them on his machine. */
const PACKAGES = fromFileUrl(new URL("../../packages/", import.meta.url));

/** What a command says there. */
async function said(args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: PACKAGES,
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  assert.ok(success, text.decode(stderr));
  return text.decode(stdout);
}

Deno.test("the packages of the next test, and what is done with them, are as they are to be", async () => {
  await said(["fmt", "--check", "--quiet"]);
  await said(["lint", "--quiet"]);
  await said(["check", "--quiet", "."]);
});

Deno.test("packages make in a stateful session what they make anywhere, again and after moves (MF3, FR3)", async () => {
  const bundled = await bundleApp(`${PACKAGES}app.ts`);
  if (bundled.kind === "failed") throw new Error(bundled.message);
  const made = await said(["run", "-A", "--frozen", "expected.ts"]);
  const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 5_000 } });
  const pools = ["here", "there"].map((site) =>
    new StatefulPool({ site, hasSpare: false, log: () => {}, note: () => {} })
  );
  try {
    // Isolates end with their last session.
    for (const pool of pools) await new TestHome(pool, app, "stays").open();
    for (const [name, expected] of Object.entries(JSON.parse(made) as Record<string, unknown>)) {
      let last: TestHome | undefined;
      for (const pool of [...pools, ...pools]) {
        const home = new TestHome(pool, app, `of-${name}`);
        if (last !== undefined) {
          home.commits.push(...last.commits);
          home.epoch = last.epoch + 1;
          home.requests = `q${home.epoch}-`;
        }
        await home.open();
        assert.equal(home.parked, null, `${name}: ${JSON.stringify(home.parked)}`);
        for (let time = 0; time < 2; time++) {
          const outcome = await home.call("use", name);
          assert.deepEqual(
            outcome,
            { kind: "value", value: expected },
            `${name}: ${JSON.stringify(outcome)}`,
          );
        }
        home.leave();
        last = home;
      }
    }
  } finally {
    await Promise.all(pools.map((pool) => pool.close()));
  }
});
