import assert from "node:assert/strict";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import { type Key, packKey } from "../../store/model/key.ts";
import { AppQueues } from "./app_queues.ts";
import { CALLS_MAX } from "./call_slots.ts";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { FrameError, HEADER_BYTES, type IsolateConnection } from "./frames.ts";
import { StoreCalls, WATCHED_RANGES_MAX, WATCHES_MAX } from "./store_calls.ts";
import { REPLY, writeAtomic, writeGet, writeWatch } from "./store_frames.ts";

/** The payload of one frame. */
async function payloadOf(write: (writer: FrameWriter) => void): Promise<Payload> {
  let bytes = new Uint8Array();
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: (batch) => {
      bytes = batch.slice(HEADER_BYTES);
      return Promise.resolve(batch.length);
    },
  };
  const writer = new FrameWriter(connection, () => {});
  write(writer.begin(1, 1));
  writer.end();
  await writer.drained();
  return new Payload(bytes);
}

Deno.test("store calls: so many commits are under way, the others follow as these end", async () => {
  const open: (() => void)[] = [];
  const store = {
    commit: () => new Promise((resolve) => open.push(() => resolve({ ok: false }))),
  } as unknown as StoreClient;
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: (bytes) => Promise.resolve(bytes.length),
  };
  const writer = new FrameWriter(connection, () => {});
  const calls = new StoreCalls(writer, 1, store, () => {}, new AppQueues().hold("isolate", () => {}));
  for (let call = 0; call < CALLS_MAX + 5; call++) {
    const mutation = { kind: "delete", key: packKey(["k"]) as Key } as const;
    calls.start(await payloadOf((frame) => writeAtomic(frame.u32(call), [], [mutation])));
  }
  assert.equal(open.length, CALLS_MAX);
  for (const end of open.splice(0)) end();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(open.length, 5);
  calls.end();
  for (const end of open) end();
  await writer.drained();
});

Deno.test("store calls: one that throws at once, or whose answer can't be written, fails by itself and makes room", async () => {
  const store = {
    commit: () => {
      throw new Error("thrown at once");
    },
    get: () => Promise.resolve(null), // no rows: writing them throws
  } as unknown as StoreClient;
  const sent: number[] = [];
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: (bytes) => {
      sent.push(bytes.length);
      return Promise.resolve(bytes.length);
    },
  };
  const writer = new FrameWriter(connection, () => {});
  const calls = new StoreCalls(writer, 1, store, () => {}, new AppQueues().hold("isolate", () => {}));
  for (let call = 0; call < 3 * CALLS_MAX; call++) {
    const mutation = { kind: "delete", key: packKey(["k"]) as Key } as const;
    calls.start(await payloadOf((frame) => writeAtomic(frame.u32(call), [], [mutation])));
    calls.start(await payloadOf((frame) => writeGet(frame.u32(call), [packKey(["k"])], "session")));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await writer.drained();
  assert.ok(sent.length > 0);
});

