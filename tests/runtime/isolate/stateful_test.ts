import assert from "node:assert/strict";
import {
  decodeCallToSession,
  decodeOutside,
  encodeOutsideAnswer,
  encodeRows,
} from "../../../functions/sessions/turn/mod.ts";
import { decodeCall, encodeAnswer } from "../../../functions/calls/call.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
import { runDenoBundle } from "../../../runtime/bundle/deno_bundle.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { CLOCK_SHARE_STEP, ClockShares } from "../../../store/model/clock_share.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

const bundled = await runDenoBundle({
  entry: fromFileUrl(new URL("stateful_app.ts", import.meta.url)),
  config: fromFileUrl(new URL("../../../deno.json", import.meta.url)),
  minify: false,
});
if (bundled.kind === "failed") throw new Error(bundled.message);
const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 300 } });

async function withPool(run: (pool: StatefulPool) => Promise<void>, hasSpare = false): Promise<void> {
  const pool = new StatefulPool({
    ...{ site: "edge-1", hasSpare },
    log: (_, level, text) => console.log(level, text),
    note: () => {},
  });
  try {
    await run(pool);
  } finally {
    await pool.close();
  }
}

Deno.test("stateful session is what it was in another isolate, whatever its handlers asked (stateful_random.ts SR2; stateful_time.ts ST2)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    assert.equal(await home.value("count", "x"), 1);
    const sources = await home.value("sources") as unknown[];
    assert.equal(sources[3], true);
    const dates = sources[1] as unknown[];
    assert.deepEqual([dates[1], dates[2], dates[4], dates[6], dates[7]], [true, true, true, true, 0]);
    assert.match(String(sources[6]), /^Error: e\n {4}at Probe\.sources \(app:\/\/\/bundle:/);
    await home.value("sources");
    const before = await home.value("all");
    await home.move();
    assert.deepEqual(await home.value("all"), before);
    assert.equal(await home.value("count", "x"), 2);
    home.checkpointNow();
    await home.until(() => home.checkpoint !== null);
    assert.equal(await home.value("count", "x"), 3);
    await home.move();
    assert.deepEqual(await home.value("all"), before);
    assert.equal(await home.value("count", "x"), 4);
    assert.deepEqual(await home.value("absent"), []);
  }));

Deno.test("stateful session sees of dates, boundaries and counts that the platform makes what a replay sees", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    const wanted = [true, [true, true], true, true, true, true, [0, 0, 0], [0, 1]];
    assert.deepEqual(await home.value("hiddenSources"), wanted);
    assert.deepEqual(await home.value("hiddenSources"), wanted);
    const [own, sites, plain] = await home.value("frames") as [string[], string[], string];
    assert.deepEqual([...new Set([...own, ...sites])], ["app:///bundle"]);
    assert.match(plain, /^Error: e\n {4}at Probe\.frames \(app:\/\/\/bundle:\d+:\d+\)$/);
    assert.equal(await home.value("compress"), 4);
    const before = await home.value("all") as string[];
    assert.equal(before.length, 3);
    await home.move();
    assert.deepEqual(await home.value("all"), before);
    const imported = await home.call("imports");
    assert.match(imported.kind === "error" ? imported.message : "", /can't import "node:path": .*at the top/);
    const read = await home.call("reads");
    assert.match(read.kind === "error" ? read.message : "", /FileReader is not available.*blob\.text/);
    assert.equal(await home.value("count", "imported"), 1, "it did nothing");
    assert.equal(home.parked, null);
  }));

Deno.test("stateful session answers HTTP, and its timers are its home's", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    const response = await home.fetch("http://app/x");
    assert.equal(response.kind === "response" && response.status, 201);
    const timer = home.commits.flatMap(({ timers }) => timers).at(-1);
    assert.ok(timer?.name === "idle" && timer.dueMs !== null);
    home.timer("idle", timer.dueMs);
    home.timer("idle", timer.dueMs);
    const again = await home.fetch("http://app/x");
    assert.match(again.kind === "response" ? again.text : "", /"counts":\[\["idle",1\]\]/);
  }));

