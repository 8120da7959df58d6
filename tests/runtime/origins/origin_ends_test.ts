/** Ends of origins, over real connections on loopback and the real home side of a session that forwards nothing itself. */
import assert from "node:assert/strict";
import { originAddress } from "../../../functions/origin_address.ts";
import {
  decodeToHome,
  encodeToHost,
  GRACE_MS,
  HomeSide,
  type LoggedPeers,
  type PeerClock,
  type PeerInput,
} from "../../../functions/sessions/attach/mod.ts";
import { decodeSummary } from "../../../functions/sessions/sealed/mod.ts";
import { EgressRules } from "../../../runtime/isolate/egress_rules.ts";
import { SYSTEM_CLOCK } from "../../../runtime/stateful/clock.ts";
import { OriginEnds, type OriginWanted } from "../../../runtime/origins/origin_ends.ts";
import type { FrameWay } from "../../../functions/sessions/attach/frame_way.ts";
import { OriginWay } from "../../../functions/sessions/attach/origin_way.ts";
import { connectOrigin } from "../../../runtime/origins/plain_origin.ts";

const utf8 = new TextEncoder();
const WANTED: OriginWanted = { app: "shop", class: "wire", version: "v1", id: "w1" };

/** Time that only a test moves, for graces; what is due in less than a second is due at once. */
function slowClock() {
  const soon = new Set<ReturnType<typeof setTimeout>>();
  const late: { readonly ms: number; readonly run: () => void }[] = [];
  const clock: PeerClock = {
    nowMs: () => performance.now(),
    after: (ms, run) => {
      if (ms < 1_000) {
        const timer = setTimeout(() => (soon.delete(timer), run()), ms);
        soon.add(timer);
        return () => clearTimeout(timer);
      }
      const each = { ms, run };
      late.push(each);
      return () => late.includes(each) && late.splice(late.indexOf(each), 1);
    },
  };
  const pass = (ms: number) => {
    for (const each of late.filter((each) => each.ms <= ms)) {
      late.splice(late.indexOf(each), 1);
      each.run();
    }
  };
  const stop = () => soon.forEach((timer) => clearTimeout(timer));
  return { clock, pass, [Symbol.dispose]: stop };
}

/** What a session is told of its origin, and a way to wait for it. */
class Events {
  readonly all: string[] = [];
  #wake: () => void = () => {};

  push(event: string): void {
    this.all.push(event);
    this.#wake();
  }

  async until(holds: (all: readonly string[]) => boolean): Promise<void> {
    while (!holds(this.all)) await new Promise<void>((resolve) => this.#wake = resolve);
  }
}

/** One home of the session: all that it is given is in the log at once, unless it is deaf. */
function homeOf(ends: OriginEnds, clock: PeerClock, events: Events, logged: LoggedPeers, isDeaf = false) {
  let id = logged.peers[0]?.id ?? "",
    sent = logged.peers[0]?.sent ?? 0,
    received = logged.peers[0]?.received ?? 0;
  const kept: { to: string; sequence: number; bytes: Uint8Array }[] = [];
  const deliver = (event: PeerInput) => {
    if (isDeaf && event.kind === "message") return;
    queueMicrotask(() => {
      if (event.kind === "attach") id = event.peer.id;
      if (event.kind === "message") received++;
      const message = event.kind !== "message"
        ? ""
        : ` ${typeof event.message === "string" ? event.message : new TextDecoder().decode(event.message)}`;
      side.released({ done: [{ event, rejected: null }], outputs: [] });
      events.push(`${event.kind}${message}`);
    });
  };
  const side = new HomeSide({
    ...{ clock, deliver, acknowledge: () => {}, outrun: () => {} },
    newId: () => `origin-${logged.epoch}`,
    keysOf: (peer) => [utf8.encode(peer.padEnd(16, "-"))],
  });
  side.opened(logged);
  const way = new OriginWay(
    () => Promise.resolve(ends.open(WANTED)),
    (channel) => side.accept(channel, "origin"),
    (error) => void Promise.reject(error),
    SYSTEM_CLOCK,
  );
  return {
    ...{ side, way },
    send: (text: string) => {
      const output = { to: id, sequence: ++sent, bytes: Uint8Array.of(0, ...utf8.encode(text)) };
      kept.push(output);
      side.released({ done: [], outputs: [output] });
    },
    log: (epoch: number): LoggedPeers => ({
      epoch,
      peers: [{ kind: "origin", id, sent, received, isClosed: false }],
      outputs: kept,
    }),
  };
}

const BLANK: LoggedPeers = { epoch: 1, peers: [], outputs: [] };

function endsAt(url: string, clock: PeerClock) {
  const address = originAddress(url);
  assert(address !== null);
  const rules = new EgressRules({
    fetchHosts: [`${address.host}:${address.port}`],
    privateHosts: [`${address.host}:${address.port}`],
  });
  const logged: string[] = [];
  let drawn = 0;
  const ends = new OriginEnds({
    ...{ clock, draw: () => ++drawn, toAgent: () => false, log: (_wanted, text) => logged.push(text) },
    holdsLogs: false,
    originOf: ({ version }) => Promise.resolve(version === "v1" ? address : null),
    connect: (origin, listener) => connectOrigin(origin, rules, listener),
  });
  return { ends, logged };
}

/** A TCP server that echoes. */
function tcpEcho() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.TcpConn[] = [];
  const serving = (async () => {
    for await (const connection of listener) {
      connections.push(connection);
      connection.readable.pipeTo(connection.writable).catch(() => {});
    }
  })();
  return {
    url: `tcp://127.0.0.1:${listener.addr.port}`,
    connections,
    stop: () => (listener.close(), serving),
  };
}

