/** What stateful sessions share, and what a replay of one alone shows, in real isolates. */
import assert from "node:assert/strict";
import { runDenoBundle } from "../../runtime/bundle/deno_bundle.ts";
import { fromFileUrl } from "../../runtime/bundle/file_url.ts";
import { type StatefulLoadError, StatefulPool } from "../../runtime/isolate/stateful_pool.ts";
import { CheckedPool } from "../../runtime/stateful/shadow.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

const bundled = await runDenoBundle({
  entry: fromFileUrl(new URL("shadow_app.ts", import.meta.url)),
  config: fromFileUrl(new URL("../../deno.json", import.meta.url)),
  minify: false,
});
if (bundled.kind === "failed") throw new Error(bundled.message);
const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 2_000 } });

const codeOf = ({ parked }: TestHome) => parked?.code;

interface Bench {
  readonly pool: StatefulPool;
  readonly checked: CheckedPool;
  /** A session that is checked. */
  open(id: string): Promise<TestHome>;
}

async function withChecks(run: (bench: Bench) => Promise<void>): Promise<void> {
  const notes: string[] = [];
  const note = (event: string, detail: unknown) => void notes.push(`${event} ${JSON.stringify(detail)}`);
  const pool = new StatefulPool({ site: "edge-1", log: () => {}, note });
  const checked = new CheckedPool({ pool, note });
  try {
    await run({
      pool,
      checked,
      open: async (id) => {
        const home = new TestHome(checked, app, id);
        await home.open();
        return home;
      },
    });
    await checked.settled;
    assert.deepEqual(notes, [], "every shadow was run");
  } finally {
    await pool.close();
  }
}

Deno.test("stateful sessions that keep to their logs are the same alone, from checkpoints too", () =>
  withChecks(async ({ checked, open }) => {
    const [a, b] = [await open("a"), await open("b")];
    for (let i = 1; i <= 3; i++) {
      assert.deepEqual([await a.value("add"), await b.value("add")], [i, i]);
      await checked.settled;
    }
    a.checkpointNow();
    await a.until(() => a.checkpoint !== null);
    assert.equal(await a.value("add"), 4);
    await checked.settled;
    assert.deepEqual([a.parked, b.parked], [null, null]);
  }));

Deno.test("a counter of the module is found where another session has counted, with the line that told it", () =>
  withChecks(async ({ checked, open }) => {
    const [a, b] = [await open("a"), await open("b")];
    assert.equal(await a.value("countAll"), 1);
    await checked.settled;
    assert.equal(a.parked, null, "alone it is the same");
    assert.equal(await b.value("countAll"), 2);
    await checked.settled;
    assert.equal(b.parked?.code, "diverged");
    assert.match(b.parked?.message ?? "", /alone, in an isolate of its own, .* entry \d+ \(request\)/);
    assert.match(JSON.stringify(b.parked?.detail["logged"]), /"kind":"request"/);
    const did = JSON.stringify(b.parked?.detail["did"]);
    assert.match(did, /output 1 to q1[^}]*at Probe\.countAll \(bundle:\d+:\d+\)/);
    assert.equal(a.parked, null);
  }));

Deno.test("what a checkpoint does not hold is found with the next message", () =>
  withChecks(async ({ checked, open }) => {
    const home = await open("a");
    await home.call("remember");
    assert.equal(await home.value("recall"), "a");
    await checked.settled;
    assert.equal(codeOf(home), undefined);
    home.checkpointNow();
    await home.until(() => home.checkpoint !== null);
    assert.equal(await home.value("recall"), "a");
    await checked.settled;
    assert.equal(codeOf(home), "diverged");
  }));

