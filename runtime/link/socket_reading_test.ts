import { strict as assert } from "node:assert";
import { SocketReading } from "./socket_reading.ts";

/** A client's and a server's end of one WebSocket; the server's events are told. */
async function pair(told: (event: MessageEvent, reading: SocketReading) => void) {
  const opened = Promise.withResolvers<{ socket: WebSocket; reading: SocketReading }>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    const reading = new SocketReading(socket);
    socket.addEventListener("message", (event) => told(event, reading));
    socket.addEventListener("open", () => opened.resolve({ socket, reading }));
    return response;
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.addr.port}`);
  const closed = new Promise<CloseEvent>((resolve) => client.addEventListener("close", resolve));
  await new Promise((resolve) => client.addEventListener("open", resolve));
  const { socket, reading } = await opened.promise;
  const ended = new Promise<CloseEvent>((resolve) => socket.addEventListener("close", resolve));
  return {
    ...{ client, closed, socket, reading, ended },
    [Symbol.asyncDispose]: async () => {
      reading.resume();
      client.close();
      await Promise.all([closed, ended]);
      await server.shutdown();
    },
  };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("a WebSocket that is paused has no events until it is resumed, and then all, in order (SRD1, SRD2)", async () => {
  const got: unknown[] = [];
  await using ends = await pair(({ data }, reading) => {
    got.push(data);
    if (got.length % 3 === 0) reading.pause();
  });
  for (let i = 0; i < 10; i++) ends.client.send(`${i}`);
  for (const [count, isPaused] of [[3, true], [6, true], [9, true], [10, false]] as const) {
    while (got.length < count) await pause(1);
    await pause(100); // what small messages take one after the other, too
    assert.deepEqual(got, Array.from({ length: count }, (_, i) => `${i}`));
    assert.equal(ends.reading.isPaused, isPaused);
    assert.equal(ends.socket.readyState, WebSocket.OPEN);
    const answer = new Promise((resolve) => ends.client.addEventListener("message", resolve, { once: true }));
    ends.socket.send("still here");
    await answer;
    ends.reading.resume();
    ends.reading.resume(); // it is read once
  }
});

Deno.test("a WebSocket that is paused can be closed by either side, once it is read again (SRD2, SRD3)", async () => {
  for (const who of ["socket", "client"] as const) {
    await using ends = await pair((_, reading) => reading.pause());
    ends.client.send("a");
    await pause(30);
    assert.ok(ends.reading.isPaused);
    ends[who].close(4001, "over");
    if (who === "socket") assert.equal((await ends.closed).code, 4001);
    await pause(30);
    assert.ok(ends.reading.isPaused);
    ends.reading.resume();
    assert.equal((await ends.ended).code, 4001);
    ends.reading.resume();
  }
});

Deno.test("a client that sends as fast as it can holds nobody up where it is paused now and then (SRD1)", async () => {
  let count = 0, turns = 0, most = 0, inTurn = 0;
  const all = Promise.withResolvers<void>(), MESSAGES = 50_000;
  await using ends = await pair((_, reading) => {
    most = Math.max(most, ++inTurn);
    if (inTurn === 100) {
      reading.pause();
      setImmediate(() => reading.resume());
    }
    if (++count === MESSAGES) all.resolve();
  });
  let isOver = false;
  const turn = () => {
    turns++;
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  turn();
  for (let i = 0; i < MESSAGES; i++) ends.client.send("x");
  await all.promise;
  isOver = true;
  assert.ok(most <= 101, `${most} in one turn`);
  assert.ok(turns >= MESSAGES / 101, `${turns} turns`);
});