/** A WebSocket server that echoes, and closes when it is told to. */
function socketEcho() {
  const sockets: WebSocket[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onopen = () => void sockets.push(socket);
    socket.onmessage = ({ data }) => data === "close" ? socket.close(3_001, "as told") : socket.send(data);
    return response;
  });
  return { url: `ws://127.0.0.1:${server.addr.port}/echo`, sockets, stop: () => server.shutdown() };
}

for (const [name, start] of [["TCP", tcpEcho], ["WebSocket", socketEcho]] as const) {
  Deno.test(`a ${name} origin sees one connection, and each message once, when the session's home changes (OS1, origin_end.ts OE1)`, async () => {
    using time = slowClock();
    const { clock } = time;
    const origin = start();
    const { ends } = endsAt(origin.url, clock);
    const events = new Events();
    const first = homeOf(ends, clock, events, BLANK);
    await events.until((all) => all.includes("attach"));
    first.send("one");
    await events.until((all) => all.includes("message one"));
    // The home is lost: nothing is said, what it has sent is in its log.
    first.way.close();
    first.send("two");
    const second = homeOf(ends, clock, events, first.log(2));
    await events.until((all) => all.includes("message two"));
    second.send("three");
    await events.until((all) => all.includes("message three"));
    assert.deepEqual(events.all, ["attach", "message one", "message two", "message three"]);
    assert.equal(ends.size, 1);
    assert.equal("connections" in origin ? origin.connections.length : origin.sockets.length, 1);
    second.side.ended(1000, "");
    second.way.close();
    ends.close();
    await origin.stop();
  });
}

Deno.test("a session is told that its origin has gone, and attaches it anew, when the origin closes", async () => {
  using time = slowClock();
  const { clock } = time;
  const origin = socketEcho();
  const { ends } = endsAt(origin.url, clock);
  const events = new Events();
  const home = homeOf(ends, clock, events, BLANK);
  await events.until((all) => all.includes("attach"));
  home.send("close");
  await events.until((all) => all.length === 3);
  assert.deepEqual(events.all, ["attach", "detach", "attach"]);
  assert.equal(origin.sockets.length, 2);
  home.way.close();
  ends.close();
  await origin.stop();
});

Deno.test("an origin's connection is given up when no home comes for it", async () => {
  using time = slowClock();
  const { clock, pass } = time;
  const origin = socketEcho();
  const { ends } = endsAt(origin.url, clock);
  const events = new Events();
  const home = homeOf(ends, clock, events, BLANK);
  await events.until((all) => all.includes("attach"));
  const closed = new Promise<number>((resolve) =>
    origin.sockets[0]?.addEventListener("close", ({ code }) => resolve(code))
  );
  home.way.close();
  await new Promise((resolve) => setTimeout(resolve, 0));
  pass(GRACE_MS);
  assert.equal(await closed, 1001);
  assert.equal(ends.size, 0);
  await origin.stop();
});

