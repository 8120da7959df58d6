/** `WebSocket` of the client library, in virtual time, to a stateful session whose homes and sites die. */
import { strict as assert } from "node:assert";
import type { ClientStorage, StorageChange } from "../../../functions/client/ports.ts";
import { MemoryClientStorage } from "../../../functions/client/storage.ts";
import { FakeSession } from "./fake_session.ts";
import { opened, pageOf, SlowStorage, until } from "./pages.ts";
import { VirtualHost } from "./virtual_host.ts";

Deno.test("a socket to a stateful session is a WebSocket: states, events, messages, an orderly end (W1)", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  const { client, socket, got, events } = await opened(world);
  assert.deepEqual([socket.readyState, socket.url, socket.protocol], [0, "ws://edge-1.test/table/7", ""]);
  assert.throws(() => socket.send("early"), (error) => (error as DOMException).name === "InvalidStateError");
  let handled = "";
  socket.onopen = function (event) {
    handled = `${event.type} ${this === socket}`;
  };
  await until(world, () => socket.readyState === 1, "it opens");
  assert.equal(handled, "open true");
  assert.match(session.offered[0]?.tokens[0] ?? "", /^s/, "it comes with the session's token");
  socket.send("one");
  socket.send(new Blob(["two"]));
  socket.send(new TextEncoder().encode("three"));
  socket.send("four");
  assert(socket.bufferedAmount > 0);
  await until(world, () => got.length === 4, "four answers");
  assert.deepEqual(session.heard.map((each) => each.includes(",") ? "bytes" : each), [
    "one",
    "bytes",
    "bytes",
    "four",
  ]);
  await until(world, () => socket.bufferedAmount === 0, "all is in the log");
  assert.equal(client.status().sockets, 1);
  assert.throws(() => socket.close(999), (error) => (error as DOMException).name === "InvalidAccessError");
  assert.throws(
    () => socket.close(1000, "x".repeat(124)),
    (error) => (error as DOMException).name === "SyntaxError",
  );
  socket.send("last");
  socket.close(3001, "done");
  assert.equal(socket.readyState, 2);
  await until(world, () => socket.readyState === 3, "it closes");
  assert.deepEqual(events, ["open", "close 3001 done true"]);
  assert.equal(session.heard.at(-1), "last", "what was sent before the close is heard");
  assert.deepEqual(session.seen, ["+peer-1", "-peer-1"]);
  socket.send("late");
  await client.close();
  await world.pass(100);
  assert.equal(world.timers, 0);
});

Deno.test("sites and homes die, and each message is heard once, each answer given once, in order (L2)", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const world = new VirtualHost(["edge-1", "edge-2", "core-1", "cloud"]);
    const session = new FakeSession(world);
    const { client, socket, got, events } = await opened(world);
    await until(world, () => socket.readyState === 1, "it opens");
    let state = seed;
    const draw = (of: number) => (state = state * 48_271 % 0x7fffffff) % of;
    const sent: string[] = [];
    for (let step = 0; step < 60; step++) {
      for (let i = draw(4); i > 0; i--) socket.send(sent[sent.push(`m${sent.length}`) - 1] ?? "");
      const site = world.sites[draw(4)];
      switch (draw(12)) {
        case 0:
          session.kill(draw(4_000));
          break;
        case 1:
          if (site !== undefined) session.lose(site);
          break;
        case 2:
          session.cut();
          break;
        case 3:
          if (site?.state === "up") site.state = "frozen";
          break;
        case 4:
          if (site?.state === "up") site.state = "draining";
          break;
        default:
          for (const each of world.sites) if (draw(3) === 0) each.state = "up";
      }
      await world.pass(draw(800));
    }
    for (const each of world.sites) each.state = "up";
    await until(
      world,
      () => got.length >= sent.length,
      `seed ${seed}: ${got.length} of ${sent.length} answers`,
    );
    await world.pass(2_000);
    assert.deepEqual(session.heard, sent, `seed ${seed}`);
    assert.deepEqual(got, sent.map((each, at) => `${at + 1} ${each}`), `seed ${seed}`);
    assert.equal(events[0], "open");
    assert(events.slice(1).every((each, at) => each === (at % 2 === 0 ? "away" : "back")), `${events}`);
    assert.equal(socket.readyState, 1);
    await client.close();
    await world.pass(10_000);
    assert.equal(world.timers, 0, `seed ${seed} leaves timers`);
  }
});

