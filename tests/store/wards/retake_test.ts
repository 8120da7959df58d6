/** What a site that lost its disk takes back from the owners of that (store/wards/retake.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { encodeJson, endedKey, removedKey, replicaKey, siteKey } from "../../../store/members/topology.ts";
import { recoveredKey, wardsKey } from "../../../store/members/configuration.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { OWNERS_WAIT_MS, REGAIN_EVERY_MS } from "../../../store/model/limits.ts";
import { CLOCK_TICKS_PER_MS, type Position, type Row } from "../../../store/model/row.ts";
import { Retake } from "../../../store/wards/retake.ts";
import type { StoodIn } from "../../../store/wire/ward_message.ts";
import { START_MS, World } from "../../sim/world.ts";

/** Incarnations: of the root, of c before and now, of e below it, and of another site. */
const ROOT = 1, FORMER = 10, NOW = 11, CHILD = 20, OTHER = 30;
const DOWN = 100;
const ROW = packKey(["row"]);

/** What its disk had. */
const rowAt = (clock: number): Row => ({
  ...{ key: ROW, value: Uint8Array.of(7), clock, replica: FORMER, known: 1, expiresAtMs: 0, position: 1 },
});

/** Site c below the root, blank: before it had owners o and p. */
function blank(hasChild = true) {
  const world = new World(), asked: string[] = [], notes: string[] = [];
  const core = new Core(
    { site: "c", parent: "root", tier: "", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => START_MS + world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, callback) => world.after(ms, callback),
        turn: () => world.sleep(0),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: (event) => void notes.push(event),
    },
  );
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  const stands = (number: number, path: readonly string[], parent: number, from = 0) =>
    write(replicaKey(number), { site: path.at(-1), path, parent, from });
  stands(ROOT, ["root"], 0);
  stands(FORMER, ["root", "c"], ROOT);
  stands(NOW, ["root", "c"], ROOT);
  if (hasChild) stands(CHILD, ["root", "c", "e"], FORMER);
  stands(OTHER, ["root", "f"], ROOT);
  if (hasChild) write(siteKey("e"), { id: "e", parent: "c", path: ["root", "c", "e"] });
  core.replica = NOW;
  core.setPath(["root"]);
  core.parentReplica = ROOT;
  core.down = [DOWN];
  const owned = (number: number, owners: readonly string[], config = 1) =>
    write(wardsKey(number), { number: config, owners, previous: [] });
  owned(FORMER, ["o", "p"]);
  const answers = new Map<string, StoodIn>();
  let again = 0;
  const retake = new Retake(core, {
    ask: (owner) => {
      asked.push(owner);
      const answer = answers.get(owner) ?? null;
      return world.sleep(5).then(() => answer);
    },
    fail: (error) => {
      throw error;
    },
  });
  const answer = (owner: string, part: Partial<StoodIn> = {}) =>
    answers.set(owner, {
      ...{ outcome: "rows", config: 1, clock: core.clock.tick(), down: [DOWN] },
      rows: [rowAt(core.clock.last)],
      ...part,
    } as unknown as StoodIn);
  const run = async (): Promise<string> => {
    if (retake.isOver(() => void again++)) return "nothing to do";
    await world.run(world.nowMs + 50);
    return again > 0 ? "over" : "waits";
  };
  const has = async () => (await core.rows.lookup([ROW]))[0] !== undefined;
  return { core, world, asked, notes, write, stands, owned, answer, run, has, retake, again: () => again };
}

type Blank = ReturnType<typeof blank>;

Deno.test("only what its disk had under this very parent is asked for (B1)", async () => {
  const rows: readonly (readonly [string, (all: Blank) => void, readonly string[]])[] = [
    ["its owners are asked", () => {}, ["o", "p"]],
    ["one of them is gone for good", ({ write }) => write(removedKey("o"), {}), ["p"]],
    ["all of them are", ({ write }) => ["o", "p"].forEach((id) => write(removedKey(id), {})), []],
    ["it is that incarnation", ({ core }) => void (core.replica = FORMER), []],
    ["it has another parent", ({ core }) => void (core.parentReplica = 99), []],
    ["it was taken off the tree", ({ write }) => write(endedKey(FORMER), { stable: 1, removed: true }), []],
    [
      "an owner has put all of it into the tree",
      ({ write }) => write(recoveredKey(FORMER, "o"), { position: 5, down: [DOWN], config: 1, clock: 1 }),
      [],
    ],
    [
      "an owner had nothing of it",
      ({ write }) => write(recoveredKey(FORMER, "o"), { position: 0, down: [DOWN], config: 1, clock: 1 }),
      ["p"],
    ],
    [
      "an owner has put into the tree what was told under others before",
      ({ write, owned }) => {
        owned(FORMER, ["o", "p"], 2);
        write(recoveredKey(FORMER, "o"), { position: 5, down: [DOWN], config: 1, clock: 1 });
      },
      ["p"],
    ],
    ["another site has owners", ({ owned }) => owned(OTHER, ["q"]), ["o", "p"]],
  ];
  for (const [says, given, expected] of rows) {
    const all = blank();
    for (const owner of ["o", "p"]) all.answer(owner);
    given(all);
    const outcome = await all.run();
    assert.deepEqual(all.asked.toSorted(), expected, says);
    assert.equal(outcome, expected.length > 0 ? "over" : "nothing to do", says);
    assert.equal(await all.has(), expected.length > 0, says);
  }
});

