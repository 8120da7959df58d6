/** What stateful sessions share, and what a replay of one alone shows, in real isolates. */
import assert from "node:assert/strict";
import { runDenoBundle } from "../../../runtime/bundle/deno_bundle.ts";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
import { type StatefulLoadError, StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { CheckedPool } from "../../../runtime/stateful/shadow.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

const bundled = await runDenoBundle({
  entry: fromFileUrl(new URL("shadow_app.ts", import.meta.url)),
  config: fromFileUrl(new URL("../../../deno.json", import.meta.url)),
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

Deno.test("a counter of the module is found with one session, before it answers, with both values and the call (SH1)", () =>
  withChecks(async ({ open }) => {
    const home = await open("a");
    assert.equal(await home.value("countAll", "tea"), 1, "alone, from nothing, it is the same");
    let answer: unknown;
    home.call("countAll", "tea").then((outcome) => answer = outcome);
    await home.until(() => home.parked !== null);
    assert.equal(answer, undefined, "nobody was told what a replay does not say");
    assert.equal(home.commits.flatMap(({ outputs }) => outputs).length, 1);
    assert.equal(home.parked?.code, "diverged");
    const { message = "", detail = {} } = home.parked ?? {};
    assert.match(message, /a replay of countAll\("tea"\) alone, .* entry \d+ \(request\)/);
    assert.match(message, /First: output 1 to q2: answers 2\. Replayed: output 1 to q2: answers 1$/);
    assert.match(JSON.stringify(detail["logged"]), /"kind":"request"/);
    assert.match(JSON.stringify(detail["did"]), /answers 1[^}]*at Probe\.countAll \(bundle:\d+:\d+\)/);
    assert.deepEqual(detail["first"], [{ what: "output 1 to q2: answers 2", at: "" }]);
  }));

Deno.test("a counter of the module is found where another session has counted; those before it were answered", () =>
  withChecks(async ({ open }) => {
    const [a, b] = [await open("a"), await open("b")];
    assert.equal(await a.value("countAll"), 1);
    void b.call("countAll");
    await b.until(() => b.parked !== null);
    assert.deepEqual([codeOf(a), codeOf(b)], [undefined, "diverged"]);
    assert.equal(await a.value("add"), 1);
  }));

Deno.test("what a checkpoint does not hold is found with the next message, before it is answered (SH2)", () =>
  withChecks(async ({ open }) => {
    const home = await open("a");
    await home.call("remember");
    void home.call("recall");
    await home.until(() => home.parked !== null);
    assert.equal(codeOf(home), "diverged");
    assert.match(home.parked?.message ?? "", /answers 'a'\. Replayed: .*answers undefined$/);
  }));

Deno.test("messages that come together are answered in their order, when one replay of all has done the same", () =>
  withChecks(async ({ open }) => {
    const home = await open("a");
    const answers = Array.from({ length: 20 }, () => home.value("add"));
    assert.deepEqual(await Promise.all(answers), Array.from({ length: 20 }, (_, i) => i + 1));
    assert.deepEqual(home.parked, null);
  }));

Deno.test("calls and writes that a replay makes otherwise are told with what is in them (SH3)", () =>
  withChecks(async ({ open }) => {
    const home = await open("a");
    home.answer = () => ({ ok: true, bytes: new Uint8Array() });
    await home.call("countThere");
    void home.call("countThere");
    await home.until(() => home.parked !== null);
    assert.match(home.parked?.message ?? "", /First: writes .*count.*: 2\. Replayed: writes .*count.*: 1$/);
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
    await busy.call("linger", 2_000);
    assert.equal(await busy.value("key"), "old");
    const { checkpoint } = busy;
    secret = "new";
    pool.refreshSecrets(app.app);
    assert.equal(await busy.value("key"), "old", "it has not come to rest");
    await home.until(() => home.checkpoint !== null);
    assert.equal(await home.value("key"), "new");
    await busy.until(() => busy.checkpoint !== checkpoint);
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
