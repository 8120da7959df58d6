/** Peers over the host of stateful sessions: its runs, real homes and logs; isolates are lost, and channels break. */
import assert from "node:assert/strict";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import {
  type Channel,
  decodeToHost,
  encodeToHome,
  Remembered,
} from "../../../../functions/sessions/attach/mod.ts";
import { type From, Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { Draws } from "../../../sim/random.ts";
import { check, Client, name, soon, until } from "../attach/host_client.ts";
import { Disks, memoryHost, seeing } from "./memory_host.ts";
import { End, HandClock, hello, keyOf } from "../attach/peer_pair.ts";
import type { Commit, HandledEvent, OpenedProgram } from "../../../../functions/sessions/turn/mod.ts";
import { hostOwner, HostOwners } from "../../../../functions/sessions/log/host_owners.ts";
import { Problem } from "../../../../functions/vocabulary/problem.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { type FrameWay, localWay } from "../../../../functions/sessions/attach/frame_way.ts";
import { HostedPeers, type PeersSession } from "../../../../functions/sessions/serve/hosted_peers.ts";
import {
  type PeersRun,
  SessionPeers,
  type SessionPeersPorts,
} from "../../../../functions/sessions/serve/session_peers.ts";

class Counter extends Session {
  count = 0;

  override onMessage(message: string | Uint8Array, from: From): void {
    from.send(`${++this.count} ${message}`);
  }
}

const counter = () => new Counter() as unknown as SessionObject;

Deno.test("an isolate that ends between a commit and its leaving takes no message with it, and blames none that is done", async () => {
  await using host = await memoryHost(counter);
  const client = new Client(host, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  host.twist((commit) => {
    if (commit.outputs.length > 0) {
      host.twist((same) => same);
      queueMicrotask(() => host.loseIsolates("r"));
    }
    return commit;
  });
  const sent = Array.from({ length: 6 }, (_, i) => `m${i + 1}`);
  for (const message of sent.slice(0, 3)) client.side.send(message);
  await until("the first are there", () => client.side.acknowledged === 3);
  // A home that opens it anew counts what the log says.
  host.loseIsolates();
  client.break();
  for (const message of sent.slice(3)) client.side.send(message);
  await until("all are there", () => client.side.acknowledged === 6);
  await until("all are heard", () => client.heard.length + client.rejected.length === 6);
  check([client], [sent], 1);
  assert.ok(!client.rejected.includes(1), "the first was done");
  await client.end();
});

Deno.test("peers hear each answer once and in order, over isolates that end, rests, other code and broken channels", async () => {
  for (const seed of [1, 2, 3]) {
    const draws = new Draws(`host peers ${seed}`);
    await using host = await memoryHost(counter, { idleMs: 30 });
    const clients = [1, 2, 3].map((instance) => new Client(host, instance));
    const sent: string[][] = clients.map(() => []);
    for (const client of clients) client.connect();
    let blamed = 0;
    for (let round = 0, version = 1; round < 60; round++) {
      const at = draws.integer(0, 2);
      const message = `c${at} m${round}`;
      clients[at]?.side.send(message);
      sent[at]?.push(message);
      if (draws.chance(0.2)) clients[draws.integer(0, 2)]?.break();
      if (draws.chance(0.12)) {
        const isCause = draws.chance(0.3);
        if (isCause) blamed++;
        host.loseIsolates(isCause ? "r" : undefined);
      }
      if (draws.chance(0.05)) host.deploy(`w${++version}`, counter);
      if (draws.chance(0.1)) await soon(50);
      else if (draws.chance(0.6)) await soon(draws.integer(0, 6));
    }
    const done = (client: Client) =>
      client.side.acknowledged === client.side.sent && client.side.stage === "open";
    await until("all is in the log", () => clients.every(done));
    const all = () => clients.reduce((sum, { heard }) => sum + heard.length, blamed) >= sent.flat().length;
    await until("all is heard", all);
    check(clients, sent, blamed);
    for (const client of clients) await client.end();
  }
});

Deno.test("a session whose isolates end now and then is not given up, as long as messages are done in between", async () => {
  await using host = await memoryHost(counter);
  const client = new Client(host, 1);
  client.connect();
  for (let i = 1; i <= 5; i++) {
    client.side.send(`m${i}`);
    await until("it is there", () => client.heard.length === i && client.side.acknowledged === i);
    host.loseIsolates("r");
    await until("it is back", () => client.side.stage === "open");
  }
  client.side.send("last");
  await until("the last is heard", () => client.heard.at(-1) === "6 last");
  await client.end();
});

Deno.test("peers go on where another process has the disk of their session's home", async () => {
  const disks = new Disks();
  const clients: Client[] = [];
  const sent: string[][] = [[], []];
  for (let process = 0; process < 4; process++) {
    await using host = await memoryHost(counter, { disks });
    if (process === 0) clients.push(new Client(host, 1), new Client(host, 2));
    for (const client of clients) {
      client.moveTo(host);
      client.connect();
    }
    for (let i = 0; i < 8; i++) {
      for (const [at, client] of clients.entries()) {
        const message = `c${at} p${process} m${i}`;
        client.side.send(message);
        sent[at]?.push(message);
      }
      if (i % 3 === 1) host.loseIsolates();
      await soon(i % 2);
    }
    // Not all is in the log, and not all of that was heard.
    const some = clients[0]?.side;
    await until("some are there", () => (some?.acknowledged ?? 0) > process * 8 + 2);
    if (process === 3) {
      await until("all is heard", () => clients.every(({ heard }, at) => heard.length === sent[at]?.length));
      for (const client of clients) await client.end();
    } else for (const client of clients) client.moveTo(null);
  }
  check(clients, sent);
});

Deno.test("what a run gives out for peers is theirs from its opening on, also when they were sent elsewhere, until the next run says who is there", () => {
  const site = { clock: SYSTEM_CLOCK, newId: () => "b", isShared: () => false, failed: () => {} };
  const peers = new HostedPeers({
    run: null,
    ensure: () => Promise.reject(new Error("it stops")),
    peersSite: () => site as unknown as ReturnType<PeersSession["peersSite"]>,
  });
  const opened = (ids: readonly string[]) => ({
    peers: ids.map((id) => ({ kind: "client", id, sent: 1, received: 0, isClosed: false })),
  } as unknown as OpenedProgram);
  peers.noted(opened(["a"]));
  // Something leaves, or a channel breaks, before that is at all owners: nobody is attached yet, and yet somebody is.
  peers.released({ outputs: [], rejected: null, through: 0 } as unknown as Commit, [], 0);
  assert.equal(peers.isPeer("a"), true);
  // A planned stop: channels are told, and the run is about to become a checkpoint.
  peers.over(null);
  assert.equal(peers.isPeer("a"), true, "not an answer, which would be let go");
  peers.noted(opened([]));
  assert.equal(peers.isPeer("a"), false);
});

Deno.test("who comes to a run that opened while its site began to stop goes on as its log says (HP5)", async () => {
  const run = {
    ...{ version: "v1", originWay: null, shared: null, acknowledge: () => {}, isEnding: false },
    home: { epoch: 2, hosts: { asked: [], leftBehind: [] } },
  };
  const site = { clock: new HandClock(), isShared: () => false, keysOf: (id: string) => [keyOf(id)] };
  const peers = new HostedPeers({
    ...{ run, ensure: () => Promise.resolve(run), peersSite: () => site },
  } as unknown as PeersSession);
  const a = { kind: "client", id: "a", sent: 0, received: 0, isClosed: false };
  const opened = { peers: [a], outputs: [] } as unknown as OpenedProgram;
  peers.noted(opened);
  peers.over(null); // its channels are told to look elsewhere
  peers.opened(opened);
  const told: string[] = [];
  const send = (frame: Uint8Array) => void told.push(decodeToHost(frame).kind);
  const reader = await peers.connect({ send, close: () => {} } as unknown as Channel, null);
  reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 1 })));
  assert.deepEqual(told, ["welcome"]);
  reader.broken();
});

