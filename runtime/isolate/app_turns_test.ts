import assert from "node:assert/strict";
import {
  AppTurns,
  COMMIT_BURST_BYTES,
  COMMIT_BYTES_PER_MS,
  COMMIT_BYTES_PER_MS_SHARED,
  FRAME_MS_LEAST,
  HELD_BYTES_MAX,
  OTHERS_MS,
  QUANTUM_MS,
  ReadPace,
  SiteTurns,
} from "./app_turns.ts";
import { type Pace, readFrames } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { FRAME_TO_ISOLATE_BYTES_MAX, type IsolateConnection } from "./frames.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Turns of the loop until a frame may be handled. */
async function turnsUntil(turns: AppTurns): Promise<number> {
  let count = 0;
  for (; !turns.mayGo; count++) await turn();
  return count;
}

Deno.test("what an app's frames took beyond a quantum is paid for by the turns after, and what was not used is not kept (AT1)", async () => {
  const turns = new AppTurns();
  for (let i = 0; i < 5; i++) await turn();
  turns.spend(QUANTUM_MS / 2);
  assert.ok(turns.mayGo);
  turns.spend(QUANTUM_MS / 2);
  assert.ok(!turns.mayGo);
  assert.equal(await turnsUntil(turns), 1);
  turns.spend(10.5 * QUANTUM_MS);
  const slow = await turnsUntil(turns);
  assert.ok(slow >= 10 && slow <= 11, `${slow} turns`);
});

Deno.test("an app that waits does not have another wait (AT1)", async () => {
  const one = new AppTurns(), other = new AppTurns();
  one.spend(1_000 * QUANTUM_MS);
  await turn();
  assert.deepEqual([one.mayGo, other.mayGo], [false, true]);
  assert.ok(await turnsUntil(one) >= 990);
});

Deno.test("while an app's commits hold more than their bound none of its frames is handled (AT3)", async () => {
  const turns = new AppTurns();
  turns.commitBegins(HELD_BYTES_MAX);
  assert.ok(turns.mayGo);
  turns.commitBegins(1);
  assert.ok(!turns.mayGo);
  let woken = 0;
  turns.wait(() => woken++);
  await turn();
  assert.equal(woken, 0);
  turns.commitEnds(1);
  assert.deepEqual([woken, turns.mayGo, turns.heldBytes], [1, true, HELD_BYTES_MAX]);
  assert.throws(() => turns.commitEnds(HELD_BYTES_MAX + 1), /AT3/);
});

Deno.test("what an app commits beyond its burst waits until time has paid for it (AT4)", async () => {
  const turns = new AppTurns();
  const commit = (bytes: number) => {
    turns.commitBegins(bytes);
    turns.commitEnds(bytes);
  };
  commit(COMMIT_BURST_BYTES - 1);
  assert.ok(turns.mayGo);
  const beganMs = performance.now();
  commit(30 * COMMIT_BYTES_PER_MS);
  assert.ok(!turns.mayGo);
  await new Promise<void>((resolve) => turns.wait(resolve));
  assert.ok(turns.mayGo);
  assert.ok(performance.now() - beganMs >= 29, `after ${performance.now() - beganMs} ms`);
});

Deno.test("beside another app that had frames of late, an app's commits wait four times as long (AT4)", async () => {
  const site = new SiteTurns(), turns = new AppTurns(site), other = new AppTurns(site);
  other.spend(0);
  turns.spend(0);
  turns.commitBegins(COMMIT_BURST_BYTES);
  turns.commitEnds(COMMIT_BURST_BYTES);
  const beganMs = performance.now();
  turns.commitBegins(30 * COMMIT_BYTES_PER_MS_SHARED);
  turns.commitEnds(30 * COMMIT_BYTES_PER_MS_SHARED);
  await new Promise<void>((resolve) => turns.wait(resolve));
  const tookMs = performance.now() - beganMs;
  assert.ok(tookMs >= 29, `after ${tookMs} ms`);
});

Deno.test("an app shares its site with those that had frames within a second, itself left out", () => {
  const site = new SiteTurns(), [one, two, three] = [0, 1, 2].map(() => new AppTurns(site));
  assert.ok(one !== undefined && two !== undefined && three !== undefined);
  const shared = (nowMs: number) => [one, two, three].map((each) => site.isShared(each, nowMs));
  assert.deepEqual(shared(0), [false, false, false]);
  site.heard(one, 0);
  site.heard(one, 100);
  assert.deepEqual(shared(100), [false, true, true]);
  site.heard(two, 200);
  site.heard(two, 300);
  assert.deepEqual(shared(300), [true, true, true]);
  // The first counts until a second after its own last one.
  assert.deepEqual(shared(100 + OTHERS_MS), [true, false, true]);
  assert.deepEqual(shared(300 + OTHERS_MS), [false, false, false]);
});

Deno.test("nothing is left of who waited for time and left", () => {
  const turns = new AppTurns();
  turns.commitBegins(COMMIT_BURST_BYTES * 100);
  const go = () => assert.fail();
  turns.wait(go);
  turns.leave(go); // or the sanitizer finds a timer
});