Deno.test("sessions that share a promise, an object or a callback are found when it runs", async (t) => {
  const withPool = (run: (open: (id: string) => Promise<TestHome>) => Promise<void>) => async () => {
    const pool = new StatefulPool({ site: "edge-1", log: () => {}, note: () => {} });
    const open = async (id: string) => {
      const home = new TestHome(pool, app, id);
      await home.open();
      return home;
    };
    await run(open).finally(() => pool.close());
  };
  const shared = (home: TestHome, what: RegExp) => {
    assert.deepEqual(
      [home.parked?.code, what.test(home.parked?.message ?? "")],
      ["shared", true],
      home.parked?.message,
    );
    assert.match(
      home.parked?.message ?? "",
      /code of the stateful session probe\/a ran in a turn of probe\/b/,
    );
    assert.match(JSON.stringify(home.parked?.detail), /\(bundle:\d+/);
  };
  await t.step(
    "a promise",
    withPool(async (open) => {
      const [a, b] = [await open("a"), await open("b")];
      void a.call("meet");
      // Behind what the first was asked: one isolate runs both.
      assert.equal(await b.value("release"), 0);
      await a.until(() => a.parked !== null);
      shared(a, /^what it asks for/);
      assert.equal(await b.value("add"), 1, "the other goes on");
    }),
  );
  await t.step(
    "an object",
    withPool(async (open) => {
      const [a, b] = [await open("a"), await open("b")];
      await a.call("enter");
      const poked = await b.call("poke", "a");
      assert.deepEqual([poked.kind, poked.kind === "error" && poked.code], ["error", "session_shared"]);
      await a.until(() => a.parked !== null);
      shared(a, /^setTimer/);
      assert.equal(await b.value("add"), 1);
    }),
  );
  await t.step(
    "a callback",
    withPool(async (open) => {
      const [a, b] = [await open("a"), await open("b")];
      await a.call("listen");
      await b.call("say");
      await a.until(() => a.parked !== null);
      shared(a, /^setTimer/);
    }),
  );
});

Deno.test("a secret that changes is seen from the next checkpoint on, and a replay does the same", () =>
  withChecks(async ({ pool, checked }) => {
    let secret = "old";
    const keyed = { ...app, secrets: () => ({ KEY: secret }) };
    const [home, busy] = [new TestHome(checked, keyed, "a"), new TestHome(checked, keyed, "b")];
    await home.open();
    await busy.open();
    assert.deepEqual([await home.value("key"), await busy.value("key")], ["old", "old"]);
    await checked.settled;
    await busy.call("linger", 1_000);
    secret = "new";
    pool.refreshSecrets(app.app);
    assert.equal(await busy.value("key"), "old", "it has not come to rest");
    await home.until(() => home.checkpoint !== null);
    assert.equal(await home.value("key"), "new");
    await busy.until(() => busy.checkpoint !== null);
    assert.equal(await busy.value("key"), "new");
    for (const each of [home, busy]) {
      await each.move();
      assert.deepEqual([each.parked, await each.value("key")], [null, "new"]);
    }
  }));

Deno.test("module code that needs what sessions do not have while they load is found before it is deployed", () =>
  withChecks(async ({ pool }) => {
    const bundle = (code: string) => new TextEncoder().encode(`${code}\nexport default { fetch() {} };`);
    await pool.tryLoad(bundle("const start = Date.now();"));
    const seed = pool.tryLoad(bundle("const seed =\n  crypto.randomUUID();"));
    await assert.rejects(seed, (error: StatefulLoadError) => {
      assert.match(error.message, /crypto works in a handler, not while a module loads/);
      assert.match(error.trace, /bundle:2:10/);
      return true;
    });
  }));

Deno.test("a value of the cache is made by who misses it, shared, and the same at a replay elsewhere", () =>
  withChecks(async ({ pool, checked, open }) => {
    const [a, b] = [await open("a"), await open("b")];
    const made = await a.value("menu");
    assert.deepEqual([(made as unknown[])[0], (made as unknown[])[2]], ["a", true]);
    assert.deepEqual(await b.value("menu"), made, "another session has the same");
    await checked.settled;
    assert.deepEqual([a.parked, b.parked], [null, null], "alone, with an empty cache, both do as they did");
    b.leave();
    const elsewhere = new StatefulPool({ site: "edge-2", log: () => {}, note: () => {} });
    try {
      const there = new TestHome(elsewhere, app, "b");
      there.commits.push(...b.commits);
      there.epoch = 2;
      await there.open();
      assert.deepEqual(
        [there.parked, ((await there.value("menu")) as unknown[])[0]],
        [null, "b"],
        "a cache of its own",
      );
    } finally {
      await elsewhere.close();
    }
    for (const [method, arg, code] of [["badMenu", "other", "app_error"], ["badMenu", "", "value_invalid"]]) {
      const refused = await a.call(`${method}`, arg);
      assert.equal(refused.kind === "error" && refused.code, code);
    }
    const big = await new TestHome(pool, { ...app, version: "other" }, "c");
    await big.open();
    const refused = await big.call("menu", 300_000);
    assert.equal(refused.kind === "error" && refused.code, "limit_value");
  }));
