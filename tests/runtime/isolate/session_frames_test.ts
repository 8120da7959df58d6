/** What a site and an isolate of stateful sessions say to each other is read as it was written. */
import { VALUE_TAG } from "../../../store/model/value.ts";
import assert from "node:assert/strict";
import fc from "fast-check";
import type {
  Acknowledged,
  Call,
  Checkpoint,
  Commit,
  Effect,
  OpenedProgram,
  OpenSession,
  Output,
  Parked,
  SessionEvent,
  TimerChange,
} from "../../../functions/sessions/turn/mod.ts";
import { type Payload, readFrames } from "../../../runtime/isolate/frame_reader.ts";
import { FrameWriter } from "../../../runtime/isolate/frame_writer.ts";
import { StateSender } from "../../../runtime/isolate/state_frames.ts";
import { FRAME_TO_ISOLATE_BYTES_MAX } from "../../../runtime/isolate/frames.ts";
import * as frames from "../../../runtime/isolate/session_frames.ts";
import { DELAY_MS_MAX } from "../../../functions/queues/limits.ts";

/** What comes out of a frame that was written so. */
async function crossed<T>(write: (writer: FrameWriter) => void, read: (payload: Payload) => T): Promise<T> {
  const chunks: Uint8Array[] = [];
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (bytes) => Promise.resolve((chunks.push(bytes.slice()), bytes.length)),
  }, (error) => {
    throw error;
  });
  write(writer.begin(1, 7));
  writer.end();
  await writer.drained();
  const found: { value: T; left: number }[] = [];
  await readFrames(
    {
      write: () => Promise.resolve(0),
      read: (into) => {
        const chunk = chunks.shift();
        if (chunk === undefined) return Promise.resolve(null);
        const taken = Math.min(chunk.length, into.length);
        into.set(chunk.subarray(0, taken));
        if (taken < chunk.length) chunks.unshift(chunk.subarray(taken));
        return Promise.resolve(taken);
      },
    },
    FRAME_TO_ISOLATE_BYTES_MAX,
    (_type, _id, payload) => {
      const value = read(payload);
      found.push({ value, left: payload.left });
    },
  );
  assert.equal(found.length, 1);
  assert.equal(found[0]?.left, 0, "nothing is left of the payload");
  return found[0]?.value as T;
}

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const byteText = fc.uint8Array({ maxLength: 20 }).map((bytes) => String.fromCharCode(...bytes));
const bytes = fc.uint8Array({ maxLength: 50 }).map((from) => Uint8Array.from(from));
const number = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const small = fc.integer({ min: 0, max: 0xffffffff });
const flag = fc.boolean();
const list = <T>(of: fc.Arbitrary<T>) => fc.array(of, { maxLength: 4 });
const tally = fc.dictionary(text, number, { maxKeys: 4 });
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null });
const is = <T extends string>(kind: T) => fc.constant(kind);