Deno.test("store calls: of an isolate's watches so many are open, whatever requests have them, and all of them count for its app", async () => {
  const store = {
    // deno-lint-ignore require-yield -- nothing changes in these watches
    async *watch(_ranges: unknown, signal: AbortSignal) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    },
  } as unknown as StoreClient;
  const statuses: number[] = [];
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: (bytes) => {
      for (let at = 0; at < bytes.length;) {
        const view = new DataView(bytes.buffer, bytes.byteOffset + at);
        statuses.push(view.getUint8(HEADER_BYTES + 4));
        at += 4 + view.getUint32(0, true);
      }
      return Promise.resolve(bytes.length);
    },
  };
  const writer = new FrameWriter(connection, () => {}), queues = new AppQueues();
  const hold = queues.hold("isolate", () => assert.fail("it is within its budget"));
  const range = { start: packKey(["a"]), end: packKey(["b"]) };
  const requests = Array.from({ length: 5 }, (_, id) => new StoreCalls(writer, id, store, () => {}, hold));
  for (const [id, calls] of requests.entries()) {
    for (let call = 0; call < WATCHES_MAX / 4; call++) {
      calls.start(await payloadOf((frame) => writeWatch(frame.u32(call + id * WATCHES_MAX), [range])));
    }
  }
  await writer.drained();
  assert.deepEqual(statuses, Array.from({ length: WATCHES_MAX / 4 }, () => REPLY.failed));
  assert.ok(queues.bytes >= WATCHES_MAX * 1024, `${queues.bytes}`);
  // Those of requests that have ended make room.
  const before = queues.bytes;
  for (const calls of requests) calls.end();
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(queues.bytes > before / 2, "others' turns come between the ends of hundreds");
  for (let i = 0; i < WATCHES_MAX && queues.bytes > 0; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(queues.bytes, 0);
  statuses.length = 0;
  const next = new StoreCalls(writer, 9, store, () => {}, hold);
  next.start(await payloadOf((frame) => writeWatch(frame.u32(1), [range])));
  await new Promise((resolve) => setImmediate(resolve));
  await writer.drained();
  assert.deepEqual(statuses, []);
  next.end();
});

Deno.test("store calls: a thousand watches of what changes are told in turns, and their ranges are bounded, too", async () => {
  let changed = Promise.withResolvers<void>();
  const store = {
    async *watch(_ranges: unknown, signal: AbortSignal) {
      while (!signal.aborted) {
        await changed.promise;
        yield;
      }
    },
  } as unknown as StoreClient;
  const statuses: number[] = [];
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: (bytes) => {
      for (let at = 0; at < bytes.length;) {
        const view = new DataView(bytes.buffer, bytes.byteOffset + at);
        statuses.push(view.getUint8(HEADER_BYTES + 4));
        at += 4 + view.getUint32(0, true);
      }
      return Promise.resolve(bytes.length);
    },
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const writer = new FrameWriter(connection, () => {}), queues = new AppQueues();
  const calls = new StoreCalls(writer, 1, store, () => {}, queues.hold("isolate", () => {}));
  const ranges = Array.from({ length: 5 }, (_, i) => ({ start: packKey(["a", i]), end: packKey(["b", i]) }));
  const count = Math.floor(WATCHED_RANGES_MAX / 5);
  for (let call = 0; call < count + 2; call++) {
    calls.start(await payloadOf((frame) => writeWatch(frame.u32(call), ranges)));
  }
  await writer.drained();
  assert.deepEqual(statuses.splice(0), [REPLY.failed, REPLY.failed], "those beyond the ranges there may be");
  while (queues.turns.isSpent) await turn(); // they are paid for
  const first = changed;
  changed = Promise.withResolvers();
  first.resolve();
  let most = 0, told = 0;
  for (let turns = 0; told < count && turns < 10 * count; turns++) {
    await turn();
    most = Math.max(most, statuses.length);
    told += statuses.splice(0).length;
  }
  assert.deepEqual([told, statuses], [count, []]);
  assert.ok(most <= 120, `${most} were told in one turn`);
  calls.end();
  changed.resolve();
  await turn();
});

Deno.test("store calls: commits that no isolate may have wait give their app its turns back", async () => {
  const store = { commit: () => new Promise(() => {}) } as unknown as StoreClient;
  const connection: IsolateConnection = {
    read: () => Promise.resolve(null),
    write: (bytes) => Promise.resolve(bytes.length),
  };
  const queues = new AppQueues();
  const calls = new StoreCalls(
    new FrameWriter(connection, () => {}),
    1,
    store,
    () => {},
    queues.hold("isolate", () => {}),
  );
  const commit = await payloadOf((frame) => writeAtomic(frame.u32(1), [], []));
  const bytes = commit.view();
  let before = 0;
  assert.throws(() => {
    for (;;) {
      before = queues.turns.heldBytes;
      commit.reset(bytes, 0, bytes.length);
      calls.start(commit);
    }
  }, FrameError);
  assert.ok(before > 0);
  assert.equal(queues.turns.heldBytes, before);
});
