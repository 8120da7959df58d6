/** What modules and classes hold can't be changed by stateful sessions, in real isolates; honest programs see nothing of it. */
import assert from "node:assert/strict";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

const bundled = await bundleApp(fromFileUrl(new URL("module_state_app.ts", import.meta.url)));
if (bundled.kind === "failed") throw new Error(bundled.message);
const { locate } = bundled;
const code = new TextDecoder().decode(bundled.code);
const app = appOf(code, { limits: { cpuMs: 2_000 } });
/** Another version, whose second level is another. */
const harder = appOf(code.replace('name: "hard"', 'name: "harder"'), { limits: { cpuMs: 2_000 } });

async function withPool(run: (pool: StatefulPool, notes: string[]) => Promise<void>): Promise<void> {
  const notes: string[] = [];
  const pool = new StatefulPool({
    site: "edge-1",
    log: (_, __, text) => void notes.push(`${text}`),
    note: () => {},
  });
  await run(pool, notes).finally(() => pool.close());
}

const CHANGES: readonly (readonly [how: string, names: RegExp])[] = [
  ["variable", /counted of module_state_app\.ts/],
  ["destructured", /pair of/],
  ["loop", /looped of/],
  ["in a callback", /counted of/],
  ["elsewhere", /n of module_state_parts\.ts/],
  ["in a closure", /next of module_state_parts\.ts/],
  ["in a closure's map", /kept of module_state_parts\.ts by set/],
  ["bound", /argument 1 of a bound function/],
  ["private field", /#last of module_state_parts\.ts/],
  ["private map", /#rooms of module_state_parts\.ts by set/],
  ["private static", /#secret of/],
  ["static", /Probe\.total/],
  ["static by constructor", /Probe\.total/],
  ["static map", /Probe\.byId by set/],
  ["static list", /Probe\.list/],
  ["inherited static", /Base\.shared/],
  ["object", /config\.limits\.max/],
  ["new property", /"left"/],
  ["list", /config\.names/],
  ["delete", /config\.limits/],
  ["assign", /config\.limits\.max/],
  ["held by a map", /rooms\.get\(…\)\.open/],
  ["map", /rooms by set/],
  ["map by its prototype", /rooms by set/],
  ["map's subclass", /loud by set/],
  ["set", /seen by add/],
  ["map, where it has none", /rooms by getOrInsert/],
  ["map, computed", /rooms by getOrInsertComputed/],
  ["map by a method kept from before", /rooms by set/],
  ["weak map, where it has none", /byObject by getOrInsert/],
  ["weak map", /byObject by set/],
  ["weak set", /weakSeen by add/],
  ["date", /born by setFullYear/],
  ["global expression", /lastIndex of word \(\/\\w\/g\)/],
  ["sticky expression", /lastIndex of sticky/],
  ["bytes", /scratch/],
  ["view", /view/],
  ["plain expression", /"lastIndex"|plainWord\.lastIndex/],
  ["bytes that are taken away", /scratch by transfer/],
  ["bytes that go with a clone", /scratch by transfer/],
  ["bytes that go with a stream", /scratch by transfer/],
  ["bytes that are resized", /sized by resize/],
  ["what is disposed of", /disposed by defer/],
  ["iterator's helper", /helped by next/],
  ["async generator", /lateIds by next/],
  ["package's collection", /tree by set/],
  ["address", /place by pathname/],
  ["address's parameters", /place\.searchParams by set/],
  ["decoder", /decoder by decode/],
  ["response", /page by text/],
  ["stream", /source by getReader/],
  ["stream's end", /through\.writable by getWriter/],
  ["digest", /digest by update/],
  ["event", /told\.detail/],
  ["context", /context by disable/],
  ["promise", /a promise that was open/],
  ["executor's promise", /a promise that was open/],
  ["event target", /bus by addEventListener/],
  ["parameters", /query by set/],
  ["headers", /heads by set/],
  ["generator", /ids by next/],
  ["iterator", /shared by next/],
  ["function", /"kept"/],
  ["prototype", /"left"/],
  ["method", /read/],
  ["closure kept", /handlers|shared/],
  ["global", /globalThis\.left/],
  ["late global", /"left"/],
  ["global object", /"left"/],
  ["replaced class", /globalThis\.Response/],
  ["environment", /"LEFT"/],
  ["emitter", /made|_events|said/],
  ["replaced global", /parseInt/],
];

Deno.test("a session that changes what a module or class holds fails with its name, and has changed nothing (MF5; guarded.ts GD1, GD2; late_globals.ts LG1; runtime/bundle/module_state.ts MS1, MS3)", () =>
  withPool(async (pool) => {
    const [a, b] = [new TestHome(pool, app, "a"), new TestHome(pool, app, "b")];
    await a.open();
    await b.open();
    const before = await b.value("read");
    for (const [how, names] of CHANGES) {
      const outcome = await a.call("change", how);
      assert.deepEqual(
        [outcome.kind, outcome.kind === "error" && outcome.code],
        ["error", "module_state"],
        `${how}: ${JSON.stringify(outcome)}`,
      );
      const message = outcome.kind === "error" ? outcome.message : "";
      assert.match(message, names, `${how}: ${message}`);
      assert.match(message, /Keep it in a field of the session/, how);
    }
    const late = await a.call("late");
    assert.deepEqual([late.kind, late.kind === "error" && late.code], ["error", "module_state"]);
    assert.deepEqual([await a.value("read"), await b.value("read")], [before, before]);
    assert.deepEqual(
      await a.value("change", "swallowed"),
      0,
      "a program that catches it has changed nothing",
    );
    await a.move();
    assert.deepEqual([a.parked, b.parked], [null, null]);
    assert.deepEqual(await a.value("read"), before);
  }));

Deno.test("a session that goes on where its stack was full fails before it answers: no replay would be as deep (MF6, runtime/bundle/module_state.ts MS5)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    assert.equal(await home.value("deep", "bounded"), 100);
    assert.equal(await home.value("deepPromise", "bounded"), 100);
    for (
      const [method, how] of [
        ...["named", "bare", "both"].map((how) => ["deep", how] as const),
        ...["alone", "behind a clause"].map((how) => ["deepFinally", how] as const),
        ["deepTakenApart", ""] as const,
        ...["catch", "then", "all settled", "any", "async"].map((how) => ["deepPromise", how] as const),
      ]
    ) {
      const outcome = await home.call(method, how);
      assert.deepEqual(
        [outcome.kind, outcome.kind === "error" && outcome.code],
        ["error", "stack_full"],
        how,
      );
    }
    await home.move();
    assert.deepEqual([home.parked, await home.value("deep", "bounded")], [null, 100]);
  }));

Deno.test("what a session imports when it uses it was loaded with the rest: the same for all, and nobody changes it (runtime/bundle/module_state.ts MS6)", () =>
  withPool(async (pool) => {
    const [a, b] = [new TestHome(pool, app, "a"), new TestHome(pool, app, "b")];
    await a.open();
    await b.open();
    const loaded = [Date.UTC(2025, 0, 1), "number", "function"];
    for (const home of [a, b, a]) assert.deepEqual(await home.value("importLate"), loaded);
    const outcome = await a.call("countLate");
    assert.deepEqual([outcome.kind, outcome.kind === "error" && outcome.code], ["error", "module_state"]);
    await a.move();
    assert.deepEqual([a.parked, await a.value("importLate")], [null, loaded]);
  }));

Deno.test("sessions that only read what modules hold, and packages that make things on first use, see nothing of it", () =>
  withPool(async (pool, notes) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    const read = [6, 2, "1 1 a", 5, 2, true, 2, "own", true, 256, 1, 3, "1", 0, 0, 0, 5, '{"max":5}'];
    const packages = ["tea", 2, { hello: "ann" }, "2026/01/02", false, 1];
    for (let i = 0; i < 3; i++) {
      assert.deepEqual(await home.value("read"), read);
      assert.deepEqual(await home.value("packages"), packages);
      assert.equal(await home.value("buffers"), 1, "a pool would show what other sessions had in it");
      assert.equal(await home.value("keep"), 5);
      assert.deepEqual(await home.value("inContext"), ["none", 1, "none", 64]);
      assert.deepEqual(await home.value("emitters"), [1, 1, "1"]);
      assert.equal(await home.value("limit"), 10);
      if (i === 1) home.checkpointNow();
      await home.move();
      assert.equal(home.parked, null);
    }
    assert.deepEqual(notes, []);
  }));