Deno.test("a site without children takes back what it had told as well (B1)", async () => {
  const all = blank(false);
  for (const owner of ["o", "p"]) all.answer(owner);
  assert.equal(await all.run(), "over");
  assert.equal(await all.has(), true);
});

Deno.test("who was silent is asked on beside all else, until it has answered (B6)", async () => {
  const all = blank(), { core, world, asked, retake } = all;
  all.write(endedKey(FORMER), { stable: 1 });
  await all.run();
  await world.run(world.nowMs + OWNERS_WAIT_MS + 500);
  assert.deepEqual([all.again(), await all.has()], [1, false]);
  retake.begin();
  retake.begin();
  await world.run(world.nowMs + REGAIN_EVERY_MS / 2);
  const rounds = async (count: number) => {
    asked.length = 0;
    await world.run(world.nowMs + count * (REGAIN_EVERY_MS + 5));
    return asked.toSorted().join();
  };
  assert.equal(await rounds(2), "o,o,p,p");
  all.answer("o", { config: 0, position: 5, rows: [] });
  await rounds(1);
  assert.equal(core.topology.wards.recovered(FORMER).get("c")?.position, 5);
  assert.equal(await rounds(2), "p,p", "the other one may have been told more");
  all.answer("p", { position: 7, down: [DOWN + 1] });
  await rounds(1);
  assert.deepEqual([await all.has(), await rounds(1)], [false, "p"], "its causes are still to come");
  core.down = [DOWN + 1];
  await rounds(2);
  assert.deepEqual([await all.has(), await rounds(2)], [true, ""]);
  assert.equal(core.topology.wards.recovered(FORMER).get("c")?.position, 7);
});

Deno.test("beside all else nothing is taken that no carry would bring, and nothing where nothing was lost (B6)", async () => {
  const old = blank(), clock = old.core.clock.tick();
  old.write(endedKey(FORMER), { stable: 1 });
  old.answer("o", { rows: [rowAt(clock)] });
  old.core.clock.merge(clock + old.core.horizonMs * CLOCK_TICKS_PER_MS);
  old.retake.begin();
  await old.world.run(old.world.nowMs + 3 * REGAIN_EVERY_MS);
  assert.deepEqual([await old.has(), old.notes], [false, ["ward_not_retaken"]]);
  assert.deepEqual(old.asked.filter((owner) => owner === "o"), ["o"], "it gets no younger");
  const moved = blank();
  moved.write(endedKey(FORMER), { stable: 1, next: NOW });
  moved.stands(NOW, ["root", "c"], ROOT, FORMER);
  for (const owner of ["o", "p"]) moved.answer(owner);
  moved.retake.begin();
  await moved.world.run(moved.world.nowMs + 50);
  assert.deepEqual(moved.asked, []);
});

Deno.test("it goes on when one owner has answered that knows the newest owners, and what that names has come (B1, B2)", async () => {
  const one = blank();
  one.answer("p");
  assert.equal(await one.run(), "over");
  assert.equal(await one.has(), true);
  assert.equal(one.core.counters["retaken_rows"], 1);
  const old = blank();
  old.owned(FORMER, ["o", "p"], 2);
  old.answer("p"); // as of before the newest
  assert.equal(await old.run(), "waits");
  old.answer("o", { config: 2 });
  await old.world.run(old.world.nowMs + OWNERS_WAIT_MS / 2);
  assert.equal(old.again(), 1);
  assert.deepEqual(old.notes, []);
  const causes = blank();
  for (const owner of ["o", "p"]) causes.answer(owner, { down: [DOWN + 1] });
  assert.equal(await causes.run(), "waits");
  causes.core.down = [DOWN + 1];
  await causes.world.run(causes.world.nowMs + OWNERS_WAIT_MS / 2);
  assert.equal(await causes.has(), true);
  assert.equal(causes.retake.isOver(() => {}), true, "under this number");
});

