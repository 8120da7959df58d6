import assert from "node:assert/strict";
import { HandClock, HandFeeds, HandHome, HandHost, hello, keyOf } from "./peer_pair.ts";
import { encodeSummary } from "../../../../functions/sessions/sealed/mod.ts";
import type { PeerInput } from "../../../../functions/sessions/attach/mod.ts";

const identity = (id: string) => ({ id, key: keyOf(id) });
const nobody = { epoch: 1, peers: [], outputs: [] };
const message = (sequence: number, payload = "m") =>
  ({ kind: "message", sequence, received: 0, payload }) as const;
const kinds = (events: readonly PeerInput[]) => events.map(({ kind }) => kind);

/** A home with one peer, p1, on a line by hand. */
function attached(more = {}) {
  const home = new HandHome(new HandClock(), more);
  home.side.opened(nobody);
  const line = home.line();
  line.say(hello());
  home.done();
  return { home, line, welcome: line.heard()[0] };
}

Deno.test("a home welcomes a new peer when its attach is in the log, and not before", () => {
  const home = new HandHome();
  const line = home.line();
  line.say(hello());
  assert.deepEqual(home.events, [], "the log is not read yet");
  home.side.opened(nobody);
  assert.deepEqual(home.events, [{ kind: "attach", peer: { kind: "client", id: "p1" } }]);
  assert.deepEqual(line.heard(), []);
  home.done({ p1: ["hi"] });
  assert.deepEqual(line.heard(), [
    { kind: "welcome", identity: identity("p1"), epoch: 1, received: 0 },
    { kind: "output", sequence: 1, received: 0, increment: null, payload: "hi" },
  ]);
});

Deno.test("a home refuses a peer whose onOpen threw, with what it threw", () => {
  const home = new HandHome();
  home.side.opened(nobody);
  const line = home.line();
  line.say(hello());
  home.done({}, "full");
  assert.deepEqual(line.heard(), [{ kind: "refused", code: "full", message: "it threw", retry: "fix" }]);
  assert.equal(line.end.closed, 4000);
  assert.equal(home.side.status.attached, 0);
});

Deno.test("a host side that was never welcomed is the same peer when it comes again", () => {
  const home = new HandHome();
  home.side.opened(nobody);
  const first = home.line();
  first.say(hello({ instance: 9 }));
  first.reader.broken();
  const second = home.line();
  second.say(hello({ instance: 9, attempt: 2 }));
  home.done();
  assert.equal(second.heard()[0]?.kind, "welcome");
  assert.deepEqual(home.events, []);
  const other = home.line();
  other.say(hello({ instance: 10 }));
  assert.deepEqual(kinds(home.events), ["attach"]);
});

for (
  const [why, said, code, retry] of [
    ["a forged key", { identity: { id: "p1", key: keyOf("p2") } }, "peer_forged", "fix"],
    ["a key of nobody", { identity: { id: "p9", key: keyOf("p2") } }, "peer_unknown", "reset"],
    ["another kind than its channel's", { peer: "origin", identity: identity("p1") }, "peer_forged", "fix"],
    ["a peer that is not attached", { identity: identity("p9") }, "peer_unknown", "reset"],
    ["outputs that it was never given", { identity: identity("p1"), received: 3 }, "peer_ahead", "reset"],
    [
      "messages let go that are not in the log",
      { identity: identity("p1"), received: 1, first: 2 },
      "peer_ahead",
      "reset",
    ],
    [
      "outputs that it had and has no more",
      { identity: identity("p1"), received: 0 },
      "peer_behind",
      "reset",
    ],
    [
      "an attempt before the one that holds",
      { identity: identity("p1"), received: 2, attempt: 1 },
      "superseded",
      "retry",
    ],
  ] as const
) {
  Deno.test(`a home refuses a hello with ${why}, and its peer goes on`, () => {
    const { home, line } = attached();
    home.side.released({
      done: [],
      outputs: [1, 2].map((sequence) => ({ to: "p1", sequence, bytes: Uint8Array.of(0, 65) })),
    });
    line.heard();
    line.say({ kind: "ack", received: 1 });
    const other = home.line();
    other.say(hello({ attempt: 5, ...said }));
    const [refusal] = other.heard();
    assert.deepEqual(refusal?.kind === "refused" && [refusal.code, refusal.retry], [code, retry]);
    line.say({ ...message(1), received: 1 });
    assert.deepEqual(kinds(home.events), ["message"]);
    assert.equal(line.end.closed, null);
  });
}

