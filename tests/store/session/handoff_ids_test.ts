/** What an answer of a session's source, or of who stands in for it, does not do (store/model/question.ts, H6). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { Handoff } from "../../../store/session/handoff.ts";
import { packKey } from "../../../store/model/key.ts";
import { WAIT_MS_MAX } from "../../../store/model/limits.ts";
import { decodeMessage, type RowsAsk } from "../../../store/wire/message.ts";
import { encodeJson, GAPS_KEY, replicaKey } from "../../../store/members/topology.ts";
import { Wards } from "../../../store/wards/wards.ts";
import { Draws } from "../../sim/random.ts";
import { START_MS, World } from "../../sim/world.ts";

/** A process of site d below the root, which knows of sites s and t. */
function processOf(world: World, draws: Draws) {
  const asks: RowsAsk[] = [];
  const core = new Core(
    { site: "d", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => START_MS + world.nowMs,
        steadyMs: () => START_MS + world.nowMs,
        after: (ms, callback) => world.after(ms, callback),
        turn: () => world.sleep(0),
      },
      random: draws,
      storage: new MemoryStorage(),
      network: {
        send: (_, bytes) => {
          const message = decodeMessage(bytes);
          if (message.kind === "ask") asks.push(message);
          return Promise.resolve();
        },
      },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = 9;
  core.setPath(["root"]);
  const root = { site: "root", path: ["root"], parent: 0, from: 0 };
  core.rows.put(core.own(replicaKey(1), encodeJson(root)));
  for (const [number, site] of [[9, "d"], [5, "s"], [6, "t"]] as const) {
    const claim = { site, path: ["root", site], parent: 1, from: 0 };
    core.rows.put(core.own(replicaKey(number), encodeJson(claim)));
  }
  const wards = new Wards(core, {
    wanted: () => [],
    policy: () => "fail",
    moved: () => {},
    fail: () => {},
    afterCommit: () => Promise.resolve(),
    stableOwn: () => 0,
  });
  const handoff = new Handoff(core, { stableOwn: () => 0, eager: () => {}, ahead: () => {}, wards });
  const arrive = async (replica: number, path: readonly (number | null)[] = [null, 3]) => {
    const token = {
      session: new Uint8Array(16),
      sequence: 1,
      replica,
      clock: 7,
      path,
      open: false,
    };
    return await handoff.arrive(token, "");
  };
  return { core, handoff, asks, arrive };
}

Deno.test("handoff: what was asked by a process that died is no answer to the next one", async () => {
  const world = new World(), draws = new Draws("handoff ids");
  const before = processOf(world, draws.fork("before")), after = processOf(world, draws.fork("after"));
  before.arrive(5).catch(() => {});
  const arrived = after.arrive(6).then(() => "carried", () => "told");
  await world.run(10);
  const key = packKey(["of another session"]);
  const clock = after.core.clock.tick();
  const row = { key, clock, replica: 5, known: 1, expiresAtMs: 0, value: new Uint8Array(1) };
  const answer = { kind: "carry", outcome: "rows", need: 0, clock, rows: [row] } as const;
  after.handoff.answered("s", { ...answer, id: before.asks[0]?.id ?? 0 });
  await world.run(3_000);
  assert.equal(await arrived, "told");
  assert.deepEqual(await after.core.rows.lookup([key]), [undefined]);
});

Deno.test("handoff: nothing is carried before what the token names has arrived, whatever its source had by then (H6)", async () => {
  const world = new World(), { core, handoff, asks, arrive } = processOf(world, new Draws("handoff need"));
  core.down = [5];
  let arrival: unknown = null;
  void arrive(5, [8, 3]).then((came) => arrival = came);
  await world.run(10);
  // An owner's copy of the source is as of the last position that it wrote: it had read on since.
  const carry = { kind: "carry", outcome: "rows", need: 4, clock: core.clock.tick(), rows: [] } as const;
  handoff.answered("s", { ...carry, id: asks[0]?.id ?? 0 });
  await world.run(100);
  assert.equal(arrival, null);
  core.down = [8];
  core.advanced();
  await world.run(10);
  assert.notEqual(arrival, null);
});

Deno.test("handoff: what was asked under one number is not taken in under the next, also when all that it names has come (H10)", async () => {
  for (const isAnother of [false, true]) {
    const world = new World(),
      { core, handoff, asks, arrive } = processOf(world, new Draws("handoff number"));
    core.down = [5];
    let told = "waits";
    void arrive(5).then(({ how }) => told = how, ({ code }) => told = code);
    await world.run(10);
    const key = packKey(["carried"]), clock = core.clock.tick();
    const row = { key, clock, replica: 5, known: 1, expiresAtMs: 0, value: new Uint8Array(1) };
    const carry = { kind: "carry", outcome: "rows", need: 8, clock, rows: [row] } as const;
    handoff.answered("s", { ...carry, id: asks[0]?.id ?? 0 });
    await world.run(100);
    assert.equal(told, "waits", "what it may depend on has not come");
    if (isAnother) {
      const claim = { site: "d", path: ["root", "d"], parent: 1, from: 9 };
      core.rows.put(core.own(replicaKey(10), encodeJson(claim)));
      core.replica = 10;
    }
    core.down = [8];
    core.advanced();
    await world.run(3_000);
    assert.equal(told, isAnother ? "source_unreachable" : "carry");
    const [found] = await core.rows.lookup([key]);
    assert.equal(found !== undefined, !isAnother);
  }
});

Deno.test("handoff: a session is told that it saw what went with the root's disk, where its source says that it did (H13)", async () => {
  for (const [need, isLost] of [[59, false], [70, true], [81, false]] as const) {
    const world = new World(), { core, handoff, asks, arrive } = processOf(world, new Draws("handoff gap"));
    core.rows.put(core.own(GAPS_KEY, encodeJson([{ from: 60, to: 80, clock: 7 }])));
    core.down = [100];
    let told = "waits";
    void arrive(5).then(({ how }) => told = how, ({ code }) => told = code);
    await world.run(10);
    const carry = { kind: "carry", outcome: "rows", need, clock: core.clock.tick(), rows: [] } as const;
    handoff.answered("s", { ...carry, id: asks[0]?.id ?? 0 });
    await world.run(100);
    assert.equal(told, isLost ? "source_lost" : "carry", `${need}`);
  }
});

Deno.test("handoff: what is carried is not taken in without what it may depend on, however long that is not there (H6)", async () => {
  const world = new World(),
    { core, handoff, asks, arrive } = processOf(world, new Draws("handoff in vain"));
  core.down = [5];
  let told = "waits";
  void arrive(5).then(({ how }) => told = how, ({ code }) => told = code);
  await world.run(10);
  const key = packKey(["carried"]), clock = core.clock.tick();
  const row = { key, clock, replica: 5, known: 1, expiresAtMs: 0, value: new Uint8Array(1) };
  const carry = { kind: "carry", outcome: "rows", need: 8, clock, rows: [row] } as const;
  handoff.answered("s", { ...carry, id: asks[0]?.id ?? 0 });
  await world.run(4 * WAIT_MS_MAX);
  assert.equal(told, "source_unreachable");
  assert.deepEqual(await core.rows.lookup([key]), [undefined]);
});