Deno.test("stateful session is as before a handler that throws (IV1)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    assert.equal(await home.value("count", "failed"), 1);
    const failed = await home.call("fail");
    assert.deepEqual(failed, { kind: "error", code: "no_such_thing", message: "no such thing" });
    assert.match(home.logged.join(), /Error: no such thing\n {4}at Probe\.fail \(bundle:/);
    assert.equal(await home.value("count", "failed"), 2);
    const interval = await home.call("interval");
    assert.match(interval.kind === "error" ? interval.message : "", /onTimer/);
    const unknown = await home.call("toString");
    assert.equal(unknown.kind === "error" && unknown.code, "not_available");
    assert.equal((await home.call("setTimer", "x", 1)).kind, "error");
    await home.move();
    assert.equal(await home.value("count", "failed"), 3);
  }));

Deno.test("stateful session's answer has the same bytes when its code has been compiled", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    const forms = new Set<string>();
    for (const times of [1, 300_000, 300_000, 1]) {
      const answer = await home.call("numbers", times);
      assert.deepEqual(answer, { kind: "value", value: new Map([["whole", 2], ["none", NaN]]) });
      forms.add(home.commits.at(-1)?.outputs[0]?.bytes.toHex() ?? "no answer");
    }
    assert.equal(forms.size, 1, [...forms].join());
    await home.move();
    assert.equal(await home.value("count", "moved"), 1);
  }));

Deno.test("isolates of one site write under versions that no other of it has (store/model/clock_share.ts, CS1, stateful_pool.ts P4)", async () => {
  const clockShares = new ClockShares(0);
  const pools = Array.from(
    { length: 2 },
    () =>
      new StatefulPool({
        ...{ site: "edge-1", hasSpare: false, clockShares },
        log: () => {},
        note: () => {},
      }),
  );
  try {
    const homes = pools.map((pool, i) => new TestHome(pool, app, `${i}`));
    const shares = await Promise.all(homes.map(async (home) => {
      await home.open();
      for (let i = 0; i < 3; i++) await home.value("writeLater", `${i}`);
      const clocks = home.commits.flatMap(({ effects }) => effects).map(({ clock }) => clock);
      assert.equal(clocks.length, 3);
      assert.deepEqual(clocks.toSorted((one, other) => one - other), clocks);
      return clocks.map((clock) => clock % CLOCK_SHARE_STEP);
    }));
    assert.deepEqual(shares.map((each) => new Set(each).size), [1, 1]);
    assert.deepEqual(new Set(shares.flat()), new Set([1, 3]), "odd, and not the same");
  } finally {
    for (const pool of pools) await pool.close();
  }
});

Deno.test("stateful session whose handler loops is killed with its isolate, and intact (stateful_isolate.ts I2, I3)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    const beside = new TestHome(pool, app, "b");
    await home.open();
    await beside.open();
    assert.equal(await home.value("count", "looped"), 1);
    assert.equal(await beside.value("count", "x"), 1);
    const looped = home.call("loop");
    await home.until(() => home.end !== null);
    await beside.until(() => beside.end !== null);
    assert.equal(home.end?.isCause, true);
    assert.equal(home.end?.end.received, 2);
    assert.equal(beside.end?.isCause, false);
    await Promise.all([home.open(), beside.open()]);
    home.reject();
    assert.equal((await looped).kind, "error");
    assert.equal(await home.value("count", "looped"), 2);
    assert.equal(await beside.value("count", "x"), 2);
  }));

Deno.test("stateful session's isolate that is lost tells which of its events had come when its last turn began (process.ts P4; session_frames.ts SF3)", () =>
  withPool(async (pool) => {
    const isolate = await pool.openAlone(app);
    const open = (_: unknown, ...args: Parameters<typeof isolate.open>) =>
      Promise.resolve({ isolate, channel: isolate.open(...args) });
    const home = new TestHome({ open }, app, "a");
    await home.open();
    for (let i = 1; i <= 3; i++) assert.equal(await home.value("count", "x"), i);
    Deno.kill(isolate.pid, "SIGSTOP"); // what it does not read it does not begin
    void home.call("count", "x");
    Deno.kill(isolate.pid, "SIGKILL");
    await home.until(() => home.end !== null);
    assert.equal(home.end?.isCause, true);
    assert.equal(home.end?.end.received, 3);
  }));