Deno.test("a home of an older epoch than its peer has seen sends it away and looks whether it still is one", () => {
  const { home } = attached();
  const line = home.line();
  line.say(hello({ identity: identity("p1"), epoch: 2, attempt: 2 }));
  assert.deepEqual(line.heard(), [{ kind: "moved", site: null }]);
  assert.deepEqual(home.outrun, [2]);
  home.clock.turn(2_000);
  home.line().say(hello({ identity: { id: "p1", key: keyOf("p2") }, epoch: 9 }));
  assert.deepEqual(home.outrun, [2], "who forges a key says nothing of epochs");
  for (let attempt = 3; attempt < 100; attempt++) {
    home.line().say(hello({ identity: identity("p1"), epoch: 1_000, attempt }));
  }
  assert.deepEqual(home.outrun, [2, 1_000], "and nobody has it looked for all the time");
});

Deno.test("a home hands a message to the session once, whatever its peer sends again (home_peer.ts HP1, HP2)", () => {
  const { home, line } = attached();
  line.say(message(1, "a"));
  line.say(message(2, "b"));
  home.done();
  const second = home.line();
  second.say(hello({ identity: identity("p1"), attempt: 2 }));
  assert.deepEqual(second.heard(), [{ kind: "welcome", identity: identity("p1"), epoch: 1, received: 1 }]);
  second.say(message(2, "b"));
  second.say(message(3, "c"));
  assert.deepEqual(home.events.map((each) => each.kind === "message" && each.message), ["b", "c"]);
});

Deno.test("a home acknowledges what is in the log: with an output, or soon, or when it is much", () => {
  const { home, line } = attached();
  line.say(message(1));
  home.clock.turn(1_000);
  assert.deepEqual(line.heard(), [], "it is not in the log");
  home.done({ p1: ["x"] });
  assert.deepEqual(line.heard().map((each) => each.kind === "output" && each.received), [1]);
  line.say(message(2));
  home.done();
  assert.deepEqual(line.heard(), []);
  home.clock.turn(50);
  assert.deepEqual(line.heard(), [{ kind: "ack", received: 2 }]);
  for (let i = 3; i < 103; i++) line.say(message(i & 31));
  home.doneAll();
  assert.ok(line.heard().length >= 1, "a hundred are not kept quiet");
  home.clock.turn(50);
  line.heard();
  for (let i = 103; i < 403; i++) line.say(message(i & 31));
  home.doneAll();
  home.side.released({ done: [], outputs: [{ to: "p1", sequence: 2, bytes: Uint8Array.of(0) }] });
  const last = line.heard().at(-1);
  assert.deepEqual(last?.kind === "output" && last.received, 402 & 255);
});

Deno.test("a home tells its peer of a message whose handler threw, and counts it", () => {
  const { home, line } = attached();
  line.say(message(1));
  home.done({}, "app_error");
  home.clock.turn(50);
  assert.deepEqual(line.heard(), [
    { kind: "rejected", sequence: 1, code: "app_error", message: "it threw" },
    { kind: "ack", received: 1 },
  ]);
});

Deno.test("a home keeps what its peer was sent until it has it, and tells the session (home_peer.ts HP4)", () => {
  const { home, line } = attached();
  line.say(message(1));
  home.done({ p1: ["a", "b", "c"] });
  line.heard();
  line.say({ kind: "ack", received: 2 });
  home.clock.turn(50);
  assert.deepEqual(home.acknowledged.at(-1), { p1: 2 });
  line.reader.broken();
  const second = home.line();
  second.say(hello({ identity: identity("p1"), attempt: 2, received: 2, first: 2 }));
  assert.deepEqual(second.heard().map((each) => each.kind === "output" ? each.payload : each.kind), [
    "welcome",
    "c",
  ]);
});