Deno.test("where the app has a WebSocket of its own it is that, and ends with its connection (L1)", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  session.takes = "plain";
  const { client, socket, got, events } = await opened(world);
  await until(world, () => socket.readyState === 1, "it opens");
  assert.deepEqual(session.offered[0]?.protocols, ["sojourn.session.1", "sojourn.plain.1"]);
  assert.equal(socket.protocol, "");
  socket.send("one");
  await until(world, () => got.length === 1, "an answer");
  assert.deepEqual(got, ["heard one"]);
  session.cut();
  await until(world, () => socket.readyState === 3, "it ends");
  assert.deepEqual(events, ["open", "error", "close 1006  false"]);
  await client.close();
});

Deno.test("who is refused by living sites is told soon, who finds no site waits for one (L3)", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  session.takes = "refuses";
  const begunMs = world.nowMs();
  const refused = await opened(world);
  await until(world, () => refused.socket.readyState === 3, "it is refused");
  assert.deepEqual(refused.events, ["error", "close 1006  false"]);
  assert(world.nowMs() - begunMs < 10_000);

  session.takes = "session";
  const waiting = await opened(world);
  for (const site of world.sites) session.lose(site);
  await world.pass(20_000);
  assert.equal(waiting.socket.readyState, 0);
  world.at("cloud").state = "up";
  await until(world, () => waiting.socket.readyState === 1, "it opens at the cloud");
  await refused.client.close();
  await waiting.client.close();
});

Deno.test("a socket that finds no site for so long is over; one that is closed meanwhile does not wait for it", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  const { client, socket, events } = await opened(world, world, { resumeMs: 30_000 });
  const other = new client.WebSocket("/8");
  await until(world, () => socket.readyState === 1 && other.readyState === 1, "they open");
  for (const site of world.sites) session.lose(site);
  await world.pass(1_000);
  other.close();
  const begunMs = world.nowMs();
  await until(world, () => other.readyState === 3, "it is closed");
  assert(world.nowMs() - begunMs < 6_000);
  await until(world, () => socket.readyState === 3, "it is over");
  assert.deepEqual(events, ["open", "away", "error", "close 1006  false"]);
  await client.close();
});

Deno.test("a session that has forgotten its peer says so, and the socket ends with the reason", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  const { client, socket, events } = await opened(world);
  await until(world, () => socket.readyState === 1, "it opens");
  session.forget();
  await until(world, () => socket.readyState === 3, "it ends");
  assert.deepEqual(events.slice(-2), ["error", "close 4000 peer_unknown false"]);
  await client.close();
});

Deno.test("a client that moves takes its sockets along, without a gap (line.ts L5)", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  const { client, socket, got, events } = await opened(world);
  await until(world, () => socket.readyState === 1, "it opens");
  world.at("edge-1").state = "draining";
  world.app = (call, site) => world.answer(call, site, "");
  await world.run(client.fetch("/x"));
  assert.equal(client.status().site.id, "edge-2");
  for (let i = 0; i < 20; i++) {
    socket.send(`${i}`);
    await world.pass(10);
  }
  await until(world, () => got.length === 20, "all answers");
  assert.deepEqual(events, ["open"], "nobody noticed");
  session.lose(world.at("edge-1"));
  await world.pass(1_000);
  assert.deepEqual(events, ["open"], "it had left");
  await client.close();
});

Deno.test("a client that has nothing but a socket leaves a site that is about to stop, before it does", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  const { client, socket, got, events } = await opened(world);
  await until(world, () => socket.readyState === 1, "it opens");
  const chat = async () => {
    for (let i = 0; i < 40; i++) {
      socket.send("x");
      await world.pass(500);
    }
  };
  await chat();
  world.at("edge-1").state = "draining";
  await chat();
  assert.equal(client.status().site.id, "edge-2");
  session.lose(world.at("edge-1"));
  await chat();
  assert.deepEqual([events, got.length], [["open"], 120], "nobody noticed");
  await client.close();
});