Deno.test("who was left behind and is not in the log any more is attached no more, as all owners know (SP2)", () => {
  const detached: string[] = [];
  const run: PeersRun = {
    ...{ shared: null, isOver: false, isSwitching: false, acknowledge: () => {}, deliver: () => {} },
    home: { hosts: new HostOwners([]) },
    detached: (peer) => void detached.push(peer),
  };
  const peers = new SessionPeers({
    ...{ clock: new HandClock(), newId: () => "b", wake: () => {}, outrun: () => {}, log: () => {} },
    left: () => {},
    ...{
      keysOf: (id: string) => [keyOf(id)],
      secret: new Uint8Array(32),
      remembered: { refusals: new Map() },
    },
  } as unknown as SessionPeersPorts);
  const a = { kind: "client", id: "a", sent: 0, received: 0, isClosed: false };
  const opened = { peers: [a], outputs: [], leftBehind: ["a", "gone"] };
  peers.noted(opened as unknown as OpenedProgram);
  assert.deepEqual(detached, [], "its owners may not have that yet");
  peers.opened(1, opened as unknown as Parameters<SessionPeers["opened"]>[1], run);
  assert.deepEqual(detached, ["gone"]);
});

Deno.test("who leaves when hosts hold the log no longer hears that it has left when it is off the record (PR5)", () => {
  const disk = { site: "s", disk: 1 }, hosts = new HostOwners([disk, hostOwner("a")], new Map([["a", 1]]));
  const events: HandledEvent[] = [];
  const run: PeersRun = {
    ...{ shared: null, home: { hosts }, isOver: false, isSwitching: false, acknowledge: () => {} },
    ...{ deliver: (event) => void events.push(event), detached: () => {} },
  };
  const clock = new HandClock();
  const peers = new SessionPeers({
    ...{ clock, newId: () => "b", wake: () => {}, outrun: () => {}, log: () => {} },
    left: () => {},
    ...{
      keysOf: (id: string) => [keyOf(id)],
      secret: new Uint8Array(32),
      remembered: new Remembered(() => 0),
    },
  } as unknown as SessionPeersPorts);
  const a = { kind: "client" as const, id: "a", sent: 0, received: 0, isClosed: false };
  peers.noted({ peers: [a], outputs: [] });
  peers.opened(1, { peers: [a], outputs: [], leftBehind: [] }, run);
  const end = new End(), reader = peers.accept(end, "client");
  const heard = () => end.sent.splice(0).map((bytes) => decodeToHost(bytes).kind);
  reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 1 })));
  reader.frame(encodeToHome({ kind: "leave", last: 0, code: 1000, reason: "" }));
  assert.deepEqual([heard(), events], [["welcome"], [{ kind: "detach", peer: "a" }]]);
  const commit = { outputs: [], rejected: null, through: 1 } as unknown as Commit;
  peers.released(commit, events.map((event) => [1, event]), 1);
  assert.deepEqual([heard(), end.closed], [[], null], "an opening would wait for it");
  hosts.recorded([disk]);
  assert.deepEqual(heard(), ["bye"]);
});