Deno.test("state that is shared and too large to be watched is named in the log when its app loads (MF4)", () =>
  withPool(async (pool, notes) => {
    const large = appOf(code.replace("scratch = new Uint8Array(8)", "scratch = new Uint8Array(100_000)"));
    const home = new TestHome(pool, large, "a");
    await home.open();
    assert.equal(notes.length, 1, notes.join());
    assert.match(notes[0] ?? "", /all stateful sessions share scratch.*100000 bytes, and nobody watches/);
  }));

Deno.test("what a module holds is its own in a field too: after checkpoints, at other sites, in versions that hold the same (MF7)", () =>
  withPool(async (pool) => {
    const home = new TestHome(pool, app, "a");
    await home.open();
    await home.value("keepOfModules");
    const all = ["rooms", "scratch", "view", "born", "level", "levels", "key", "frozen", "hard"];
    assert.deepEqual(await home.value("areOfModules"), all);
    home.checkpointNow();
    await home.until(() => home.checkpoint !== null);
    assert.deepEqual(await home.value("areOfModules"), all);
    home.checkpointNow();
    await home.move();
    assert.deepEqual([home.parked, await home.value("areOfModules")], [null, all]);
    home.checkpointNow();
    await home.value("areOfModules");
    home.leave();
    const other = new TestHome(pool, harder, "a");
    other.checkpoint = home.checkpoint;
    other.epoch = home.epoch + 1;
    await other.open();
    const without = all.filter((each) => each !== "level" && each !== "levels");
    assert.deepEqual([other.parked, await other.value("areOfModules")], [null, without]);
  }));

