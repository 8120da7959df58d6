/** When a run of a stateful session takes checkpoints, and what may come after them (functions/sessions/serve/run_checkpoints.ts). */
import assert from "node:assert/strict";
import type { Checkpoint } from "../../../../functions/sessions/turn/mod.ts";
import { NO_HEAD } from "../../../../functions/sessions/serve/pieces.ts";
import {
  type CheckpointingRun,
  RunCheckpoints,
} from "../../../../functions/sessions/serve/run_checkpoints.ts";

const turns = () => new Promise<void>((resolve) => setTimeout(resolve));
const checkpointAt = (at: number): Checkpoint =>
  ({ at, on: null, state: [], bytes: new Uint8Array(1) }) as unknown as Checkpoint;

/** A run whose commits have left, and whose checkpoints are at all owners, when a test says so. */
function running() {
  const written: string[] = [], happened: string[] = [], left: (() => Promise<void>)[] = [];
  const holds: PromiseWithResolvers<void>[] = [];
  const run = {
    ...{ version: "v1", isOver: false, isIdle: true, events: 1, asks: 0, isThere: true, through: 0 },
    releases: {
      baseHead: NO_HEAD,
      afterwards: (then: () => Promise<void>) => (left.push(then), new Promise(() => {})),
    },
    home: {
      logBytes: 0,
      checkpoint: ({ at, version }: { at: number; version: string }) => {
        written.push(`${at} ${version}`);
        const held = Promise.withResolvers<void>();
        holds.push(held);
        return held.promise;
      },
    },
    askCheckpoint: () => {
      run.asks++;
      return run.isThere;
    },
    rested: () => void happened.push("rested"),
    failed: (error: Error) => void happened.push(error.message),
  };
  const checkpoints = new RunCheckpoints(run as unknown as CheckpointingRun, 3);
  /** All that was committed so far has left. */
  const leave = async () => {
    for (const then of left.splice(0)) {
      void then().then(() => run.through++).catch((error) => run.failed(error));
    }
    await turns();
  };
  const hold = async () => {
    for (const one of holds.splice(0)) one.resolve();
    await turns();
  };
  return { run, checkpoints, written, happened, leave, hold, holds };
}

Deno.test("one is asked for at a time, and where a log has grown long", () => {
  const { run, checkpoints } = running();
  checkpoints.released();
  assert.equal(run.asks, 0);
  run.home.logBytes = 256 * 1024;
  checkpoints.released();
  assert.equal(run.asks, 0, "so much may be");
  run.home.logBytes++;
  run.isThere = false;
  checkpoints.released();
  assert.deepEqual([run.asks, checkpoints.isAsked], [1, false], "the isolate is not there yet");
  run.isThere = true;
  checkpoints.released();
  checkpoints.released();
  assert.deepEqual([run.asks, checkpoints.isAsked], [2, true]);
  checkpoints.came(checkpointAt(5));
  checkpoints.released();
  assert.equal(run.asks, 3);
  run.isOver = true;
  checkpoints.came(checkpointAt(5));
  checkpoints.ask();
  assert.equal(run.asks, 3);
});

Deno.test("a checkpoint goes to the home when all before it has left, one after the other, and stands when it is held (RC1)", async () => {
  const { run, checkpoints, written, happened, leave, hold, holds } = running();
  for (const at of [5, 6]) checkpoints.came(checkpointAt(at));
  await turns();
  assert.deepEqual(written, []);
  await leave();
  assert.deepEqual([written, checkpoints.at], [["5 v1", "6 v1"], 3]);
  assert.equal(run.through, 2, "answers do not wait until all owners have it");
  await hold();
  assert.deepEqual([checkpoints.at, happened], [6, []]);
  checkpoints.came(checkpointAt(7));
  await leave();
  holds[0]?.reject(new Error("superseded"));
  await turns();
  assert.deepEqual([checkpoints.at, happened], [6, ["superseded"]]);
  run.isOver = true;
  checkpoints.came(checkpointAt(8));
  await leave();
  assert.equal(written.length, 3, "nothing of a run that is over is written");
});

Deno.test("for other code one is asked for when no event is under way, and the run is over with it (R4)", async () => {
  const { run, checkpoints, written, happened, leave, hold } = running();
  run.isIdle = false;
  checkpoints.ask("v2");
  assert.deepEqual([run.asks, checkpoints.isSwitching], [0, true]);
  run.isIdle = true;
  checkpoints.released();
  assert.equal(run.asks, 1);
  checkpoints.came(checkpointAt(5));
  await leave();
  assert.deepEqual([written, checkpoints.isLeaving], [["5 v2"], true]);
  assert.deepEqual([happened, run.through], [[], 0], "nothing leaves behind it");
  await hold();
  assert.deepEqual([happened, run.through, checkpoints.at], [["rested"], 1, 5]);
});

Deno.test("one behind which an event came is no checkpoint for other code, and the run goes on (R4)", async () => {
  for (const [isIdle, events] of [[false, 1], [true, 2]] as const) {
    const { run, checkpoints, written, happened, leave, hold } = running();
    checkpoints.ask("v2");
    checkpoints.came(checkpointAt(5));
    Object.assign(run, { isIdle, events });
    await leave();
    await hold();
    assert.deepEqual([written, happened, checkpoints.isLeaving], [["5 v1"], [], false]);
    assert.equal(checkpoints.isSwitching, true, "it is tried again");
  }
});

Deno.test("a run that goes on from what other code wrote takes one of its own first, and waits until it is held (R4)", async () => {
  const { run, checkpoints, written, hold } = running();
  checkpoints.begin();
  assert.deepEqual([run.asks, checkpoints.isBeginning], [1, true]);
  let isBegun = false;
  const begun = checkpoints.begun().then(() => isBegun = true);
  checkpoints.came(checkpointAt(4));
  await turns();
  assert.deepEqual([written, isBegun, checkpoints.isBeginning], [["4 v1"], false, false]);
  await hold();
  await begun;
  assert.equal(checkpoints.at, 4);
  await checkpoints.begun();
  const other = running();
  other.checkpoints.begin();
  const waiting = other.checkpoints.begun();
  other.checkpoints.over(new Error("its isolate has ended"));
  await assert.rejects(waiting, { message: "its isolate has ended" });
});