/** Gives all of it at once, as a socket does into which an isolate has written for a while. */
class Full implements IsolateConnection {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  read(into: Uint8Array): Promise<number | null> {
    const part = this.#bytes.subarray(this.#at, this.#at + into.length);
    into.set(part);
    this.#at += part.length;
    return Promise.resolve(part.length === 0 ? null : part.length);
  }

  write(bytes: Uint8Array): Promise<number> {
    return Promise.resolve(bytes.length);
  }
}

async function framesOf(count: number, bytes: number): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      all.push(batch.slice());
      return Promise.resolve(batch.length);
    },
  }, () => {});
  for (let i = 0; i < count; i++) writer.begin(1, i).rest(new Uint8Array(bytes)).end();
  await writer.drained();
  return new Uint8Array(await new Blob(all as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

Deno.test("ten thousand frames that wait to be read leave others their turns, and come whole and in their order (AT1, AT2, F1)", async () => {
  const bytes = await framesOf(10_000, 20);
  const pace = new ReadPace();
  pace.turns = new AppTurns();
  let turned = 0, isOver = false;
  const other = () => void (isOver || (turned++, setImmediate(other)));
  setImmediate(other);
  const ids: number[] = [];
  await readFrames(new Full(bytes), FRAME_TO_ISOLATE_BYTES_MAX, (_type, id) => ids.push(id), pace);
  isOver = true;
  assert.deepEqual(ids, Array.from({ length: 10_000 }, (_, i) => i));
  const least = 10_000 * FRAME_MS_LEAST / QUANTUM_MS / 2;
  assert.ok(turned >= least, `others had ${turned} turns`);
  await turn();
});

Deno.test("frames that cost more than a turn are looked at one by one (AT1)", async () => {
  const bytes = await framesOf(200, 20);
  const pace = new ReadPace(), turns = pace.turns = new AppTurns();
  let turned = 0, isOver = false;
  const other = () => void (isOver || (turned++, setImmediate(other)));
  setImmediate(other);
  await readFrames(new Full(bytes), FRAME_TO_ISOLATE_BYTES_MAX, () => turns.spend(QUANTUM_MS / 2), pace);
  isOver = true;
  assert.ok(turned >= 95, `others had ${turned} turns`);
  await turn();
});

Deno.test("what is to be done for an app later waits for its turns, one after the other, and costs what it said (AT5)", async () => {
  const turns = new AppTurns(), order: number[] = [];
  const take = async (number: number, ms: number) => {
    await turns.take(ms);
    order.push(number);
  };
  assert.equal(turns.take(QUANTUM_MS / 4), null);
  const all = Array.from({ length: 12 }, (_, i) => take(i, QUANTUM_MS / 2));
  await Promise.resolve();
  assert.deepEqual(order, [0, 1], "what is left of a turn lets one begin that takes longer");
  let turned = 0;
  for (; order.length < 12; turned++) await turn();
  assert.deepEqual(order, Array.from({ length: 12 }, (_, i) => i));
  assert.ok(turned >= 5 && turned <= 7, `${turned} turns`);
  await Promise.all(all);
});

Deno.test("who holds the store's lock pays by the same turns, whatever the app commits (AT6)", async () => {
  const turns = new AppTurns();
  turns.commitBegins(HELD_BYTES_MAX + 1);
  assert.deepEqual([turns.mayGo, turns.mayHold], [false, true], "its commit waits for the lock");
  turns.held(3.5 * QUANTUM_MS);
  let gone = 0;
  turns.whenMayHold(() => gone++);
  let turned = 0;
  for (; gone === 0; turned++) await turn();
  assert.ok(turned >= 3 && turned <= 4 && turns.mayHold, `${turned} turns`);
  await turn();
});

Deno.test("a reader stops where its pace says so, behind the frame that it was at", async () => {
  const bytes = await framesOf(200, 10_000);
  const gates: PromiseWithResolvers<void>[] = [];
  let handled = 0;
  const stoppedAt: number[] = [];
  const pace: Pace = {
    isSpent: false,
    begin: () => {},
    look: () => {
      stoppedAt.push(handled);
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      return gate.promise;
    },
  };
  const reading = readFrames(new Full(bytes), FRAME_TO_ISOLATE_BYTES_MAX, () => handled++, pace);
  while (handled < 200) {
    await turn();
    assert.equal(handled, stoppedAt.at(-1), "nothing is handled while it waits");
    assert.ok(handled - (stoppedAt.at(-2) ?? 0) <= 32);
    gates.at(-1)?.resolve();
  }
  gates.at(-1)?.resolve();
  await reading;
  assert.equal(handled, 200);
});

Deno.test("what a process had sent when it ended is read, whoever's turn it is", async () => {
  const bytes = await framesOf(1_000, 20);
  const pace = new ReadPace(), turns = new AppTurns();
  pace.turns = turns;
  turns.commitBegins(HELD_BYTES_MAX + 1); // and never closed
  let handled = 0;
  const reading = readFrames(new Full(bytes), FRAME_TO_ISOLATE_BYTES_MAX, () => handled++, pace);
  await turn();
  assert.ok(pace.isHeld && handled > 0 && handled < 1_000, `${handled}`);
  pace.end();
  await reading;
  assert.deepEqual([handled, pace.isHeld], [1_000, false]);
  await turn();
});
