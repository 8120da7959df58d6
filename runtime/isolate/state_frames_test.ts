import assert from "node:assert/strict";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { FrameError } from "./frames.ts";
import { StatesComing, StateSender } from "./state_frames.ts";

const MIB = 1 << 20;

/** A connection that takes what it is given when it is told to. */
function slow(): { readonly writer: FrameWriter; take(): Promise<void> } {
  let taken = () => {};
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => new Promise((resolve) => taken = () => resolve(batch.length)),
  }, () => {});
  const take = async () => {
    taken();
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  return { writer, take };
}

Deno.test("of a large state so much is in the writer at a time, and what else is sent goes between its parts (ST1)", async () => {
  const { writer, take } = slow();
  const sender = new StateSender(writer), state = [new Uint8Array(8 * MIB)];
  let isDone = false;
  sender.send(1, state, () => isDone = true);
  let rounds = 0;
  for (; !isDone; rounds++) {
    assert.ok(writer.backlogBytes < 2 * MIB, `${writer.backlogBytes} bytes wait`);
    await take();
  }
  assert.ok(rounds > 4, `it left in ${rounds} rounds`);
});

Deno.test("states leave in their order, and what a closed channel had under way does not (ST2)", async () => {
  const { writer, take } = slow();
  const sender = new StateSender(writer), left: number[] = [];
  for (const [channel, bytes] of [[1, 3 * MIB], [2, 3 * MIB], [3, 10], [4, 10]] as const) {
    sender.send(channel, [new Uint8Array(bytes)], () => left.push(channel));
  }
  sender.drop(2);
  for (let i = 0; i < 40; i++) await take();
  assert.deepEqual(left, [1, 3, 4]);
});

/** A part of a state: of a segment that begins and has `length` bytes, or null of the one that has begun. */
function part(length: number | null, bytes: number): Payload {
  const all = new Uint8Array((length === null ? 1 : 5) + bytes);
  all[0] = length === null ? 0 : 1;
  if (length !== null) new DataView(all.buffer).setUint32(1, length, true);
  return new Payload(all);
}

Deno.test("states that come are as large as a state may be, in all channels, and what is begun is ended (ST3)", () => {
  const coming = new StatesComing();
  assert.throws(() => coming.add(1, part(257 * MIB, 0)), FrameError);
  const many = new StatesComing();
  for (let channel = 0; channel < 255; channel++) many.add(channel, part(MIB, 0));
  assert.throws(() => many.add(255, part(MIB, 0)), FrameError);
  many.drop(0);
  many.drop(1);
  many.add(256, part(MIB, 0));
  const torn = new StatesComing();
  torn.add(1, part(10, 4));
  assert.throws(() => torn.add(1, part(10, 0)), FrameError, "another begins");
  assert.throws(() => torn.add(1, part(null, 7)), FrameError, "it is longer than it said");
  assert.throws(() => torn.take(1), FrameError, "it is taken");
});
