import { strict as assert } from "node:assert";
import { AppQueues } from "../isolate/app_queues.ts";
import { MESSAGE_BYTES } from "../isolate/socket_window.ts";
import { bridge, ClientSocket, cutReason } from "./message_socket.ts";

const LIMITS = { messageBytesMax: 1_000 };

/** A server's and a client's end of one WebSocket, both as the gateway has them, and what each was closed with. */
async function pair(queues?: AppQueues) {
  const taken = Promise.withResolvers<WebSocket>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    taken.resolve(socket);
    return response;
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.addr.port}`);
  const accepted = await taken.promise;
  const closed = (socket: WebSocket) =>
    new Promise<[number, string]>((resolve) =>
      socket.addEventListener("close", ({ code, reason }) => resolve([code, reason]))
    );
  return {
    ...{
      atServer: new ClientSocket(accepted, { ...LIMITS, queues }),
      atClient: new ClientSocket(client, LIMITS),
    },
    ...{ serverClosed: closed(accepted), clientClosed: closed(client) },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("a reason that is too long for a close frame is cut, whoever gave it: nothing is thrown where nobody waits", async () => {
  await using ends = await pair();
  ends.atServer.close(4000, "ü".repeat(200));
  assert.deepEqual(await ends.clientClosed, [4000, "ü".repeat(61)]);
  await ends.serverClosed;
});

Deno.test("an end that this process opened may not say every code: it is closed without one", async () => {
  await using ends = await pair();
  ends.atClient.close(1011, "");
  const [code] = await ends.serverClosed;
  assert.equal(code, 1005);
  await ends.clientClosed;
});

Deno.test("a reason is cut to 123 bytes of UTF-8, never within a character", () => {
  const rows: [string, number][] = [["", 0], ["x".repeat(123), 123], ["x".repeat(124), 123], [
    "€".repeat(50),
    123,
  ], [
    "x" + "🙂".repeat(40),
    121,
  ]];
  for (const [reason, bytes] of rows) {
    const cut = cutReason(reason);
    assert.equal(new TextEncoder().encode(cut).length, bytes, reason);
    assert.ok(cut.isWellFormed());
  }
});

Deno.test("a client's message that is too long closes it with 1009, and is not kept; what came before it is gone with it", async () => {
  const tooLong: [what: string, message: string | Uint8Array<ArrayBuffer>][] = [
    ["bytes", new Uint8Array(1_001)],
    ["text", "x".repeat(1_001)],
    ["text of fewer characters", "€".repeat(334)],
  ];
  for (const [what, message] of tooLong) {
    await using ends = await pair();
    await ends.atClient.send("€".repeat(333));
    assert.deepEqual(await ends.atServer.next(), { kind: "message", data: "€".repeat(333) }, what);
    await ends.atClient.send(new Uint8Array(1_000));
    await ends.atClient.send(message);
    assert.equal((await ends.clientClosed)[0], 1009, what);
    const [first, then] = [await ends.atServer.next(), await ends.atServer.next()];
    assert.ok(first.kind === "close" || first.data.length === 1_000, what);
    assert.deepEqual(then, { kind: "close", code: 1009, reason: "a message has at most 1000 bytes" }, what);
    await ends.serverClosed;
  }
});

Deno.test("a client that sends as fast as it can waits until its messages are taken: none is lost, and nobody else waits (MK6)", async () => {
  const queues = new AppQueues(), MESSAGES = 20_000;
  await using ends = await pair(queues);
  const sent = (async () => {
    for (let i = 0; i < MESSAGES; i++) await ends.atClient.send(`${i}`);
  })();
  let turns = 0, isOver = false, waited = 0;
  const turn = () => void (isOver || (turns++, setImmediate(turn)));
  turn();
  for (let i = 0; i < MESSAGES; i++) {
    assert.deepEqual(await ends.atServer.next(), { kind: "message", data: `${i}` });
    waited = Math.max(waited, queues.bytes / MESSAGE_BYTES);
    if (i % 5_000 === 0) await new Promise((resolve) => setTimeout(resolve, 50)); // the app is slow
  }
  isOver = true;
  await sent;
  assert.ok(waited <= 70, `${waited} waited`);
  assert.ok(turns >= MESSAGES / 70, `${turns} turns`);
  ends.atClient.close(1000, "");
  assert.equal((await ends.atServer.next()).kind, "close");
  await ends.serverClosed;
});

Deno.test("a client's messages are passed on when it is their app's turn, and cost it one (MK4)", async () => {
  const queues = new AppQueues(), { turns } = queues;
  await using ends = await pair(queues);
  for (let i = 0; i < 3; i++) await ends.atClient.send(`${i}`);
  assert.deepEqual(await ends.atServer.next(), { kind: "message", data: "0" });
  while (queues.bytes < 2 * MESSAGE_BYTES) await new Promise((resolve) => setImmediate(resolve)); // both wait
  turns.spend(40);
  let turned = 0, isOver = false;
  const turn = () => void (isOver || (turned++, setImmediate(turn)));
  turn();
  assert.deepEqual(await ends.atServer.next(), { kind: "message", data: "1" });
  assert.ok(turned >= 35, `after ${turned} turns`);
  assert.deepEqual(await ends.atServer.next(), { kind: "message", data: "2" });
  isOver = true;
  ends.atClient.close(1000, "");
  await ends.serverClosed;
});

Deno.test("an end that is cut drops what waits, and has the other end cut, too (MK3)", async () => {
  await using ends = await pair();
  for (let i = 0; i < 3; i++) await ends.atClient.send(`${i}`);
  assert.deepEqual(await ends.atServer.next(), { kind: "message", data: "0" });
  ends.atServer.cut(4013, "too much");
  assert.deepEqual(await ends.atServer.next(), { kind: "close", code: 4013, reason: "too much" });
  await ends.clientClosed;
  await ends.serverClosed;
  const cuts: unknown[] = [];
  let cutByItsSide: ((code: number, reason: string) => void) | undefined;
  const silent = new Promise<never>(() => {}), close = () => {}, send = () => Promise.resolve();
  void bridge({ next: () => silent, send, close, whenCut: (tell) => cutByItsSide = tell }, {
    ...{ next: () => silent, send, close },
    cut: (...told) => cuts.push(told),
  });
  cutByItsSide?.(1013, "not taken");
  assert.deepEqual(cuts, [[1013, "not taken"]]);
});
