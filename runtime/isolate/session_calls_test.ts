import assert from "node:assert/strict";
import { decodeAnswer, encodeAnswer } from "../../functions/calls/call.ts";
import { AppQueues } from "./app_queues.ts";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { HEADER_BYTES, ISOLATE_FRAME } from "./frames.ts";
import { CallsOfRequest, type SessionCallPort } from "./session_calls.ts";

/** A frame's payload of a call with this number. */
function callNumbered(number: number): Payload {
  const { buffer } = new Uint8Array(32), bytes = new Uint8Array(buffer), view = new DataView(buffer);
  view.setUint32(0, number, true);
  let at = 4;
  for (const word of ["room", "a"]) {
    view.setUint32(at, word.length, true);
    bytes.set(new TextEncoder().encode(word), at + 4);
    at += 4 + word.length;
  }
  return new Payload(bytes.subarray(0, at));
}

/** Answers that leave, by the numbers of their calls. */
function withCalls(port: SessionCallPort | undefined): { calls: CallsOfRequest; answers: () => unknown[] } {
  const sent: number[] = [];
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      sent.push(...batch);
      return Promise.resolve(batch.length);
    },
  }, () => {});
  const calls = new CallsOfRequest(writer, 1, new AppQueues().hold("isolate", () => assert.fail()), port);
  const answers = () => {
    const bytes = Uint8Array.from(sent), view = new DataView(bytes.buffer), found: unknown[] = [];
    for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at, true)) {
      assert.equal(bytes[at + 4], ISOLATE_FRAME.statefulReply);
      const answer = decodeAnswer(bytes.slice(at + HEADER_BYTES + 4, at + 4 + view.getUint32(at, true)));
      found.push([
        view.getUint32(at + HEADER_BYTES, true),
        answer.kind === "error" ? answer.code : answer.kind,
      ]);
    }
    return found;
  };
  return { calls, answers };
}

const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 0));
};

Deno.test("every call of a stateful session has one answer, also where it fails or nobody carries it (P1)", async () => {
  const failing = [
    () => Promise.resolve(encodeAnswer({ kind: "error", code: "told", message: "" })),
    () => Promise.reject(Object.assign(new Error("away"), { code: "home_unreachable" })),
    () => {
      throw new Error("at once");
    },
  ];
  const { calls, answers } = withCalls({ call: () => failing.shift()?.() ?? new Promise(() => {}) });
  for (const number of [7, 8, 9]) calls.start(callNumbered(number));
  await turns();
  assert.deepEqual(answers().sort(), [[7, "told"], [8, "home_unreachable"], [9, "internal"]]);
  const alone = withCalls(undefined);
  alone.calls.start(callNumbered(1));
  await turns();
  assert.deepEqual(alone.answers(), [[1, "not_available"]]);
});

Deno.test("a call that is answered when its request has ended says nothing (P1)", async () => {
  const answer = Promise.withResolvers<Uint8Array>();
  const { calls, answers } = withCalls({ call: () => answer.promise });
  calls.start(callNumbered(1));
  calls.end();
  answer.resolve(encodeAnswer({ kind: "error", code: "late", message: "" }));
  await turns();
  assert.deepEqual(answers(), []);
});