Deno.test("channels are told what has become of their home: that the session has ended, or that another site has it (HP2)", async () => {
  for (const code of ["ended", "superseded"] as const) {
    const site = { clock: new HandClock(), isShared: () => false, keysOf: (id: string) => [keyOf(id)] };
    const run = {
      ...{ version: "v1", originWay: null, shared: null, acknowledge: () => {}, isEnding: false },
      home: { epoch: 2, hosts: { asked: [], leftBehind: [] } },
    };
    const peers = new HostedPeers({
      ...{ run, ensure: () => Promise.resolve(run), peersSite: () => site },
    } as unknown as PeersSession);
    const a = { kind: "client", id: "a", sent: 0, received: 0, isClosed: false };
    peers.opened({ peers: [a], outputs: [] } as unknown as OpenedProgram);
    const told: string[] = [];
    const send = (frame: Uint8Array) => void told.push(decodeToHost(frame).kind);
    const reader = await peers.connect({ send, close: () => {} } as unknown as Channel, null);
    reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 1 })));
    peers.homeOver(1, new HomeError(code, "as of an epoch before"));
    assert.deepEqual(told, ["welcome"], "that is no news of this one");
    peers.homeOver(2, new HomeError(code, "as of this epoch"));
    assert.deepEqual(told.slice(1), [code === "ended" ? "bye" : "moved"]);
    reader.broken();
  }
});