Deno.test("what a package keeps in variables is as it was loaded when a turn begins, and goes on within a handler", () =>
  withPool(async (pool) => {
    // Of one seed: they draw the same where none has what another drew before.
    const [a, b] = [new TestHome(pool, app, "a"), new TestHome(pool, app, "b")];
    await a.open();
    await b.open();
    const first = await a.value("draws");
    assert.deepEqual(await b.value("draws"), first);
    assert.equal(new Set(first as string[]).size, 4, "nothing is drawn twice within a handler that waits");
    const next = await a.value("draws");
    assert.notDeepEqual(next, first);
    await b.move();
    assert.deepEqual([b.parked, new Set([...next as string[], ...first as string[]]).size], [null, 8]);
  }));

Deno.test("a variable of one session that a function changes in a turn of another stays as it is", () =>
  withPool(async (pool) => {
    const [a, b] = [new TestHome(pool, app, "a"), new TestHome(pool, app, "b")];
    await a.open();
    await b.open();
    await a.call("lend");
    assert.equal(await a.value("useLent"), 1);
    const outcome = await b.call("useLent");
    assert.deepEqual([outcome.kind, outcome.kind === "error" && outcome.code], ["error", "session_shared"]);
    assert.match(
      outcome.kind === "error" ? outcome.message : "",
      /probe\/a changes its variable lent \(module_state_app\.ts\)/,
    );
    assert.equal(await a.value("useLent"), 2);
  }));

Deno.test("places in a bundle that asks are those of its modules (runtime/bundle/module_state.ts MS4)", async () => {
  const text = new TextDecoder().decode(bundled.code).split("\n");
  const line = text.findIndex((each) => each.includes("counted = 5"));
  const column = (text[line] ?? "").indexOf("counted = 5");
  const source = await Deno.readTextFile(new URL("module_state_app.ts", import.meta.url));
  const at = source.split("\n").findIndex((each) => each.includes("counted = 5")) + 1;
  assert.match(locate(`bundle:${line + 1}:${column + 1}`), new RegExp(`module_state_app\\.ts:${at}:\\d+$`));
});
