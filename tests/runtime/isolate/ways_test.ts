/** Ways by which a session could keep, or see, what no log and no checkpoint has: refused, or the same wherever it goes. */
import assert from "node:assert/strict";
import { bundleApp, fromFileUrl } from "../../../runtime/bundle/mod.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { type Outcome, TestHome } from "./stateful_home.ts";

const bundled = await bundleApp(fromFileUrl(new URL("ways_app.ts", import.meta.url)));
if (bundled.kind === "failed") throw new Error(bundled.message);
const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 5_000 } });

/** With an isolate at each of two sites. */
async function withPools(work: (here: StatefulPool, there: StatefulPool) => Promise<void>): Promise<void> {
  const pools = ["here", "there"].map((site) =>
    new StatefulPool({ site, hasSpare: false, log: () => {}, note: () => {} })
  );
  const [here, there] = pools as [StatefulPool, StatefulPool];
  await work(here, there).finally(() => Promise.all(pools.map((pool) => pool.close())));
}

async function opened(pool: StatefulPool, id: string, from?: TestHome): Promise<TestHome> {
  const home = new TestHome(pool, app, id);
  if (from !== undefined) {
    home.commits.push(...from.commits);
    home.checkpoint = from.checkpoint;
    home.epoch = from.epoch + 1;
    home.requests = "m";
  }
  await home.open();
  return home;
}

const codeOf = (outcome: Outcome): string => outcome.kind === "error" ? outcome.code : outcome.kind;

/**
 * What each way of a kind comes to, three times: in an isolate in which another session has gone it before; then at a site
 * that has replayed the log; then from a checkpoint. It has to be what it is where nobody has gone it.
 */
async function everywhere(
  kind: string,
  check: (name: string, outcomes: readonly Outcome[]) => void,
): Promise<void> {
  await withPools(async (here, there) => {
    const first = await opened(here, "first");
    const names = (await first.value("names") as Record<string, string[]>)[kind] ?? [];
    assert.ok(names.length > 0);
    for (const [i, name] of names.entries()) {
      const id = `way-${i}`;
      const before = await opened(here, `before-${i}`);
      for (let time = 0; time < 2; time++) await before.call("go", kind, name);
      const [alone, home] = [await opened(there, id), await opened(here, id)];
      const outcomes: Outcome[] = [];
      for (let time = 0; time < 2; time++) {
        outcomes.push(await home.call("go", kind, name));
        assert.deepEqual(outcomes.at(-1), await alone.call("go", kind, name), `${name}: alone`);
      }
      alone.leave();
      const state = await home.value("state");
      const moved = await opened(there, id, home);
      assert.deepEqual([moved.parked, await moved.value("state")], [null, state], `${name}: replayed`);
      moved.checkpointNow();
      await moved.until(() => moved.checkpoint !== null || moved.parked !== null);
      assert.equal(moved.parked, null, name);
      const read = await opened(here, id, moved);
      assert.deepEqual([read.parked, await read.value("state")], [null, state], `${name}: from a checkpoint`);
      outcomes.push(await read.call("go", kind, name));
      assert.deepEqual(outcomes.at(-1), await home.call("go", kind, name), `${name}: on from a checkpoint`);
      check(name, outcomes);
      for (const each of [before, home, moved, read]) each.leave();
    }
  });
}

for (
  const [kind, what, codes] of [
    ["FULL", "a stack that was full fails its handler, whoever took the error (MF6)", ["stack_full"]],
    ["OUT_OF_MEMORY", "memory that there was not fails its handler (MF6)", ["memory_full"]],
    ["SHARED", "what all sessions share is changed by none (MF1, MF2, FR1, FR2, MW1)", [
      ...["module_state", "app_error", "value"],
    ]],
    ["KEPT", "what no checkpoint could hold is kept nowhere (MF8, LP3)", [
      ...["state_invalid", "value_invalid", "app_error", "module_state"],
    ]],
    ["SAME", "what a checkpoint holds is the same where it is read", ["value"]],
    ["HONEST", "what programs do with what all share, they may (FR3)", ["value"]],
  ] as const
) {
  Deno.test(what, () =>
    everywhere(kind, (name, outcomes) => {
      for (const each of outcomes) {
        assert.ok((codes as readonly string[]).includes(codeOf(each)), `${name}: ${JSON.stringify(each)}`);
      }
    }));
}