Deno.test("who waits where it can't be opened hears why, and whether asking again can help (HP1, HP3)", async () => {
  for (const [code, retry] of [["not_available", "fix"], ["overloaded", "retry"]] as const) {
    const site = {
      ...{ clock: new HandClock(), isShared: () => true, origin: () => null },
      keysOf: (id: string) => [keyOf(id)],
    };
    const opening = Promise.withResolvers<never>();
    const peers = new HostedPeers({
      ...{ run: null, ensure: () => opening.promise, peersSite: () => site },
    } as unknown as PeersSession);
    const told: unknown[] = [];
    const send = (frame: Uint8Array) => void told.push(decodeToHost(frame));
    const asked = peers.ask({ epoch: 2, hosts: ["a"], withinMs: 0 });
    const reader = await peers.connect({ send, close: () => {} } as unknown as Channel, null);
    reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 1 })));
    await asked;
    opening.reject(new Problem(code, "it can't be opened"));
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(told, [{ kind: "refused", code, message: "it can't be opened", retry }]);
    reader.broken();
  }
});

Deno.test("a class's way to its origin stays as long as its code is the same, from one run to the next (HP4)", () => {
  const dials: string[] = [];
  const run = {
    ...{ version: "v1", shared: null, home: { epoch: 1, hosts: { asked: [], leftBehind: [] } } },
    originWay: (): Promise<FrameWay> => {
      dials.push(run.version);
      return new Promise(() => {});
    },
  };
  const site = { clock: new HandClock(), isShared: () => false, failed: () => {} };
  const peers = new HostedPeers({
    ...{ run, ensure: () => Promise.resolve(run), peersSite: () => site },
  } as unknown as PeersSession);
  const nobody = { peers: [], outputs: [] } as unknown as OpenedProgram;
  for (const version of ["v1", "v1", "v2"]) {
    run.version = version;
    peers.opened(nobody);
    peers.runOver(null);
  }
  assert.deepEqual(dials, ["v1", "v2"]);
  peers.over(null);
});

Deno.test("who says with an old key that there is a newer home has it looked for less and less often, also where nobody else is attached (OR1)", async () => {
  const clock = new HandClock();
  let looks = 0;
  const run = {
    ...{ version: "v1", originWay: null, shared: null, acknowledge: () => {}, checkpoint: () => ++looks },
    home: { epoch: 1, hosts: { asked: [], leftBehind: [] } },
  };
  const site = { clock, isShared: () => false, origin: () => null, keysOf: (id: string) => [keyOf(id)] };
  const peers = new HostedPeers({
    ...{ run, ensure: () => Promise.resolve(run), peersSite: () => site },
  } as unknown as PeersSession);
  peers.opened({ peers: [], outputs: [] } as unknown as OpenedProgram);
  for (let time = 0; time < 10; time++) {
    const reader = await peers.connect({ send: () => {}, close: () => {} }, null);
    reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 9 })));
    reader.broken();
    assert.equal(peers.isUsed, false);
    await Promise.resolve();
    clock.turn(1_000);
  }
  assert.equal(looks, 4); // at 0, 1, 3 and 7 s
});