Deno.test("an origin that can't be reached is logged, and asked for again", async () => {
  using time = slowClock();
  const { clock } = time;
  const { ends, logged } = endsAt("tcp://127.0.0.1:1", clock);
  const home = homeOf(ends, clock, new Events(), BLANK);
  while (logged.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.match(logged[0] ?? "", /the origin of wire "w1": tcp:\/\/127\.0\.0\.1:\d+ can't be reached: /);
  home.way.close();
  ends.close();
});

Deno.test("an origin is not read when its session takes nothing (origin_end.ts OE2)", async () => {
  using time = slowClock();
  const { clock } = time;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { ends } = endsAt(`tcp://127.0.0.1:${listener.addr.port}`, clock);
  const events = new Events();
  const home = homeOf(ends, clock, events, BLANK, true);
  const connection = await listener.accept();
  await events.until((all) => all.includes("attach"));
  const chunk = new Uint8Array(1 << 20);
  let written = 0, isClosed = false;
  const writing = (async () => {
    for (; written < 64; written++) await connection.write(chunk);
  })().catch(() => void (isClosed = true));
  // It stands still long before all is written: what the system and the end hold is bounded.
  for (let before = -1; before !== written;) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(written < 40, `${written} MiB were taken`);
  assert.equal(isClosed, false, "it is held up, and not sent away");
  home.way.close();
  ends.close();
  connection.close();
  await writing;
  listener.close();
});

Deno.test("a way is closed, and the site goes on, when its origin can't be looked up", async () => {
  using time = slowClock();
  const logged: string[] = [];
  const ends = new OriginEnds({
    ...{ clock: time.clock, draw: () => 1, toAgent: () => false, log: (_wanted, text) => logged.push(text) },
    holdsLogs: false,
    originOf: () => Promise.reject(new Error("the disk is away")),
    connect: () => assert.fail("nothing is connected"),
  });
  assert.equal(await ends.open(WANTED).next(), null);
  assert.match(logged[0] ?? "", /the origin of wire can't be looked up: Error: the disk is away/);
});

Deno.test("nothing is connected for a version whose manifest names no origin, whoever asks (origin_ends.ts OS2)", async () => {
  using time = slowClock();
  const logged: string[] = [];
  const ends = new OriginEnds({
    ...{ clock: time.clock, draw: () => 1, toAgent: () => false, log: (_wanted, text) => logged.push(text) },
    holdsLogs: false,
    originOf: () => Promise.resolve(null),
    connect: () => assert.fail("nothing is connected"),
  });
  assert.equal(await ends.open(WANTED).next(), null);
  assert.match(logged[0] ?? "", /the root knows no origin of wire/);
});

Deno.test("an end at an agent holds its session's log and gives it back when the home changes; one at the root none (OE3)", async () => {
  using time = slowClock();
  const address = originAddress("tcp://127.0.0.1:1");
  const silent = { waitingBytes: 0, send: () => {}, pause: () => {}, resume: () => {}, close: () => {} };
  const endsOf = (holdsLogs: boolean) =>
    new OriginEnds({
      ...{ clock: time.clock, draw: () => 1, toAgent: () => false, log: () => {}, holdsLogs },
      originOf: () => Promise.resolve(address),
      connect: () => Promise.resolve(silent),
    });
  const said = async (way: FrameWay) => {
    const frame = await way.next();
    assert(frame !== null);
    return decodeToHome(frame);
  };
  const atRoot = endsOf(false), first = await said(atRoot.open(WANTED));
  assert(first.kind === "hello" && first.log === null);
  atRoot.close();

  const ends = endsOf(true), home = ends.open(WANTED);
  assert((await said(home)).kind === "hello");
  const identity = { id: "origin-1", key: new Uint8Array(32) };
  const record = Uint8Array.of(0, 1, ...new Uint8Array(40));
  void home.send(encodeToHost({ kind: "welcome", identity, epoch: 1, received: 0 }));
  void home.send(encodeToHost({ kind: "record", record }));
  assert.deepEqual(await said(home), { kind: "taken", records: 1 });
  const next = ends.open(WANTED), hello = await said(next);
  assert(hello.kind === "hello" && hello.log !== null);
  assert.equal(decodeSummary(hello.log).promised, 1);
  void next.send(encodeToHost({ kind: "fence", epoch: 2 }));
  assert.deepEqual(await said(next), { kind: "log", epoch: 2, records: [record] });
  // That home's site is lost, too, for longer than a peer is kept: whoever opens the session asks for just this log.
  next.close();
  await new Promise((resolve) => setTimeout(resolve, 0));
  time.pass(GRACE_MS);
  assert.equal(ends.size, 1);
  time.pass(24 * 3_600_000);
  assert.equal(ends.size, 0);
});

Deno.test("an origin has no new connection of a site that stops, however its home asks for one", async () => {
  using time = slowClock();
  const looked = Promise.withResolvers<void>();
  let connections = 0;
  const ends = new OriginEnds({
    ...{ clock: time.clock, draw: () => 1, holdsLogs: false, toAgent: () => false, log: () => {} },
    originOf: async () => {
      await looked.promise;
      return originAddress("tcp://127.0.0.1:1");
    },
    connect: () => {
      connections++;
      return Promise.reject(new Error("nobody is there"));
    },
  });
  const before = ends.open(WANTED);
  ends.close();
  looked.resolve();
  const after = ends.open(WANTED);
  assert.deepEqual([await before.next(), await after.next()], [null, null]);
  assert.deepEqual([connections, ends.size], [0, 0]);
});