const based = { storeClock: number, number };
const kinds = [
  record({ kind: is("request"), request: text, chain: list(text), bytes }),
  record({ kind: is("attach"), peer: record({ kind: fc.constantFrom("client", "origin"), id: text }) }),
  record({ kind: is("message"), peer: text, message: fc.oneof(text, bytes) }),
  record({ kind: is("detach"), peer: text }),
  record({ kind: is("timer"), name: text, dueMs: number }),
] as const;
const event: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc.tuple(record(based), fc.oneof(...kinds)).map(([base, event]) => ({ ...base, ...event })),
  record({ ...based, kind: is("reject"), of: maybe(fc.oneof(...kinds)), code: text, message: text }),
  record({
    ...{ storeClock: number, kind: is("result"), call: number },
    outcome: fc.oneof(
      record({ ok: fc.constant(true as const), bytes }),
      record({ ok: fc.constant(false as const), code: text, message: text }),
    ),
  }),
) as fc.Arbitrary<SessionEvent>;
const output: fc.Arbitrary<Output> = record({ to: text, sequence: number, bytes });
const rowValue = bytes.filter((each) => each[0] !== VALUE_TAG.merge);
const amount = fc.uint8Array({ minLength: 8, maxLength: 8 }).map((each) =>
  Uint8Array.of(VALUE_TAG.number, ...each)
);
const delay = fc.integer({ min: 1, max: DELAY_MS_MAX });
const send = fc.record(
  {
    queue: text,
    body: rowValue,
    id: fc.string({ minLength: 1, maxLength: 60 }),
    delayMs: delay,
    ttlMs: delay,
  },
  { requiredKeys: ["queue", "body"], noNullPrototype: true },
);
const written = {
  ...{ effect: number, clock: number, replica: small, atMs: number },
  mutations: list(fc.oneof(
    record({ kind: is("set"), key: byteText, value: rowValue, expireInMs: number }),
    record({ kind: is("set"), key: byteText, value: rowValue }),
    record({ kind: is("delete"), key: byteText }),
    record({ kind: fc.constantFrom("sum", "min", "max"), key: byteText, value: amount }),
  )),
};
const effect = fc.oneof(
  record(written),
  record({ ...written, sends: fc.array(send, { minLength: 1, maxLength: 3 }) }),
) as fc.Arbitrary<Effect>;
/** As far as dates go. */
const time = fc.integer({ min: 0, max: 8_640_000_000_000_000 });
const timer: fc.Arbitrary<TimerChange> = record({ name: text, dueMs: maybe(time) });
const call: fc.Arbitrary<Call> = record({
  ...{ call: number, bytes, effect: maybe(number) },
  kind: fc.constantFrom("get", "list", "commit", "fetch", "session"),
});
const kept = { at: number, bytes, state: fc.constant([]) };
const checkpoint: fc.Arbitrary<Checkpoint> = record({ ...kept, on: maybe(number) });
const made = { outputs: list(output), effects: list(effect), timers: list(timer), calls: list(call) };
const commit: fc.Arbitrary<Commit> = record({
  ...{ first: number, count: small, entries: bytes, through: number, ...made },
  ...{ isPoint: flag, isQuiescent: flag, isEnded: flag },
  rejected: maybe(record({
    subject: maybe(
      record({ kind: fc.constantFrom("request", "message", "attach", "detach", "timer"), id: text }),
    ),
    ...{ attempt: small, code: text, message: text },
  })),
});
const opened: fc.Arbitrary<OpenedProgram> = record({
  ...{ sequence: number, ...made, handling: maybe(text), isQuiescent: flag, isEnded: flag },
  peers: list(record({
    ...{ id: text, sent: number, received: number, isClosed: flag },
    kind: fc.constantFrom("client", "origin"),
  })),
});
const open: fc.Arbitrary<OpenSession> = record({
  ...{ class: text, id: text, epoch: number, replica: small, code: text, seed: bytes, entries: bytes },
  ...{ checkpoint: maybe(record(kept)), out: tally, effectsApplied: number },
});
const parked = record({
  code: fc.constantFrom("diverged", "log_full", "class_invalid"),
  message: text,
  detail: fc.constant({ entry: 3 }),
}) as fc.Arbitrary<Parked>;
const acknowledged: fc.Arbitrary<Acknowledged> = record({ outputs: tally, effects: number });

/** Tables of texts have no prototype once they are read. */
const plain = (value: unknown): unknown => structuredClone(value);

async function holds<T>(
  of: fc.Arbitrary<T>,
  write: (writer: FrameWriter, value: T) => void,
  read: (payload: Payload) => T,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(of, async (value) => {
      assert.deepEqual(plain(await crossed((writer) => write(writer, value), read)), plain(value));
    }),
    { numRuns: 60 },
  );
}

Deno.test("every frame of a stateful session is read as it was written", async (t) => {
  await t.step("open", () => holds(open, frames.writeOpen, (payload) => frames.readOpen(payload)));
  await t.step("event", () => holds(event, frames.writeEvent, frames.readEvent));
  await t.step("acknowledged", () => holds(acknowledged, frames.writeAcknowledged, frames.readAcknowledged));
  await t.step("opened", () => holds(opened, frames.writeOpened, frames.readOpened));
  await t.step("commit", () => holds(commit, frames.writeSessionCommit, frames.readSessionCommit));
  await t.step("call", () => holds(call, frames.writeCall, frames.readCall));
  await t.step(
    "checkpoint",
    () => holds(checkpoint, frames.writeCheckpoint, (p) => frames.readCheckpoint(p)),
  );
  await t.step("parked", () => holds(parked, frames.writeParked, frames.readParked));
});

Deno.test("a state on its way to an isolate that has ended is let go of", async () => {
  const taken = Promise.withResolvers<number>();
  const connection = { read: () => Promise.resolve(null), write: () => taken.promise };
  const writer = new FrameWriter(connection, () => {});
  const sender = new StateSender(writer);
  let sent = 0;
  const state = [new Uint8Array(5_000_000)];
  sender.send(1, state, () => sent++);
  await new Promise((resolve) => setImmediate(resolve)); // the system takes what there is, and no more
  sender.send(2, state, () => sent++);
  writer.close();
  sender.send(3, state, () => sent++);
  assert.deepEqual([sent, writer.backlogBytes], [0, 0]);
  taken.reject(new Error("it has ended"));
  await taken.promise.catch(() => {});
});
