import { strict as assert } from "node:assert";
import { LoopRoom } from "./loop_room.ts";

const MOST = 256;

let nowMs = 0;

/** It is asked with so many under way, and answers so much later. */
function answers(room: LoopRoom, running: number, lateMs: number): void {
  nowMs += 50;
  assert.ok(room.wanted(running, nowMs));
  assert.ok(!room.wanted(running, nowMs + lateMs / 2), "LR1");
  room.answered(nowMs += lateMs);
  assert.ok(!room.wanted(running, nowMs + 20), "LR1");
}

const roomOf = (room: LoopRoom): number => {
  let running = 0;
  while (room.isFor(running)) running++;
  return running;
};

Deno.test("an isolate that answers at once is given twice as many, up to the limit", () => {
  const room = new LoopRoom(MOST);
  const seen: number[] = [];
  for (let i = 0; i < 6; i++) {
    seen.push(roomOf(room));
    answers(room, roomOf(room), 2);
  }
  assert.deepEqual(seen, [16, 32, 64, 128, 256, 256]);
  assert.ok(room.isFull, "there may be no more");
  assert.equal(roomOf(new LoopRoom(1)), 1);
});

Deno.test("one that answers late is given as many as it does in time, and two at any rate (LR2)", () => {
  const room = new LoopRoom(MOST);
  assert.ok(!room.isFull, "it has not said so");
  for (let i = 0; i < 4; i++) answers(room, roomOf(room), 2);
  answers(room, 256, 1_280);
  assert.deepEqual([roomOf(room), room.isFull], [20, true]);
  answers(room, 20, 80);
  assert.deepEqual([roomOf(room), room.isFull], [20, true], "as it is to be");
  answers(room, 20, 5_000);
  assert.equal(roomOf(room), 2);
  answers(room, 2, 10);
  assert.deepEqual([roomOf(room), room.isFull], [4, false]);
});

Deno.test("an answer that nobody asked for says nothing", () => {
  const room = new LoopRoom(MOST);
  room.answered(5_000);
  assert.equal(roomOf(room), 16);
});
