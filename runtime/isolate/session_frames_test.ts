import assert from "node:assert/strict";
import type {
  Commit,
  OpenedProgram,
  OpenSession,
  Parked,
  SessionEvent,
} from "../../functions/sessions/turn/mod.ts";
import { Payload, readFrames } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { FrameError } from "./frames.ts";
import * as frames from "./session_frames.ts";

/** What one end wrote, as the other reads it. */
async function through<T>(write: (writer: FrameWriter) => void, read: (payload: Payload) => T): Promise<T> {
  let bytes = new Uint8Array(0);
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      bytes = batch.slice();
      return Promise.resolve(batch.length);
    },
  }, () => {});
  write(writer.begin(1, 1));
  writer.end();
  await writer.drained();
  let found: { readonly value: T } | undefined;
  let isRead = false;
  await readFrames(
    {
      read: (into) => {
        if (isRead) return Promise.resolve(null);
        isRead = true;
        into.set(bytes);
        return Promise.resolve(bytes.length);
      },
      write: () => Promise.resolve(0),
    },
    1 << 20,
    (_type, _id, payload) => {
      found = { value: read(payload) };
      assert.equal(payload.left, 0);
    },
  );
  if (found === undefined) throw new Error("nothing was read");
  return found.value;
}

const bytes = Uint8Array.of(0, 1, 255);

const events: readonly SessionEvent[] = [
  { kind: "request", number: 1, storeClock: 5, request: "ü", chain: ["a/b", "c/d"], bytes },
  { kind: "attach", number: 2, storeClock: 0, peer: { kind: "origin", id: "o" } },
  { kind: "message", number: 3, storeClock: 2 ** 50, peer: "p", message: "text" },
  { kind: "message", number: 4, storeClock: 1, peer: "p", message: bytes },
  { kind: "detach", number: 5, storeClock: 1, peer: "p" },
  { kind: "timer", number: 6, storeClock: 1, name: "t", dueMs: 1.5 },
  { kind: "reject", number: 7, storeClock: 1, of: null, code: "c", message: "m" },
  {
    ...{ kind: "reject", number: 8, storeClock: 1, code: "c", message: "m" },
    of: { kind: "message", peer: "p", message: bytes },
  },
  { kind: "result", storeClock: 1, call: 9, outcome: { ok: true, bytes } },
  { kind: "result", storeClock: 1, call: 9, outcome: { ok: false, code: "c", message: "m" } },
];

for (const event of events) {
  Deno.test(`the event ${event.kind} arrives as it was sent`, async () => {
    const read = await through((writer) => frames.writeEvent(writer, event), frames.readEvent);
    assert.deepEqual(read, event);
  });
}

const open: OpenSession = {
  class: "c",
  id: "i",
  epoch: 2 ** 40,
  replica: 3,
  code: "v",
  seed: bytes,
  checkpoint: { at: 7, bytes, state: [] },
  entries: bytes,
  out: Object.assign(Object.create(null), { a: 1, __proto: 2 }),
  effectsApplied: 4,
  shows: true,
};

const commit: Commit = {
  first: 8,
  count: 2,
  entries: bytes,
  through: 5,
  isPoint: true,
  outputs: [{ to: "r", sequence: 1, bytes }],
  effects: [{
    effect: 1,
    clock: 2,
    replica: 3,
    atMs: 4,
    mutations: [
      { kind: "set", key: "k\xff", value: bytes },
      { kind: "set", key: "k", value: bytes, expireInMs: 9 },
      { kind: "delete", key: "k" },
    ],
    sends: [{ queue: "jobs", body: bytes }, { queue: "q", body: bytes, id: "ö", delayMs: 2, ttlMs: 3 }],
  }, { effect: 2, clock: 2, replica: 3, atMs: 4, mutations: [] }],
  timers: [{ name: "t", dueMs: 5 }, { name: "u", dueMs: null }],
  calls: [{ call: 1, kind: "fetch", bytes, effect: 2 }, { call: 2, kind: "get", bytes, effect: null }],
  isQuiescent: false,
  isEnded: true,
  rejected: { subject: { kind: "timer", id: "t" }, attempt: 2, code: "c", message: "m" },
};

Deno.test("what opens a session, and what it gives out, arrive as they were sent", async () => {
  assert.deepEqual(await through((writer) => frames.writeOpen(writer, open), frames.readOpen), open);
  const fresh = { ...open, checkpoint: null };
  assert.deepEqual(await through((writer) => frames.writeOpen(writer, fresh), frames.readOpen), fresh);
  assert.deepEqual(
    await through((writer) => frames.writeSessionCommit(writer, commit), frames.readSessionCommit),
    commit,
  );
  const { outputs, effects, timers, calls } = commit;
  const opened: OpenedProgram = {
    ...{ sequence: 3, outputs, effects, timers, calls },
    peers: [{ kind: "origin", id: "ö", sent: 2 ** 40, received: 7, isClosed: true }],
    ...{ handling: "q", isQuiescent: true, isEnded: false },
  };
  assert.deepEqual(await through((writer) => frames.writeOpened(writer, opened), frames.readOpened), opened);
  const parked: Parked = { code: "class_unknown", message: "m", detail: { a: [1] } };
  assert.deepEqual(await through((writer) => frames.writeParked(writer, parked), frames.readParked), parked);
  const acknowledged = { outputs: open.out, effects: 3 };
  assert.deepEqual(
    await through((writer) => frames.writeAcknowledged(writer, acknowledged), frames.readAcknowledged),
    acknowledged,
  );
});

Deno.test("a timer that is due at no time is refused", async () => {
  for (const dueMs of [-1, 8.65e15, 1e300, Infinity, -Infinity]) {
    const wrong = { ...commit, timers: [{ name: "t", dueMs }] };
    await assert.rejects(
      through((writer) => frames.writeSessionCommit(writer, wrong), frames.readSessionCommit),
      FrameError,
      `${dueMs}`,
    );
  }
});

Deno.test("what is no frame of a session is refused", async () => {
  let whole = new Uint8Array(0);
  await through((writer) => frames.writeSessionCommit(writer, commit), (payload) => {
    whole = payload.rest();
  });
  for (let length = 0; length < whole.length; length++) {
    assert.throws(
      () => frames.readSessionCommit(new Payload(whole.slice(0, length))),
      FrameError,
      `${length} bytes`,
    );
  }
});
