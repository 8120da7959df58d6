/** Carries on their way up over a slow link (store/tree/relays.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { Handoff } from "../../../store/session/handoff.ts";
import { packKey } from "../../../store/model/key.ts";
import { WAIT_MS_MAX } from "../../../store/model/limits.ts";
import { decodeMessage } from "../../../store/wire/message.ts";
import { Wards } from "../../../store/wards/wards.ts";
import { START_MS, World } from "../../sim/world.ts";

/** A source two levels below the root, whose link takes a message when it is told to. */
function site() {
  const world = new World(), sent: string[] = [], room: (() => void)[] = [];
  const core = new Core(
    { site: "s", parent: "c", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => START_MS + world.nowMs,
        steadyMs: () => START_MS + world.nowMs,
        after: (ms, callback) => world.after(ms, callback),
        turn: () => world.sleep(0),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: {
        send: (to, bytes) => {
          const message = decodeMessage(bytes);
          sent.push(`${to}: ${message.kind === "ask" ? `${message.id} of ${message.to}` : message.kind}`);
          return new Promise((resolve) => room.push(resolve));
        },
      },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = 5;
  core.setPath(["root", "c"]);
  const host = { stableOwn: () => 0, eager: () => {}, ahead: () => {} };
  const wards = new Wards(core, {
    ...host,
    wanted: () => [],
    policy: () => "fail",
    moved: () => {},
    fail: () => {},
    afterCommit: () => Promise.resolve(),
  });
  const handoff = new Handoff(core, { ...host, wards });
  const ask = (id: number, to = "d") => {
    const row = {
      key: packKey(["x"]),
      clock: 1,
      replica: 5,
      known: 2,
      expiresAtMs: 0,
      value: new Uint8Array(1),
    };
    const what = { id, to, replica: 5, depth: 0, need: 0, rows: [row], trace: "" };
    void handoff.asked(to, { kind: "ask", ...what });
  };
  const pass = (ms: number) => world.run(world.nowMs + ms);
  const take = async () => {
    room.shift()?.();
    await pass(1);
  };
  return { core, sent, ask, pass, take };
}

Deno.test("a carry waits while the link takes another for the same destination, and goes then (Y1)", async () => {
  const { sent, ask, pass, take } = site();
  ask(1);
  ask(2);
  ask(3, "other");
  ask(4);
  await pass(10);
  assert.deepEqual(sent.splice(0), ["c: 1 of d", "c: 3 of other"]);
  await take();
  assert.deepEqual(sent.splice(0), ["c: 2 of d"]);
  await take();
  await take();
  assert.deepEqual(sent, ["c: 4 of d"]);
});

Deno.test("a carry that nobody waits for any more is dropped, and the next one goes (Y2)", async () => {
  const { core, sent, ask, pass, take } = site();
  ask(1);
  ask(2);
  await pass(WAIT_MS_MAX / 2);
  ask(3);
  await pass(WAIT_MS_MAX / 2 + 100);
  assert.deepEqual(sent.splice(0), ["c: 1 of d"]);
  await take();
  assert.deepEqual(sent, ["c: 3 of d"]);
  assert.equal(core.counters["ask_stale"], 1);
});
