import assert from "node:assert/strict";
import fc from "fast-check";
import type { CallOutcome } from "../../../functions/sessions/turn/mod.ts";
import {
  type MessageSocket,
  type SocketEvent,
  SocketQueue,
} from "../../../runtime/gateway/message_socket.ts";
import {
  AgentHub,
  decodeAnswered,
  decodeAsked,
  encodeAnswered,
  encodeAsked,
} from "../../../runtime/origins/agent_hub.ts";
import type { OriginRequest } from "../../../runtime/origins/http_origins.ts";
import { decodeWanted, encodeWanted, type OriginWanted } from "../../../runtime/origins/origin_ends.ts";
import { localWay } from "../../../functions/sessions/attach/frame_way.ts";

const OF = { app: "shop", class: "wire" };
const WANTED: OriginWanted = { ...OF, version: "v1", id: "w1" };
const REQUEST: OriginRequest = { ...OF, version: "v1", key: "k1", bytes: Uint8Array.of(1, 2) };

/** An agent's line, as the hub has it: `sent` is what the agent gets. */
class Line implements MessageSocket {
  readonly sent: (string | Uint8Array<ArrayBuffer>)[] = [];
  readonly #queue = new SocketQueue();
  closed: number | null = null;

  next(): Promise<SocketEvent> {
    return this.#queue.next();
  }
  send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    this.sent.push(data);
    return Promise.resolve();
  }
  close(code: number, reason = ""): void {
    this.closed ??= code;
    this.#queue.push({ kind: "close", code, reason });
  }
  says(data: string | Uint8Array<ArrayBuffer>): void {
    this.#queue.push({ kind: "message", data });
  }
}

function hub() {
  let tickets = 0;
  return new AgentHub(() => `t${++tickets}`);
}

Deno.test("the newest agent of a class stands for it, and the one before when it has gone (AH1)", async () => {
  const agents = hub(), older = new Line(), newer = new Line();
  const serving = [agents.serve(OF, older), agents.serve(OF, newer)];
  const [way] = localWay();
  assert.ok(agents.offer(WANTED, way));
  assert.deepEqual([older.sent, newer.sent], [[], ['{"way":"t1"}']]);
  const taken = agents.take("t1");
  assert.deepEqual(taken && decodeWanted(taken.wanted), WANTED);
  assert.equal(agents.take("t1"), null, "a ticket is good once");
  newer.close(1000);
  await serving[1];
  assert.ok(agents.offer(WANTED, way));
  assert.deepEqual(older.sent, ['{"way":"t2"}']);
  agents.close();
  await serving[0];
  assert.equal(agents.size, 0);
  assert.ok(!agents.offer({ ...WANTED, class: "other" }, way), "no agent stands for another class");
});

Deno.test("requests of an agent end with its outcome, or fail when it goes (AH3)", async () => {
  const agents = hub(), line = new Line();
  const serving = agents.serve(OF, line);
  const first = agents.fetch(REQUEST), second = agents.fetch({ ...REQUEST, key: null });
  const asked = line.sent.map((message) => decodeAsked(message as Uint8Array));
  assert.deepEqual(asked.map(({ key }) => key), ["k1", null]);
  line.says(encodeAnswered(asked[0]?.number ?? 0, { ok: true, bytes: Uint8Array.of(7) }));
  assert.deepEqual(await first, { ok: true, bytes: Uint8Array.of(7) });
  line.close(1000);
  await serving;
  const failed = await second;
  assert.equal(failed?.ok === false && failed.code, "origin_unreachable");
  assert.equal(agents.fetch(REQUEST), null);
});

Deno.test("an agent that sends garbage loses its line", async () => {
  for (const garbage of ["text", Uint8Array.of(255), Uint8Array.of(1, 2)]) {
    const agents = hub(), line = new Line();
    const serving = agents.serve(OF, line);
    line.says(garbage);
    await serving;
    assert.equal(line.closed, 1003);
    assert.equal(agents.size, 0);
  }
});

Deno.test("what goes over an agent's line reads back when it was written", () => {
  const outcome: fc.Arbitrary<CallOutcome> = fc.oneof(
    fc.record({ ok: fc.constant(true as const), bytes: fc.uint8Array() }, { noNullPrototype: true }),
    fc.record({ ok: fc.constant(false as const), code: fc.string(), message: fc.string() }, {
      noNullPrototype: true,
    }),
  );
  fc.assert(
    fc.property(
      fc.nat(),
      outcome,
      fc.option(fc.string({ minLength: 1 })),
      fc.uint8Array(),
      (n, given, key, bytes) => {
        assert.deepEqual(decodeAnswered(encodeAnswered(n, given)), { number: n, outcome: given });
        assert.deepEqual(decodeAsked(encodeAsked(n, { ...REQUEST, key, bytes })), { number: n, key, bytes });
      },
    ),
  );
  assert.deepEqual(decodeWanted(encodeWanted(WANTED)), WANTED);
});

Deno.test("an agent whose line takes nothing any more is found gone by its line: nothing else fails", async () => {
  const agents = hub(), line = new Line(), [way] = localWay();
  line.send = () => Promise.reject(new Error("the line broke"));
  const serving = agents.serve(OF, line);
  assert.equal(agents.offer(WANTED, way), true);
  const asked = agents.fetch(REQUEST);
  await new Promise((resolve) => setTimeout(resolve)); // a rejection that nobody took would be told by now
  line.close(1006);
  await serving;
  assert.equal((await asked)?.ok, false);
  agents.close();
});