Deno.test("stateful session that its home blames for the isolate's end is told so, whoever had the last turn", () =>
  withPool(async (pool) => {
    const isolate = await pool.openAlone(app);
    const channels: number[] = [];
    const open = (_: unknown, ...args: Parameters<typeof isolate.open>) => {
      const channel = isolate.open(...args);
      channels.push(channel);
      return Promise.resolve({ isolate, channel });
    };
    const blamed = new TestHome({ open }, app, "a"), last = new TestHome({ open }, app, "b");
    for (const home of [blamed, last]) await home.open();
    for (const home of [blamed, last]) assert.equal(await home.value("count", "x"), 1);
    isolate.killFor(channels[0] ?? 0, "it does not fit");
    for (const home of [blamed, last]) await home.until(() => home.end !== null);
    assert.deepEqual([blamed.end?.isCause, last.end?.isCause], [true, false]);
    assert.equal(last.end?.end.why, "it does not fit");
  }));

Deno.test("stateful session's calls leave in order: reads at once, what has an effect with its intent (stateful_fetch.ts SF1, commit.ts CM2)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    home.answer = (call) => {
      switch (call.kind) {
        case "get":
          return { ok: true, bytes: encodeRows([null]) };
        case "session": {
          const { target, chain } = decodeCallToSession(call.bytes);
          assert.deepEqual([target, chain], [{ class: "other", id: "o" }, ["probe/a"]]);
          return { ok: true, bytes: encodeAnswer({ kind: "value", value: encodeValue(7) }) };
        }
        default:
          return {
            ok: true,
            bytes: encodeOutsideAnswer({
              url: "https://outside.example/x",
              answer: encodeAnswer({
                kind: "response",
                status: 200,
                statusText: "OK",
                headers: [],
                body: new TextEncoder().encode("out"),
              }),
            }),
          };
      }
    };
    await home.open();
    assert.deepEqual(await home.value("write", "n", "t"), [true, { id: "n", text: "t" }]);
    const effects = home.commits.flatMap(({ effects }) => effects);
    assert.deepEqual(effects.map(({ effect, mutations }) => [effect, mutations.length]), [[1, 2]]);
    assert.equal(await home.value("ask", "https://outside.example/x", "GET"), "200 out");
    assert.equal(await home.value("ask", "https://outside.example/x", "POST"), "200 out");
    assert.equal(await home.value("call", "o"), 7);
    assert.deepEqual(home.calls.map(({ kind, effect }) => [kind, effect]), [
      ["fetch", null],
      ["fetch", 2],
      ["session", 3],
    ]);
    const intents = home.commits.filter(({ isPoint }) => !isPoint);
    assert.deepEqual(intents.map(({ calls }) => calls.map(({ call }) => call)), [[2], [3]]);
    // Lost with the result: the call is made again under its number.
    home.answer = () => undefined;
    const asked = home.value("ask", "https://outside.example/x", "POST");
    await home.until(() => home.calls.length === 4);
    await home.move();
    assert.deepEqual(home.opened?.calls.map(({ call, effect }) => [call, effect]), [[4, 4]]);
    assert.equal(home.calls.length, 5);
    home.answer = () => ({ ok: false, code: "fetch_failed", message: "gone" });
    await home.move();
    await assert.rejects(asked, /fetch_failed/);
  }));

Deno.test("stateful session's request of a stream is in its log whole, and so is what came (stateful_fetch.ts SF2)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    const sent: string[] = [];
    home.answer = ({ bytes }) => {
      const call = decodeCall(decodeOutside(bytes).call);
      sent.push(call.kind === "fetch" ? new TextDecoder().decode(call.body ?? new Uint8Array()) : call.kind);
      const head = { kind: "response", status: 200, statusText: "", headers: [] } as const;
      const answer = encodeAnswer({ ...head, body: new TextEncoder().encode("xyz") });
      return { ok: true, bytes: encodeOutsideAnswer({ url: "https://outside.example/x", answer }) };
    };
    await home.open();
    assert.equal(await home.value("askStream", "https://outside.example/x"), "xyz");
    await home.move();
    assert.deepEqual([home.parked, sent], [null, ["abcd"]]);
  }));

