/** One disk for many writers (functions/sessions/log/group_commit.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";
import { GroupCommit } from "../../../../functions/sessions/log/group_commit.ts";
import { type Key, packKey } from "../../../../store/model/key.ts";
import type { Clock, DiskCommit } from "../../../../store/model/ports.ts";

const keyOf = (name: string): Key => packKey(["x", name]);
const turns = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

/** A disk whose steps end when a test says so. */
function writing(position = 10) {
  const steps: { step: DiskCommit; done: PromiseWithResolvers<void> }[] = [], fatal: string[] = [];
  class Slow extends MemoryStorage {
    override async commit(step: DiskCommit): Promise<void> {
      const done = Promise.withResolvers<void>();
      steps.push({ step, done });
      await done.promise;
      await super.commit(step);
    }
  }
  const storage = new Slow(), clock = { turn: () => Promise.resolve() } as unknown as Clock;
  const disk = new GroupCommit(
    { storage, clock, fatal: ({ message }) => void fatal.push(message) },
    position,
  );
  const put = (name: string) => disk.put(keyOf(name), new Uint8Array(1));
  const end = async () => {
    const last = steps.at(-1);
    last?.done.resolve();
    await turns();
  };
  const written = () => steps.map(({ step }) => [step.rows.map(({ key }) => key), step.drop]);
  const told = (promise: Promise<void>) => {
    const state = { is: "waits" };
    promise.then(() => state.is = "durable", (error) => state.is = error.message);
    return state;
  };
  return { disk, put, steps, fatal, end, written, told, storage };
}

Deno.test("what is put while a step is written goes with the next, in order, and is durable then and not before (G1, G2)", async () => {
  const { disk, put, steps, end, written, told } = writing();
  const nothing = told(disk.durable());
  await turns();
  assert.equal(nothing.is, "durable", "there was nothing to write");
  put("a");
  const first = told(disk.durable());
  await turns();
  put("b");
  put("c");
  put("b");
  disk.drop(keyOf("a"));
  const second = told(disk.durable());
  await turns();
  assert.equal(steps.length, 1, "one at a time");
  assert.deepEqual([first.is, second.is], ["waits", "waits"]);
  await end();
  assert.deepEqual([first.is, second.is], ["durable", "waits"]);
  await end();
  assert.equal(second.is, "durable");
  assert.deepEqual(written(), [[[keyOf("a")], []], [[keyOf("c"), keyOf("b")], [keyOf("a")]]]);
  assert.deepEqual(steps.map(({ step }) => step.rows.map(({ position }) => position)), [[11], [13, 14]]);
  assert.equal(disk.steps, 2);
  const late = told(disk.durable());
  await turns();
  assert.equal(late.is, "durable");
});

Deno.test("who asks while the last step is written waits for it, and what may wait goes with the next that is wanted (G1)", async () => {
  const { disk, put, steps, end, written, told } = writing();
  disk.putLater(keyOf("later"), new Uint8Array(1));
  await turns();
  assert.equal(steps.length, 0);
  put("a");
  await turns();
  const asked = told(disk.durable());
  await turns();
  assert.equal(asked.is, "waits");
  await end();
  assert.equal(asked.is, "durable");
  assert.deepEqual(written(), [[[keyOf("later"), keyOf("a")], []]]);
  disk.putLater(keyOf("later"), new Uint8Array(1));
  const wanted = told(disk.durable());
  await turns();
  await end();
  assert.deepEqual([steps.length, wanted.is], [2, "durable"]);
  disk.drop(keyOf("a"));
  disk.putLater(keyOf("a"), new Uint8Array(2));
  await turns();
  await end();
  assert.deepEqual(written().at(-1), [[keyOf("a")], []], "it was put again");
});

Deno.test("a step that fails ends it: nothing is durable again, and that is said once (G3)", async () => {
  const { disk, put, steps, fatal, told } = writing();
  put("a");
  const first = told(disk.durable());
  await turns();
  put("b");
  const second = told(disk.durable());
  steps[0]?.done.reject(new Error("the disk is full"));
  await turns();
  put("c");
  const third = told(disk.durable());
  await turns();
  assert.deepEqual([first.is, second.is, third.is], Array(3).fill("the disk is full"));
  assert.deepEqual([steps.length, fatal], [1, ["the disk is full"]]);
  await disk.close();
});

Deno.test("what was put before it closes is written, and nothing after that, nor is that ever durable (G4)", async () => {
  const { disk, put, steps, end, told } = writing();
  put("a");
  await turns();
  put("b");
  let isClosed = false;
  const closed = disk.close().then(() => isClosed = true);
  put("c");
  disk.drop(keyOf("a"));
  disk.putLater(keyOf("d"), new Uint8Array(1));
  const late = told(disk.durable());
  await end();
  assert.equal(isClosed, false);
  await end();
  await closed;
  await turns();
  assert.deepEqual([steps.length, late.is], [2, "waits"]);
  assert.deepEqual(steps[1]?.step.rows.map(({ key }) => key), [keyOf("b")]);
});