Deno.test("a peer without a channel is detached when its grace is over, and not when it is back before", () => {
  const { home, line } = attached({ graceMs: 1_000 });
  line.reader.broken();
  home.clock.turn(900);
  const second = home.line();
  second.say(hello({ identity: identity("p1"), attempt: 2 }));
  home.clock.turn(5_000);
  assert.deepEqual(home.events, []);
  second.reader.broken();
  home.clock.turn(1_000);
  assert.deepEqual(home.events, [{ kind: "detach", peer: "p1" }]);
  const late = home.line();
  late.say(hello({ identity: identity("p1"), attempt: 3 }));
  const [refused] = late.heard();
  assert.equal(refused?.kind === "refused" && refused.code, "peer_unknown");
  home.done();
  assert.equal(home.side.status.attached, 0);
});

Deno.test("a peer that leaves is detached after what it sent, and told when that is in the log", () => {
  const { home, line } = attached();
  line.say(message(1));
  line.say({ kind: "leave", last: 1, code: 1000, reason: "" });
  assert.deepEqual(kinds(home.events), ["message", "detach"]);
  home.done();
  assert.equal(line.end.closed, null);
  home.done();
  assert.deepEqual(line.heard(), [{ kind: "ack", received: 1 }, { kind: "bye", code: 1000, reason: "" }]);
  assert.equal(line.end.closed, 1000);
});

Deno.test("a host that leaves says on what it has taken, and is told that it has left when it is off the record", () => {
  const home = new HandHome(new HandClock()), feeds = new HandFeeds();
  home.side.opened({ ...nobody, ahead: { feeds, released: 0, asked: [] } });
  const line = home.line();
  line.say(hello({ log: encodeSummary({ promised: 0, tag: null }) }));
  home.done();
  assert.deepEqual(feeds.attached, ["p1"]);
  line.say({ kind: "leave", last: 0, code: 1000, reason: "" });
  line.say({ kind: "taken", records: 1 });
  assert.deepEqual(feeds.took, [1]);
  feeds.awaited.add("p1");
  line.heard();
  home.done();
  assert.deepEqual([line.heard(), line.end.closed, home.side.status.attached], [[], null, 0]);
  home.side.hostsChanged();
  assert.deepEqual(line.heard(), []);
  feeds.awaited.delete("p1");
  home.side.hostsChanged();
  assert.deepEqual(line.heard(), [{ kind: "bye", code: 1000, reason: "" }]);
});

Deno.test("a peer that takes nothing is detached as too slow, and the others go on", () => {
  const { home, line } = attached({ outboxBytesMax: 100 });
  const other = home.line();
  other.say(hello({ instance: 2 }));
  home.done();
  other.heard();
  line.say(message(1));
  home.done({ p1: ["x".repeat(80), "y".repeat(80)], p2: ["z"] });
  assert.deepEqual(line.heard().map((each) => each.kind === "refused" ? each.code : each.kind), [
    ...["output", "output"],
    "limit_slow",
  ]);
  assert.deepEqual(home.events, [{ kind: "detach", peer: "p1" }]);
  assert.deepEqual(other.heard().map(({ kind }) => kind), ["output"]);
});

Deno.test("a peer that is sent away hears it as its last output, again where it was lost, and is detached when it has", () => {
  const { home, line } = attached();
  line.say(message(1));
  home.done({ p1: ["a", "!out"] });
  const dismissed = { kind: "dismissed", sequence: 2, code: 4001, reason: "out" };
  assert.deepEqual(line.heard().at(-1), dismissed);
  line.reader.broken();
  const second = home.line();
  second.say(hello({ identity: identity("p1"), attempt: 2, received: 1, first: 2 }));
  assert.deepEqual(second.heard().at(-1), dismissed);
  assert.deepEqual(home.events, []);
  second.say({ kind: "ack", received: 2 });
  assert.deepEqual(home.events, [{ kind: "detach", peer: "p1" }]);
});