Deno.test("what modules draw and date is the same in every isolate, and no secret (stateful_random.ts SR1, stateful_time.ts ST1)", async () => {
  const seen: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    await withPool(async (pool) => {
      const home = new TestHome(pool, app, "a");
      await home.open();
      seen.push(await home.value("ofModules"));
    });
  }
  const [[loadedMs, , secret] = []] = seen as unknown[][];
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual([loadedMs, secret], [Date.UTC(2025, 0, 1), "TypeError"]);
});

Deno.test("stateful session's messages come to itself alone, and it leaves a module's channel as it is (MC1, MC2)", () =>
  withPool(async (pool) => {
    const a = new TestHome(pool, app, "a"), b = new TestHome(pool, app, "b");
    await a.open();
    await b.open();
    assert.deepEqual(await Promise.all([a.value("echo", "of a"), b.value("echo", "of b")]), ["of a", "of b"]);
    for (const home of [a, b]) await home.value("count", "x"); // behind what it has posted
    assert.deepEqual([a.logged, b.logged].map((lines) => lines.map((line) => line.trim())), [
      ["heard of a"],
      ["heard of b"],
    ]);
    assert.deepEqual(await a.value("useShared"), Array(5).fill("TypeError"));
    assert.equal(await b.value("echo", "again"), "again");
    for (const home of [a, b]) await home.move();
    assert.deepEqual([a.parked, b.parked], [null, null]);
  }));

Deno.test("stateful session that waits for nothing, can't be written down or is not there is parked, and says why", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    void home.call("never");
    await home.until(() => home.parked !== null);
    assert.deepEqual([home.parked?.code, home.parked?.detail.handler], ["waits_unrecorded", "never"]);
  }));

