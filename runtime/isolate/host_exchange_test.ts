import assert from "node:assert/strict";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import { packKey } from "../../store/model/key.ts";
import { AppQueues } from "./app_queues.ts";
import { type IsolateApp, type IsolateCall, PendingCall } from "./call.ts";
import { Payload } from "./frame_reader.ts";
import { FrameWriter } from "./frame_writer.ts";
import { HEADER_BYTES, ISOLATE_FRAME } from "./frames.ts";
import { BODY, SETTLED, writeResponseHead } from "./heads.ts";
import { HostExchange } from "./host_exchange.ts";
import { DEFAULT_ISOLATE_LIMITS } from "./limits.ts";
import { writeAtomic } from "./store_frames.ts";

/** The payload of one frame. */
async function payloadOf(write: (writer: FrameWriter) => void): Promise<Payload> {
  let bytes = new Uint8Array();
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      bytes = batch.slice(HEADER_BYTES);
      return Promise.resolve(batch.length);
    },
  }, () => {});
  write(writer.begin(1, 1));
  writer.end();
  await writer.drained();
  return new Payload(bytes);
}

/** An exchange that has begun, and the number of commits that reach the store. */
function begun(): { exchange: HostExchange; pending: PendingCall; commits: () => number } {
  let commits = 0;
  const store = { commit: () => (commits++, Promise.resolve({ ok: false })) } as unknown as StoreClient;
  const app: IsolateApp = {
    ...{ app: "a", version: "1", limits: DEFAULT_ISOLATE_LIMITS, vars: {}, fetchHosts: [] },
    bundle: () => Promise.resolve(new Uint8Array()),
  };
  const call: IsolateCall = {
    request: new Request("http://localhost/"),
    context: { sessionId: "s", site: "edge-1", version: "1" },
    gate: () => {},
    log: () => {},
    store,
  };
  const pending = new PendingCall(app, call, null);
  const nowhere = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => Promise.resolve(batch.length),
  }, () => {});
  const exchange = new HostExchange(nowhere, 1, pending, {
    dueMs: Infinity,
    closed: () => {},
    hold: new AppQueues().hold("isolate", () => {}),
  });
  exchange.begin();
  return { exchange, pending, commits: () => commits };
}

const commit = () =>
  payloadOf((frame) => writeAtomic(frame.u32(1), [], [{ kind: "delete", key: packKey(["k"]) }]));
const response = (body: number) => payloadOf((frame) => writeResponseHead(frame, 200, "", [], body));

Deno.test("an isolate that has said that a request has settled writes no more for it, while its body comes (H2)", async () => {
  const { exchange, pending, commits } = begun();
  exchange.receive(ISOLATE_FRAME.storeCall, await commit());
  assert.equal(commits(), 1);
  exchange.receive(ISOLATE_FRAME.response, await response(BODY.stream | SETTLED));
  assert.ok((await pending.answer).kind === "response" && !exchange.hasEnded);
  exchange.receive(ISOLATE_FRAME.storeCall, await commit());
  assert.equal(commits(), 1);
  exchange.end("it is over");
});

Deno.test("what an isolate says of an exchange that has ended is ignored (H2)", async () => {
  const { exchange, pending, commits } = begun();
  exchange.end("it is over");
  exchange.receive(ISOLATE_FRAME.storeCall, await commit());
  exchange.receive(ISOLATE_FRAME.response, await response(BODY.none));
  assert.deepEqual([commits(), pending.answered], [0, false]);
});