for (
  const [why, frames, code] of [
    ["sends no frame", [Uint8Array.of(0x7f)], "message_malformed"],
    ["sends nothing", [new Uint8Array(0)], "message_malformed"],
    ["skips a message", [Uint8Array.of(0x82, 0)], "message_gap"],
    ["sends a message twice", [Uint8Array.of(0x81, 0), Uint8Array.of(0x81, 0)], "message_gap"],
    ["acknowledges what it was never sent", [Uint8Array.of(0x02, 1)], "message_malformed"],
    ["acknowledges it with a message", [Uint8Array.of(0x81, 9)], "message_malformed"],
    ["leaves after a message that never came", [Uint8Array.of(0x04, 1, 0xe8, 7, 0)], "message_gap"],
    ["says hello twice", [Uint8Array.of(1, 1, 0, 1, 1, 0, 1, 0)], "message_malformed"],
  ] as const
) {
  Deno.test(`a peer that ${why} is refused, and what it sent before stays (home_line.ts HL1)`, () => {
    const { home, line } = attached();
    for (const frame of frames) line.reader.frame(frame);
    const last = line.heard().at(-1);
    assert.equal(last?.kind === "refused" && last.code, code);
    assert.equal(line.end.closed, 4000);
    line.say(message(1));
    assert.equal(home.events.length, frames.length - 1, "nothing more is heard of it");
    assert.equal(home.side.status.attached, 1);
  });
}

Deno.test("a channel that nobody reads is given up, whatever is said on it, and its peer may come again (home_line.ts HL2)", () => {
  const { home, line } = attached();
  for (let number = 1; number < 10; number++) line.say({ kind: "ping", number });
  assert.equal(line.heard().length, 9);
  line.end.bytes = 9 << 20;
  line.say({ kind: "ping", number: 10 });
  assert.deepEqual(line.heard(), []);
  assert.equal(line.end.closed, 4001);
  const second = home.line();
  second.say(hello({ identity: identity("p1"), attempt: 2 }));
  assert.equal(second.heard()[0]?.kind, "welcome");
});

Deno.test("before its welcome nothing is taken of a channel, and without a hello it ends (home_side.ts HM5)", () => {
  const home = new HandHome();
  home.side.opened(nobody);
  const hasty = home.line();
  hasty.say(hello());
  hasty.say(message(1));
  const [refused] = hasty.heard();
  assert.equal(refused?.kind === "refused" && refused.code, "message_malformed");
  const silent = home.line();
  silent.say(hello({ instance: 3 }));
  const mute = home.line();
  home.clock.turn(10_000);
  assert.equal(mute.heard()[0]?.kind, "refused");
  assert.deepEqual(silent.heard(), []);
});

Deno.test("a peer has a window: more on its way is refused", () => {
  const { home, line } = attached();
  for (let i = 1; i <= 1_024; i++) line.say(message(i & 31));
  assert.equal(line.end.closed, null);
  line.say(message(1_025 & 31));
  const last = line.heard().at(-1);
  assert.equal(last?.kind === "refused" && last.code, "limit_window");
  assert.equal(home.side.status.waiting, 1_024);
});

Deno.test("a peer that floods its session keeps nobody waiting for all of it, and loses nothing itself", () => {
  const { home, line } = attached();
  const other = home.line();
  other.say(hello({ instance: 2 }));
  home.done();
  for (let i = 1; i <= 1_000; i++) line.say(message(i & 31, `${i}`));
  line.say({ kind: "leave", last: 1_000, code: 1000, reason: "" });
  other.say(message(1, "me too"));
  assert.ok(home.events.findIndex((each) => each.kind === "message" && each.message === "me too") <= 64);
  const heard: string[] = [];
  for (let next = home.events[0]; next !== undefined; next = home.events[0]) {
    if (next.kind !== "attach" && next.peer === "p1") {
      heard.push(next.kind === "message" ? `${next.message}` : "");
    }
    home.done();
  }
  assert.deepEqual(heard, [...Array.from({ length: 1_000 }, (_, i) => `${i + 1}`), ""]);
});

Deno.test("a home goes on where an isolate was killed: what is not in the log is delivered again, channels stay", () => {
  const { home, line } = attached();
  for (const i of [1, 2, 3]) line.say(message(i, `m${i}`));
  home.events.length = 0;
  const bytes = Uint8Array.of(0, 65);
  const peer = { kind: "client", id: "p1", sent: 1, received: 1, isClosed: false } as const;
  home.side.opened({ epoch: 1, peers: [peer], outputs: [{ to: "p1", sequence: 1, bytes }] });
  assert.deepEqual(home.events.map((each) => each.kind === "message" && each.message), ["m2", "m3"]);
  assert.deepEqual(line.heard().map((each) => each.kind === "output" && each.received), [1]);
  line.say(message(4, "m4"));
  assert.equal(home.events.length, 3);
});