Deno.test("stateful session's handler that leaves what no checkpoint can hold fails, with the place, and did nothing (functions/tracked/field_walk.ts FW3)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    const said: (readonly [kind: string, RegExp])[] = [
      ["function", /^can't keep kept: a function \(late\), .*make it a method/],
      ["buffer", /^can't keep kept: an instance of Buffer.*use a Uint8Array/],
      ["deep", /^can't keep kept\.a\[0\]\.get\("k"\): an instance of Promise/],
      ["symbol", /^can't keep \[Symbol\(field\)\]: .*name it by a text/],
      ["hidden", /^can't keep hidden: .*not enumerable/],
      ["getter", /^can't keep kept\[0\]\.x: a getter/],
      ["forwarded", /^can't keep broken\[0\]\.y: .*not enumerable/],
      ["stack", /^can't keep broken\[0\]\.stack: .*not enumerable/],
      ["resizable", /^can't keep kept: a buffer that can be resized/],
      ["proxy", /^can't keep kept: a Proxy/],
      ["late", /^can't keep kept: a function/],
      ["twice", /^can't keep kept: the tracked map that is in counts, too/],
      ["inside", /^can't keep kept: the tracked map that is in another structure/],
      ["frozen", /^can't keep the session's fields: it was frozen/],
    ];
    assert.equal(await home.value("count", "kept"), 1);
    assert.equal(await home.value("keepPlain"), "[1]");
    for (const [i, [kind, what]] of said.entries()) {
      const outcome = await home.call("keep", kind);
      assert.deepEqual(
        [outcome.kind, outcome.kind === "error" && outcome.code],
        ["error", "state_invalid"],
        kind,
      );
      assert.match(outcome.kind === "error" ? outcome.message : "", what, kind);
      assert.equal(await home.value("count", "kept"), i + 2, "state unchanged");
      if (i % 3 === 0) await home.move();
    }
    home.checkpointNow();
    await home.until(() => home.checkpoint !== null);
    await home.move();
    assert.deepEqual([home.parked, await home.value("count", "kept")], [null, said.length + 2]);
  }));

Deno.test("stateful session's keys are the same in another isolate, and do the same (SK1)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "keys");
    await home.open();
    const made = await home.value("keys") as unknown[];
    assert.deepEqual(made.slice(2, 5), [false, "x", true]);
    await home.move();
    assert.equal(home.parked, null);
    assert.deepEqual(await home.value("keptKeys"), made[0]);
    assert.notDeepEqual((await home.value("keys") as unknown[])[1], made[1], "others are made the next time");
  }));

Deno.test("stateful session of 120 frames of 768 × 576 leaves its isolate as what changed, and goes on in another", () =>
  withPool(async (pool) => {
    const large = { ...app, limits: { ...app.limits, cpuMs: 5_000 } };
    const home = new TestHome(pool, large, "camera", "frames");
    await home.open();
    /** Bytes of state that leave with what is done; some of it may leave by itself. */
    const leaving = async (act: () => Promise<unknown>) => {
      const before = bytesOf(home);
      await act();
      home.checkpointNow();
      await home.until(() => home.checkpoint?.at === lastOf(home));
      return bytesOf(home) - before;
    };
    const whole = await leaving(async () => {
      for (let first = 0; first < 120; first += 40) await home.value("draw", first, 40);
    });
    assert.ok(whole > 53e6, `${whole} bytes`);
    // One of them may be a whole one: where a busy machine had checkpoints between the first frames.
    const changed: number[] = [];
    for (const frame of [60, 61, 62]) changed.push(await leaving(() => home.value("draw", frame, 1)));
    const usual = changed.sort((a, b) => a - b)[1] ?? 0;
    assert.ok(usual > 400_000 && usual < 500_000, `${changed} bytes for frames of 442,368`);
    const sum = await home.value("sum");
    await home.move();
    assert.equal(await home.value("sum"), sum);
    const more = await leaving(() => home.value("draw", 3, 1));
    assert.ok(more < 500_000, `${more} bytes: from what it was opened with`);
  }));

const lastOf = ({ commits }: TestHome): number =>
  Math.max(...commits.map(({ first, count }) => first + count - 1));
const bytesOf = ({ checkpoint }: TestHome): number =>
  (checkpoint?.state ?? []).reduce((sum, { length }) => sum + length, 0);

Deno.test("an isolate that was to share the work is noted, and hurts nobody, when it does not start (P3)", async () => {
  const noted = Promise.withResolvers<string>();
  const pool = new StatefulPool({
    ...{ site: "edge-1", sessionsEach: 1, log: () => {} },
    note: (event, { why }) => noted.resolve(`${event}: ${why}`),
  });
  try {
    let loads = 0;
    const bundle = () => loads++ === 0 ? app.bundle() : Promise.reject(new Error("no bundle"));
    const [one, two] = ["a", "b"].map((id) => new TestHome(pool, { ...app, bundle }, id));
    for (const home of [one, two]) await home?.open();
    assert.deepEqual([await one?.value("count", "x"), await two?.value("count", "x")], [1, 1]);
    assert.equal(await noted.promise, "stateful_isolate_failed: no bundle");
    assert.equal(loads, 2);
    assert.equal(pool.status().sessions, 2);
  } finally {
    await pool.close();
  }
});

/** The app, which can be loaded once only, and how often an isolate was given it. */
function loadedOnce(): { readonly app: typeof app; readonly loads: { count: number } } {
  const loads = { count: 0 };
  const bundle = () => ++loads.count === 1 ? app.bundle() : Promise.reject(new Error("loaded once more"));
  return { app: { ...app, bundle }, loads };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("a pool that expects sessions of an app has it loaded before the first comes", () =>
  withPool(async (pool) => {
    const { app, loads } = loadedOnce();
    pool.expect([app]);
    for (let i = 0; i < 2_000 && loads.count === 0; i++) await pause(10);
    assert.equal(loads.count, 1);
    const home = new TestHome(pool, app, "a");
    await home.open(); // fails where it loads one for itself; the next that waits may have begun meanwhile
    assert.equal(await home.value("count", "x"), 1);
  }, true));

Deno.test("a pool without a process that waits expects nothing", () =>
  withPool(async (pool) => {
    const { app, loads } = loadedOnce();
    pool.expect([app]);
    await pause(600); // twice as long as one is begun behind what is needed
    assert.equal(loads.count, 0);
  }));

Deno.test("a pool that was closed before anything was opened begins nothing, and leaves no timer (P2)", async () => {
  const pool = new StatefulPool({ site: "edge-1", log: () => {}, note: () => {} });
  await pool.close();
  await assert.rejects(new TestHome(pool, app, "late").open(), /the site is stopping/);
});
