import assert from "node:assert/strict";
import { FrameError } from "./frames.ts";
import {
  type Backlog,
  CALLS_MAX,
  CallSlots,
  UNREAD_BYTES_MAX,
  WAITING_BYTES_MAX,
  WAITING_MAX,
} from "./call_slots.ts";

class Writer implements Backlog {
  backlogBytes = 0;
  #drained = Promise.withResolvers<void>();
  drained(): Promise<void> {
    return this.#drained.promise;
  }
  async drain(): Promise<void> {
    this.backlogBytes = 0;
    this.#drained.resolve();
    await this.#drained.promise;
    this.#drained = Promise.withResolvers<void>();
  }
}

Deno.test("reads: so many run, the others follow in their order (L1, L2)", () => {
  const slots = new CallSlots(new Writer());
  const begun: number[] = [];
  for (let i = 0; i < CALLS_MAX + 3; i++) slots.enter(() => begun.push(i));
  assert.equal(begun.length, CALLS_MAX);
  slots.leave();
  slots.leave();
  assert.deepEqual(begun.slice(CALLS_MAX), [CALLS_MAX, CALLS_MAX + 1]);
});

Deno.test("reads: none begins while the isolate does not take the answers it has asked for (L1)", async () => {
  const writer = new Writer();
  const slots = new CallSlots(writer);
  let begun = 0;
  slots.enter(() => begun++);
  writer.backlogBytes = UNREAD_BYTES_MAX + 1;
  slots.leave();
  slots.enter(() => begun++);
  assert.equal(begun, 1);
  await writer.drain();
  assert.equal(begun, 2);
});

Deno.test("reads: what asks without end is no program (L2)", () => {
  const slots = new CallSlots(new Writer());
  for (let i = 0; i < CALLS_MAX + WAITING_MAX; i++) slots.enter(() => {});
  assert.throws(() => slots.enter(() => {}), FrameError);
});

Deno.test("calls: what waits holds so many bytes at most (L2)", () => {
  const slots = new CallSlots(new Writer());
  for (let i = 0; i < CALLS_MAX; i++) slots.enter(() => {}, WAITING_BYTES_MAX);
  slots.enter(() => {}, WAITING_BYTES_MAX);
  assert.throws(() => slots.enter(() => {}, 1), FrameError);
});

Deno.test("reads: thousands that are over as they begin", () => {
  const slots = new CallSlots(new Writer());
  for (let i = 0; i < CALLS_MAX; i++) slots.enter(() => {});
  for (let i = 0; i < WAITING_MAX; i++) slots.enter(() => slots.leave());
  slots.leave();
  let begun = false;
  slots.enter(() => begun = true);
  assert.ok(begun);
});

Deno.test("calls of one connection share their slots, and commits do not wait for reads", () => {
  const writer = new Writer();
  assert.equal(CallSlots.of(writer), CallSlots.of(writer));
  assert.notEqual(CallSlots.of(writer).reads, CallSlots.of(writer).commits);
  assert.notEqual(CallSlots.of(writer), CallSlots.of(new Writer()));
});
