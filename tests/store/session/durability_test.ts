/** Who waits for a position of a site's journal, and until when (store/session/durability.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { Durability } from "../../../store/session/durability.ts";
import { packKey } from "../../../store/model/key.ts";
import { FEED_WAIT_MS, OWNERS_WAIT_MS } from "../../../store/model/limits.ts";
import type { Position } from "../../../store/model/row.ts";
import type { WardSource } from "../../../store/wards/source.ts";

/** A site whose owners, disk and clock the test moves. */
function setUp(isIdle = false) {
  const timers = new Set<{ atMs: number; run: () => void }>();
  let nowMs = 0;
  const storage = new MemoryStorage();
  const core = new Core(
    { site: "c", parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => nowMs,
        steadyMs: () => nowMs,
        after: (ms, run) => {
          const timer = { atMs: nowMs + ms, run };
          timers.add(timer);
          return () => void timers.delete(timer);
        },
        turn: () => Promise.resolve(),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage,
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = 4;
  core.setPath(["root"]);
  const owners = { at: 0, goOn: false };
  const source = {
    isIdle,
    allows: (position: Position) => isIdle || owners.goOn || position <= owners.at,
    want: () => {},
    goesOnAlone: () => owners.goOn,
  };
  const durability = new Durability(core, source as unknown as WardSource);
  return {
    durability,
    owners,
    timers,
    write: (): Position => {
      core.rows.put(core.own(packKey(["row"]), new Uint8Array(1)));
      return core.rows.head;
    },
    commit: async () => {
      const frozen = core.rows.freeze();
      await storage.commit(frozen.commit);
      core.rows.settle(frozen);
      durability.tell();
    },
    pass: async (ms: number) => {
      nowMs += ms;
      for (const timer of [...timers].filter(({ atMs }) => atMs <= nowMs)) {
        timers.delete(timer);
        timer.run();
      }
      await settled();
    },
    counters: core.counters,
  };
}

/** All promises that can go on have. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** What has become of a promise by now. */
function watch(promise: Promise<void>): { state: string } {
  const watched = { state: "waits" };
  promise.then(() => watched.state = "done", (error) => watched.state = error.code ?? error.message);
  return watched;
}

Deno.test("an answer waits for the owners' disks, what the site itself needs for its own only (B1)", async () => {
  const { durability, owners, write, commit } = setUp();
  const position = write();
  const answer = watch(durability.safe(position)), own = watch(durability.onDisk(position));
  await settled();
  assert.deepEqual([answer.state, own.state, durability.isSafe(position)], ["waits", "waits", false]);
  owners.at = position; // They can't have it before this disk has: what is told is on both.
  durability.tell();
  await settled();
  assert.deepEqual([answer.state, own.state, durability.isSafe(position)], ["waits", "waits", false]);
  owners.at = 0;
  await commit();
  await settled();
  assert.deepEqual([answer.state, own.state, durability.isSafe(position)], ["waits", "done", false]);
  owners.at = position;
  durability.tell();
  await settled();
  assert.deepEqual([answer.state, durability.isSafe(position)], ["done", true]);
});

Deno.test("what children are fed goes as soon as it is safe, and without the owners in the end (B2)", async () => {
  const { durability, owners, timers, write, commit, pass } = setUp();
  const first = write();
  await commit();
  const fed = watch(durability.fed(first));
  owners.at = first;
  durability.tell();
  await settled();
  assert.equal(fed.state, "done");
  assert.equal(timers.size, 0, "nothing is left to fire");
  const second = write();
  await commit();
  const late = watch(durability.fed(second));
  await pass(FEED_WAIT_MS - 1);
  assert.equal(late.state, "waits");
  await pass(1);
  assert.equal(late.state, "done");
  await pass(OWNERS_WAIT_MS);
});

Deno.test("who waits for owners in vain is told so; a disk that is slow is waited for (B3)", async () => {
  const { durability, owners, write, commit, pass } = setUp();
  const position = write();
  const answer = watch(durability.safe(position));
  await pass(OWNERS_WAIT_MS);
  await pass(OWNERS_WAIT_MS);
  assert.equal(answer.state, "waits", "its own disk has not taken it yet");
  await commit();
  await pass(OWNERS_WAIT_MS - 1);
  assert.equal(answer.state, "waits");
  await pass(1);
  assert.equal(answer.state, "owners_unreachable");
  const next = watch(durability.safe(position));
  owners.goOn = true;
  await pass(OWNERS_WAIT_MS);
  assert.equal(next.state, "done", "whose operator has it go on alone");
});

Deno.test("nobody waits for a site that has failed, then or later", async () => {
  const { durability, write } = setUp();
  const position = write();
  const waiting = [durability.safe(position), durability.onDisk(position), durability.fed(position)].map(
    watch,
  );
  durability.end(new Error("gone"));
  const later = [durability.safe(position), durability.onDisk(position)].map(watch);
  await settled();
  assert.deepEqual([...waiting, ...later].map(({ state }) => state), [
    "gone",
    "gone",
    "done",
    "gone",
    "gone",
  ]);
  assert.equal(durability.isSafe(0), false);
});

Deno.test("a site without owners waits for its own disk without a limit", async () => {
  const { durability, timers, write, commit } = setUp(true);
  const answer = watch(durability.safe(write()));
  assert.equal(timers.size, 0);
  await commit();
  await settled();
  assert.equal(answer.state, "done");
});