Deno.test("who comes for a session whose hosts hold its log waits where it is opened, and hears before he has a channel where it is not (HP3)", async () => {
  const site = {
    ...{ clock: SYSTEM_CLOCK, newId: () => "b", failed: () => {}, isShared: () => true },
    ...{ origin: () => null, keysOf: () => [new Uint8Array(16)] },
  };
  const hosted = (opening: Promise<never>) =>
    new HostedPeers({
      run: null,
      ensure: () => opening,
      peersSite: () => site as unknown as ReturnType<PeersSession["peersSite"]>,
    });
  const told: unknown[] = [];
  const channel = { send: (frame: unknown) => void told.push(frame), close: () => void told.push("closed") };
  const here = hosted(new Promise(() => {}));
  const early = [here.connect(channel, null), here.connect(channel, null)];
  const asked = here.ask({ epoch: 2, hosts: ["a"], withinMs: 0 });
  const readers = await Promise.all([...early, here.connect(channel, null)]);
  await asked;
  for (const reader of readers) reader.broken();
  const elsewhere = hosted(Promise.reject(new HomeError("elsewhere", "its home is there", "there")));
  await assert.rejects(elsewhere.connect(channel, null), { code: "elsewhere", site: "there" });
  assert.deepEqual(told, []);
});

Deno.test("an origin that comes again while its session rests has it opened (HP1, origin_way.ts OW1)", async () => {
  const clock = new HandClock(), ends: FrameWay[] = [];
  const dial = () => {
    const [home, end] = localWay();
    ends.push(end);
    return Promise.resolve(home);
  };
  const run = {
    ...{ version: "v1", originWay: dial, shared: null, isOver: false, acknowledge: () => {} },
    home: { epoch: 1, hosts: { asked: [], leftBehind: [] } },
  };
  let openings = 0;
  const session = {
    ...{ run: run as unknown as PeersSession["run"], ensure: () => new Promise<never>(() => ++openings) },
    peersSite: () => ({ clock, failed: () => {} }) as unknown as ReturnType<PeersSession["peersSite"]>,
  };
  const peers = new HostedPeers(session);
  peers.opened({ peers: [], outputs: [] } as unknown as OpenedProgram);
  await soon(1);
  session.run = null; // it rests, with nobody attached
  peers.runOver(null);
  ends[0]?.close();
  await soon(1);
  assert.deepEqual([peers.isUsed, openings], [false, 0]);
  clock.turn(60_000);
  await soon(1);
  assert.deepEqual([ends.length, openings], [2, 1]);
  peers.close();
});

Deno.test("who comes while the run that was to serve him ends is served by the next one", async () => {
  await using host = await memoryHost(counter);
  const token = (await host.replica.attach(null)).token(false), told: string[] = [];
  const seen = Promise.withResolvers<void>();
  seeing(host.replica).see = () => seen.promise; // what he has seen is at a site that can't be asked now
  const send = (frame: Uint8Array) => void told.push(decodeToHost(frame).kind);
  const coming = host.host.connect(name, { send, close: () => {} } as unknown as Channel, token);
  await until("it is open", () => host.host.counts.open === 1);
  await host.host.remove(name);
  seen.resolve();
  const reader = await coming;
  reader.frame(encodeToHome(hello()));
  for (let ms = 0; ms < 1_000 && told.length === 0; ms += 10) await soon(10);
  assert.deepEqual(told, ["welcome"]);
  reader.broken();
});

