/** What an owner gives back of rows that a disk has damaged (store/wards/regain.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { REGAIN_EVERY_MS } from "../../../store/model/limits.ts";
import type { Row } from "../../../store/model/row.ts";
import { Regain } from "../../../store/wards/regain.ts";
import type { StoodIn } from "../../../store/wire/ward_message.ts";
import { START_MS, World } from "../../sim/world.ts";

const keyOf = (i: number): Key => packKey(["row", i]);
const rowOf = (i: number, clock = 5): Row => ({
  ...{
    key: keyOf(i),
    value: Uint8Array.of(i),
    clock,
    replica: 7,
    known: 1,
    position: 10 * i,
    expiresAtMs: 0,
  },
});

/** A site below the root of which rows 1 to 3 were pending, at 10, 20 and 30, and are damaged. */
function damaged() {
  const world = new World();
  const core = new Core(
    { site: "e", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
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
      note: () => {},
    },
  );
  core.setPath(["root"]);
  core.replica = 7;
  core.rows.resumeAt(40);
  core.clock.merge(100);
  for (const i of [1, 2, 3]) {
    core.pending.add(rowOf(i));
    core.damage.healed([], [keyOf(i)]);
  }
  return { world, core };
}

/** What an owner says: its ward reaches a position. */
const answer = (position: number, rows: readonly Row[], outcome: StoodIn["outcome"] = "rows"): StoodIn => ({
  ...{ kind: "stoodIn", id: 1, position, config: 1, clock: 1, down: [], outcome, rows },
});

const lost = (core: Core): number[] => core.damage.pending.map(({ position }) => position);

Deno.test("only what an owner's ward reaches to is taken from it, as it was (RG1)", async () => {
  const { world, core } = damaged(), asked: number[] = [];
  const answers: Record<string, StoodIn | null> = {
    silent: null,
    behind: answer(0, [rowOf(1), rowOf(2), rowOf(3)], "behind"),
    short: answer(20, [rowOf(1), rowOf(2), rowOf(3, 4)]),
  };
  const regain = new Regain(core, {
    ask: (owner, { position }) => {
      asked.push(position);
      return Promise.resolve(answers[owner] ?? null);
    },
    owners: () => Object.keys(answers),
    fail: (error) => assert.fail(`${error}`),
  });
  regain.begin();
  regain.begin();
  await world.run(10);
  assert.deepEqual(asked, [10, 10, 10], "how far it has to reach for the first of them, once");
  assert.deepEqual(lost(core), [10, 20, 30], "until what took their place is on the disk");
  const frozen = core.rows.freeze();
  assert.deepEqual(frozen.commit.rows.map(({ key, known }) => [key, known]), [[keyOf(1), 1], [keyOf(2), 1]]);
  core.rows.settle(frozen);
  core.damage.committed(frozen.changes);
  assert.deepEqual(lost(core), [30], "what it had of the third was of before");
  answers["whole"] = answer(30, [rowOf(3)]);
  await world.run(REGAIN_EVERY_MS + 10);
  assert.deepEqual(asked.slice(3), [30, 30, 30, 30]);
  const last = core.rows.freeze();
  core.rows.settle(last);
  core.damage.committed(last.changes);
  assert.deepEqual([lost(core), core.counters["rows_regained"]], [[], 3]);
  await world.run(world.nowMs + 3 * REGAIN_EVERY_MS);
  assert.equal(asked.length, 7, "nobody is asked any more");
});

Deno.test("what an owner says of an incarnation that this site has left meanwhile is void", async () => {
  const { world, core } = damaged(), said = Promise.withResolvers<StoodIn | null>();
  const regain = new Regain(core, {
    ask: () => said.promise,
    owners: () => ["owner"],
    fail: (error) => assert.fail(`${error}`),
  });
  regain.begin();
  await world.run(10);
  core.replica = 8;
  said.resolve(answer(30, [rowOf(1), rowOf(2), rowOf(3)]));
  await world.run(10);
  assert.equal(core.rows.dirty && core.rows.freeze().commit.rows.length > 0, false);
});
