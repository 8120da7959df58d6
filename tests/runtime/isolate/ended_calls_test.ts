/** What a request asks of its site from inside the isolate, when it has ended, and messages that it is given. */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { FrameWriter } from "../../../runtime/isolate/frame_writer.ts";
import { DeliveredBatch, RemoteQueues } from "../../../runtime/isolate/inside/queues.ts";
import { RemoteSessions } from "../../../runtime/isolate/inside/sessions.ts";
import { RemoteStore } from "../../../runtime/isolate/inside/store.ts";

/** Counts what leaves. */
function counting(): { writer: FrameWriter; bytes: () => Promise<number> } {
  let bytes = 0;
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      bytes += batch.length;
      return Promise.resolve(batch.length);
    },
  }, () => {});
  return { writer, bytes: async () => (await writer.drained(), bytes) };
}

const KEY = packKey(["k"]);

/** Ways to ask, each with its end. */
const ASKED:
  readonly (readonly [what: string, of: (writer: FrameWriter) => { ask(): unknown; end(): void }])[] = [
    ["a read (inside/store.ts S1)", (writer) => {
      const store = new RemoteStore(writer, 1);
      return { ask: () => store.get([KEY], "session"), end: () => store.end() };
    }],
    ["a write (inside/store.ts S1)", (writer) => {
      const store = new RemoteStore(writer, 1);
      return { ask: () => store.commit([], [{ kind: "delete", key: KEY }]), end: () => store.end() };
    }],
    ["a call of a stateful session (inside/sessions.ts S1)", (writer) => {
      const sessions = new RemoteSessions(writer, 1, "edge-1");
      const target = { class: "room", id: "a" };
      const call = { kind: "rpc", method: "x", args: new Uint8Array() } as const;
      return { ask: () => sessions.call(target, call), end: () => sessions.end() };
    }],
    ["a message (inside/queues.ts S1)", (writer) => {
      const queues = new RemoteQueues(writer, 1);
      return { ask: () => queues.send("mail", []), end: () => queues.end() };
    }],
  ];

for (const [what, of] of ASKED) {
  Deno.test(`after the end of a request it fails, asked before or later: ${what}`, async () => {
    const { writer, bytes } = counting(), { ask, end } = of(writer);
    const open = ask();
    const before = await bytes();
    end();
    await assert.rejects(Promise.resolve(open), { code: "request_ended" });
    await assert.rejects(Promise.try(ask), { code: "request_ended" });
    assert.equal(await bytes(), before, "nothing more has left");
  });
}

const message = (id: string, format: "text" | "json" | "value", body: Uint8Array) =>
  ({ id, sentMs: 0, attempt: 1, format, body }) as never;
const context = { session: "s", site: "edge-1", version: "1" };

Deno.test("of a message the first that is said counts, and nothing else leaves (inside/queues.ts S2)", async () => {
  const { writer, bytes } = counting();
  const batch = new DeliveredBatch(
    { queue: "q", context, messages: [message("a", "text", new Uint8Array())] },
    writer,
    1,
  );
  batch.messages[0]?.ack();
  const before = await bytes();
  assert.ok(before > 0);
  batch.messages[0]?.retry();
  batch.messages[0]?.ack();
  assert.equal(await bytes(), before);
});

Deno.test("a message that can't be read throws where it is looked at, and the others are read (inside/queues.ts S3)", () => {
  const text = (of: string) => new TextEncoder().encode(of), { writer } = counting();
  const messages = [
    message("good", "json", text('{"a":1}')),
    message("torn", "json", text('{"a":')),
    message("bent", "value", Uint8Array.of(255, 255)),
    message("after", "text", text("t")),
  ];
  const [good, torn, bent, after] = new DeliveredBatch({ queue: "q", context, messages }, writer, 1).messages;
  assert.deepEqual([good?.body, after?.body, torn?.id, bent?.attempts], [{ a: 1 }, "t", "torn", 1]);
  assert.throws(() => torn?.body);
  assert.throws(() => bent?.body);
});
