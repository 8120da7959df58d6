import assert from "node:assert/strict";
import { FrameError } from "./frames.ts";
import { type Backlog, BACKLOG_BYTES_MAX, READS_MAX, ReadSlots, WAITING_MAX } from "./read_slots.ts";

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

Deno.test("reads: so many run, the others follow in their order", () => {
  const slots = new ReadSlots(new Writer());
  const begun: number[] = [];
  for (let i = 0; i < READS_MAX + 3; i++) slots.enter(() => begun.push(i));
  assert.equal(begun.length, READS_MAX);
  slots.leave();
  slots.leave();
  assert.deepEqual(begun.slice(READS_MAX), [READS_MAX, READS_MAX + 1]);
});

Deno.test("reads: none begins while the isolate does not take the answers it has asked for", async () => {
  const writer = new Writer();
  const slots = new ReadSlots(writer);
  let begun = 0;
  slots.enter(() => begun++);
  writer.backlogBytes = BACKLOG_BYTES_MAX + 1;
  slots.leave();
  slots.enter(() => begun++);
  assert.equal(begun, 1);
  await writer.drain();
  assert.equal(begun, 2);
});

Deno.test("reads: what asks without end is no program", () => {
  const slots = new ReadSlots(new Writer());
  for (let i = 0; i < READS_MAX + WAITING_MAX; i++) slots.enter(() => {});
  assert.throws(() => slots.enter(() => {}), FrameError);
});

Deno.test("reads: thousands that are over as they begin", () => {
  const slots = new ReadSlots(new Writer());
  for (let i = 0; i < READS_MAX; i++) slots.enter(() => {});
  for (let i = 0; i < WAITING_MAX; i++) slots.enter(() => slots.leave());
  slots.leave();
  let begun = false;
  slots.enter(() => begun = true);
  assert.ok(begun);
});

Deno.test("reads: those of one connection share their slots", () => {
  const writer = new Writer();
  assert.equal(ReadSlots.of(writer), ReadSlots.of(writer));
  assert.notEqual(ReadSlots.of(writer), ReadSlots.of(new Writer()));
});