Deno.test("a message that was rejected, since an isolate ended in its handler, is not handed on when other code is waited for in vain (SP3)", () => {
  const clock = new HandClock(), told: string[] = [];
  const run = (isSwitching: boolean): PeersRun => ({
    ...{ shared: null, isOver: false, isSwitching, acknowledge: () => {}, detached: () => {} },
    home: { hosts: new HostOwners([]) },
    deliver: (event) => void told.push(event.kind === "message" ? `${event.message}` : event.kind),
  });
  const peers = new SessionPeers({
    ...{ clock, newId: () => "b", wake: () => {}, outrun: () => {}, keysOf: (id: string) => [keyOf(id)] },
    left: () => {},
    ...{ log: () => {}, secret: new Uint8Array(32), remembered: { refusals: new Map() } },
  } as unknown as SessionPeersPorts);
  const a = { kind: "client", id: "a", sent: 0, received: 0, isClosed: false };
  const opened = { peers: [a], outputs: [], leftBehind: [] } as unknown as Parameters<
    SessionPeers["opened"]
  >[1];
  const events: HandledEvent[] = [];
  const reader = peers.accept({ send: () => {}, close: () => {} } as unknown as Channel, "client");
  reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 1 })));
  peers.noted(opened);
  peers.opened(1, opened, { ...run(false), deliver: (event) => void events.push(event) });
  for (const [i, text] of ["kills", "waits"].entries()) {
    reader.frame(encodeToHome({ kind: "message", sequence: i + 1, received: 0, payload: text }));
  }
  assert.equal(events.length, 2);
  peers.runOver(events[0] ?? null);
  peers.noted(opened);
  peers.opened(1, opened, run(true));
  assert.deepEqual(told, [], "other code is to have them");
  clock.turn(10_000);
  assert.deepEqual(told, ["waits"], "which did not come");
  reader.broken();
});

Deno.test("what peers say that they have while no run serves the next run is told, once", () => {
  const clock = new HandClock(), told: Readonly<Record<string, number>>[] = [];
  const run: PeersRun = {
    ...{ shared: null, isOver: false, isSwitching: false, deliver: () => {}, detached: () => {} },
    home: { hosts: new HostOwners([]) },
    acknowledge: (outputs) => void (Object.keys(outputs).length > 0 && told.push({ ...outputs })),
  };
  const peers = new SessionPeers({
    ...{ clock, newId: () => "b", wake: () => {}, outrun: () => {}, keysOf: (id: string) => [keyOf(id)] },
    left: () => {},
    ...{ log: () => {}, secret: new Uint8Array(32), remembered: new Remembered(() => 0) },
  } as unknown as SessionPeersPorts);
  const a = { kind: "client" as const, id: "a", sent: 1, received: 0, isClosed: false };
  const output = { to: "a", sequence: 1, bytes: Uint8Array.of(1) };
  const opened = { peers: [a], outputs: [output], leftBehind: [] };
  peers.noted(opened);
  peers.opened(1, opened, run);
  const reader = peers.accept(new End(), "client");
  reader.frame(encodeToHome(hello({ identity: { id: "a", key: keyOf("a") }, epoch: 1 })));
  peers.runOver(null);
  reader.frame(encodeToHome({ kind: "ack", received: 1 }));
  clock.turn(10_000);
  assert.deepEqual(told, []);
  for (let runs = 0; runs < 2; runs++) {
    peers.noted(opened);
    peers.opened(1, opened, run);
    assert.deepEqual(told, [{ a: 1 }], "its log lets go of that");
    peers.runOver(null);
  }
  reader.broken();
});

Deno.test("who came before a run had told what its log has of him waits for the next, where that one ends (HP1)", async () => {
  let openings = 0;
  const run = { isOver: false, isEnding: false, home: { epoch: 1 } };
  const peers = new HostedPeers({
    ...{ run: null, ensure: () => (openings++, Promise.resolve(run)) },
    peersSite: () => ({ clock: new HandClock(), newId: () => "b", failed: () => {}, isShared: () => false }),
  } as unknown as PeersSession);
  const told: unknown[] = [];
  const reader = await peers.connect({ send: (frame) => void told.push(frame), close: () => {} }, null);
  reader.frame(encodeToHome(hello({ identity: null })));
  const before = openings;
  peers.runOver(null);
  assert.deepEqual([openings - before, told], [1, []]);
  reader.broken();
});