/** Loads a page six times, each gone at some moment. @throws where something was lost, doubled or out of order */
async function reloads(seed: number, Storage: typeof SlowStorage): Promise<void> {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  let state = seed;
  const draw = (of: number) => (state = state * 48_271 % 0x7fffffff) % of;
  let kept: ClientStorage = new MemoryClientStorage();
  const all: string[] = [];
  let sent = 0;
  for (let load = 0; load < 5; load++) {
    const page = pageOf(world);
    const storage: ClientStorage = kept = new Storage(world, await kept.list(""), page.isGone);
    const { socket, got, events } = await opened(world, page.host, { storage });
    await until(world, () => socket.readyState === 1, `seed ${seed}, load ${load}: it opens`);
    for (let step = 0; step < 10; step++) {
      for (let i = draw(3); i > 0; i--) socket.send(`m${sent++}`);
      if (draw(9) === 0) session.cut();
      await world.pass(draw(60));
    }
    // What the page has sent is on its disk within two commits; before, it was never said to be sent.
    await world.pass(10);
    page.gone();
    assert(events.every((each) => each !== "error"), `${events}`);
    all.push(...got);
  }
  const storage = new Storage(world, await kept.list(""), () => false);
  const { client, socket, got } = await opened(world, world, { storage });
  await until(world, () => socket.readyState === 1, "it opens");
  socket.send("end");
  await until(world, () => got.at(-1)?.endsWith(" end") === true, "the end");
  all.push(...got);
  assert.deepEqual(session.seen, ["+peer-1"], `seed ${seed}: one peer throughout`);
  assert.deepEqual(
    session.heard,
    [...Array.from({ length: sent }, (_, at) => `m${at}`), "end"],
    `seed ${seed}`,
  );
  const expected = session.heard.map((each, at) => `${at + 1} ${each}`);
  assert.deepEqual([...new Set(all)], expected, `seed ${seed}: all answers, first given in order`);
  await world.run(client.close());
}

Deno.test("a page that is reloaded at any moment goes on as the same peer, with what was not told yet (K1, K2)", async () => {
  for (let seed = 1; seed <= 25; seed++) await reloads(seed, SlowStorage);
});

/** Broken: it says that something is kept before it is. */
class HastyStorage extends SlowStorage {
  override commit(changes: readonly StorageChange[]): Promise<void> {
    void super.commit(changes);
    return Promise.resolve();
  }
}

Deno.test("where something leaves before it is kept, the same test finds it", async () => {
  let found = 0;
  for (let seed = 1; seed <= 25; seed++) await reloads(seed, HastyStorage).catch(() => found++);
  assert(found > 0);
});

Deno.test("a page that comes back when its session has forgotten it begins as somebody new", async () => {
  const world = new VirtualHost();
  const session = new FakeSession(world);
  const kept = new MemoryClientStorage();
  const first = await opened(world, world, { storage: kept });
  await until(world, () => first.socket.readyState === 1, "it opens");
  await first.client.close();
  assert.deepEqual(first.events, ["open", "close 1001  true"]);
  session.forget();
  const second = await opened(world, world, { storage: kept });
  await until(world, () => second.socket.readyState === 1, "it opens");
  second.socket.send("hello");
  await until(world, () => second.got.length === 1, "an answer");
  assert.deepEqual(second.got, ["1 hello"]);
  assert.deepEqual(session.seen, ["+peer-1", "+peer-2"]);
  second.socket.close();
  await until(world, () => second.socket.readyState === 3, "it closes");
  await world.pass(100);
  assert.deepEqual((await kept.list("ws/")).map(([name]) => name), [], "nothing is left of it");
  await second.client.close();
});

Deno.test("a page that was loaded again keeps its peer when the last connection of the one before comes late (K5)", async () => {
  const world = new VirtualHost(), session = new FakeSession(world), site = world.at("edge-1");
  let kept: ClientStorage = new MemoryClientStorage();
  const first = pageOf(world);
  const before = await opened(world, first.host, { storage: kept });
  await until(world, () => before.socket.readyState === 1, "it opens");
  before.socket.send("one");
  await until(world, () => before.got.length === 1, "an answer");
  await world.pass(100);
  site.rttMs = 1_000;
  session.kill(0);
  await until(world, () => session.offered.length === 2, "it comes again");
  await world.pass(1_050); // its connection is there, and its hello on the way
  first.gone();
  kept = new MemoryClientStorage(await kept.list(""));
  site.rttMs = 10;
  const second = await opened(world, world, { storage: kept });
  await until(world, () => second.socket.readyState === 1, "it opens");
  await world.pass(2_000);
  assert.deepEqual([second.events, second.socket.readyState], [["open", "away", "back"], 1]);
  second.socket.send("two");
  await until(world, () => second.got.length === 1, "an answer");
  assert.deepEqual([session.heard, session.seen], [["one", "two"], ["+peer-1"]]);
  await world.run(second.client.close());
});