Deno.test("behind what it takes back it writes the word of that, as an owner does (B5)", async () => {
  const rows: readonly (readonly [string, Partial<StoodIn>, boolean, number | undefined])[] = [
    ["its end is known", {}, true, 7],
    ["its end is not known", {}, false, undefined],
    ["its owner had nothing of it", { position: 0, rows: [] }, true, undefined],
    ["its causes are away", { down: [DOWN + 5] }, true, undefined],
  ];
  for (const [says, part, isOver, position] of rows) {
    const all = blank(), { core } = all;
    if (isOver) all.write(endedKey(FORMER), { stable: 1 });
    all.answer("o", { position: 7, ...part });
    core.down = [DOWN + 1];
    await all.run();
    await all.world.run(all.world.nowMs + OWNERS_WAIT_MS + 1_500);
    assert.equal(all.again(), 1, says);
    const word = core.topology.wards.recovered(FORMER).get("c");
    assert.equal(word?.position, position, says);
    if (word === undefined) continue;
    assert.deepEqual([word.down, word.config], [[DOWN + 1], 1]);
    const [row, said] = await core.rows.lookup([ROW, recoveredKey(FORMER, "c")]);
    assert.ok((row?.position ?? Infinity) < (said?.position ?? 0), "behind its rows");
  }
});

Deno.test("the word of what was taken back is never of less than before (B5)", async () => {
  const rows: readonly (readonly [number, number])[] = [[7, 9], [9, 9], [10, 10]];
  for (const [position, expected] of rows) {
    const all = blank(), { core } = all;
    all.write(endedKey(FORMER), { stable: 1 });
    all.owned(FORMER, ["o", "p"], 2);
    all.write(recoveredKey(FORMER, "c"), { position: 9, down: [DOWN], config: 1, clock: 1 });
    all.answer("o", { position, down: [DOWN - 1] });
    await all.run();
    await all.world.run(all.world.nowMs + OWNERS_WAIT_MS + 1_500);
    assert.equal(await all.has(), true);
    assert.equal(core.topology.wards.recovered(FORMER).get("c")?.position, expected);
  }
});

Deno.test("owners are waited for so long and no longer, and the log says what is missed (B3)", async () => {
  for (const isAnswered of [true, false]) {
    const all = blank();
    all.owned(FORMER, ["o", "p"], 2);
    if (isAnswered) all.answer("p");
    assert.equal(await all.run(), "waits");
    await all.world.run(all.world.nowMs + OWNERS_WAIT_MS - 500);
    assert.equal(all.again(), 0);
    await all.world.run(all.world.nowMs + 1_500);
    assert.equal(all.again(), 1);
    assert.deepEqual(all.notes, ["ward_not_retaken"]);
    assert.equal(await all.has(), isAnswered, "what has been answered is taken");
  }
});

Deno.test("a ward is left alone where it is too large, is behind, or names what has not come (B1, B4)", async () => {
  const rows: readonly (readonly [string, Partial<StoodIn>, readonly string[]])[] = [
    ["too large", { outcome: "too_large", rows: [] }, ["ward_not_retaken", "ward_not_retaken"]],
    ["behind", { outcome: "behind" }, ["ward_not_retaken"]],
    ["its causes are away", { down: [DOWN + 1 as Position] }, ["ward_not_retaken"]],
  ];
  for (const [says, part, notes] of rows) {
    const all = blank();
    all.answer("o", part);
    await all.run();
    await all.world.run(all.world.nowMs + OWNERS_WAIT_MS + 1_500);
    assert.equal(all.again(), 1, says);
    assert.deepEqual([...new Set(all.notes)], [...new Set(notes)], says);
    assert.equal(await all.has(), false, says);
  }
});

Deno.test("of a ward with rows that are too old the rest is taken where the root has those, and nothing where it may not (B4)", async () => {
  const OLD = packKey(["old"]);
  for (const isAtRoot of [true, false]) {
    const all = blank(), { core } = all;
    const old = core.clock.tick(), after = core.clock.tick();
    all.write(endedKey(FORMER), { stable: isAtRoot ? old : old - 1 });
    core.watermark = old;
    all.answer("o", { rows: [{ ...rowAt(old), key: OLD }, rowAt(after)] });
    all.answer("p", { outcome: "behind", rows: [] });
    await all.run();
    await all.world.run(all.world.nowMs + OWNERS_WAIT_MS + 1_500);
    assert.equal(await all.has(), isAtRoot);
    assert.deepEqual(await core.rows.lookup([OLD]), [undefined]);
    assert.deepEqual(all.notes, isAtRoot ? [] : ["ward_not_retaken"]);
  }
});