Deno.test("a home that finds another log than it told of begins anew with its peers", () => {
  const { home, line } = attached();
  const peer = { kind: "client", id: "p1", sent: 0, received: 4, isClosed: false } as const;
  home.side.opened({ epoch: 3, peers: [peer], outputs: [] });
  assert.deepEqual(line.heard(), [{ kind: "moved", site: null }]);
  const second = home.line();
  second.say(hello({ identity: identity("p1"), attempt: 2, first: 5 }));
  assert.deepEqual(second.heard(), [{ kind: "welcome", identity: identity("p1"), epoch: 3, received: 4 }]);
});

Deno.test("a recovered home gives those of the log their grace, and what is kept of their outputs", () => {
  const home = new HandHome(new HandClock(), { graceMs: 500 });
  const output = (to: string, sequence: number) => ({ to, sequence, bytes: Uint8Array.of(0, 64 + sequence) });
  home.side.opened({
    epoch: 2,
    peers: [
      { kind: "client", id: "a", sent: 5, received: 2, isClosed: false },
      { kind: "client", id: "b", sent: 5, received: 0, isClosed: false },
      { kind: "client", id: "c", sent: 1, received: 0, isClosed: true },
    ],
    outputs: [output("a", 4), output("a", 5), output("b", 2), output("b", 5), output("request", 1)],
  });
  assert.deepEqual(home.events, [{ kind: "detach", peer: "c" }], "it knows that it was sent away");
  const a = home.line();
  a.say(hello({ identity: identity("a"), received: 3, first: 3, epoch: 1 }));
  assert.deepEqual(a.heard().map((each) => each.kind === "output" ? each.payload : each.kind), [
    "welcome",
    "D",
    "E",
  ]);
  const b = home.line();
  b.say(hello({ identity: identity("b"), received: 3 }));
  const [refused] = b.heard();
  assert.equal(refused?.kind === "refused" && refused.code, "peer_behind", "a hole is not jumped");
  home.clock.turn(500);
  assert.deepEqual(home.events.slice(1), [{ kind: "detach", peer: "b" }]);
});

Deno.test("a home that is over, or whose session has ended, tells everybody, those too who come later", () => {
  const { home, line } = attached();
  line.say(message(1));
  home.done();
  home.side.over("zurich");
  assert.deepEqual(line.heard(), [{ kind: "ack", received: 1 }, { kind: "moved", site: "zurich" }]);
  const late = home.line();
  assert.deepEqual(late.heard(), [{ kind: "moved", site: "zurich" }]);
  assert.equal(late.end.closed, 1000);
  home.clock.turn(100_000);
  assert.deepEqual(home.events, []);
  const other = attached();
  other.home.side.ended(1000, "over");
  assert.deepEqual(other.line.heard(), [{ kind: "bye", code: 1000, reason: "over" }]);
});

Deno.test("a host and a home meet over any number of broken channels", () => {
  const clock = new HandClock();
  const home = new HandHome(clock);
  home.side.opened(nobody);
  const host = new HandHost(clock);
  host.side.send("a");
  const channel = host.connect(home);
  home.done({ p1: ["1"] });
  home.done({ p1: ["2"] });
  channel.breaks();
  assert.deepEqual(host.lost, [{ kind: "broken" }]);
  host.side.send(Uint8Array.of(7));
  host.connect(home);
  home.done({ p1: ["3"] }, null);
  clock.turn(100);
  assert.deepEqual(host.heard, ["1", "2", "3"]);
  assert.equal(host.side.acknowledged, 2);
  assert.deepEqual(home.acknowledged.at(-1), { p1: 3 });
});

Deno.test("who was left behind is no peer any more, also where hosts hold the log no longer", () => {
  const home = new HandHome();
  const peers = ["p1", "p2"].map((id) => ({
    kind: "client" as const,
    ...{ id, sent: 0, received: 0, isClosed: false },
  }));
  home.side.opened({ ...nobody, peers, leftBehind: ["p2"] });
  assert.deepEqual(home.events, [{ kind: "detach", peer: "p2" }]);
});
