import assert from "node:assert/strict";
import {
  CLOSE,
  decodeToHome,
  encodeToHost,
  type HostOptions,
  HostSide,
  MESSAGE_BYTES_MAX,
  type ToHome,
  type ToHost,
} from "../../../../functions/sessions/attach/mod.ts";
import { codeOf } from "../../../../functions/vocabulary/errors.ts";
import { End, HandClock, HandHost, keyOf } from "./peer_pair.ts";

const identity = { id: "p1", key: keyOf("p1") };
const welcome = (received = 0, epoch = 1): ToHost => ({ kind: "welcome", identity, epoch, received });
const output = (sequence: number, payload = "o", received = 0): ToHost => ({
  ...{ kind: "output", sequence: sequence & 31, received, increment: null },
  payload,
});

/** A host side on a channel by hand. */
function connected(host: HandHost) {
  const end = new End();
  const reader = host.side.connected(end);
  return {
    end,
    reader,
    say: (frame: ToHost) => reader.frame(encodeToHost(frame)),
    sent: (): ToHome[] => end.sent.splice(0).map(decodeToHome),
  };
}

function welcomed(more: Partial<HostOptions> = {}) {
  const clock = new HandClock();
  const host = new HandHost(clock, more);
  const line = connected(host);
  line.say(welcome());
  line.sent();
  return { clock, host, line };
}

Deno.test("a host says hello first, and sends what it kept when it is welcome", () => {
  const host = new HandHost(new HandClock(), { instance: 77 });
  assert.equal(host.side.send("a"), 1);
  const line = connected(host);
  host.side.send(Uint8Array.of(1, 2));
  assert.deepEqual(line.sent(), [{
    ...{
      kind: "hello",
      peer: "client",
      identity: null,
      instance: 77,
      attempt: 1,
      epoch: 0,
      received: 0,
      first: 1,
    },
    log: null,
  }]);
  line.say(welcome());
  assert.deepEqual(line.sent(), [
    { kind: "message", sequence: 1, received: 0, payload: "a" },
    { kind: "message", sequence: 2, received: 0, payload: Uint8Array.of(1, 2) },
  ]);
  assert.equal(host.side.stage, "open");
  assert.deepEqual(host.side.identity, identity);
});

Deno.test("attempts of a host whose program has a number are behind all of the program before", () => {
  const host = new HandHost(new HandClock(), { program: 3 });
  const attempts = [1, 2].map(() => {
    const [hello] = connected(host).sent();
    return hello?.kind === "hello" && hello.attempt;
  });
  assert.deepEqual(attempts, [3 * 2 ** 24 + 1, 3 * 2 ** 24 + 2]);
});

Deno.test("a host sends again what is not in the log, and nothing else", () => {
  const { host, line } = welcomed();
  for (const text of ["a", "b", "c", "d"]) host.side.send(text);
  line.say({ kind: "ack", received: 1 });
  line.reader.broken();
  assert.deepEqual(host.lost, [{ kind: "broken" }]);
  const second = connected(host);
  const [hello] = second.sent();
  assert.deepEqual(hello?.kind === "hello" && [hello.attempt, hello.first, hello.epoch], [2, 2, 1]);
  second.say(welcome(3, 2));
  assert.deepEqual(second.sent(), [{ kind: "message", sequence: 4, received: 0, payload: "d" }]);
  assert.equal(host.side.acknowledged, 3);
  assert.equal(host.side.epoch, 2);
});

Deno.test("a host gives out each output once and says so: with a message, soon, or when it is much", () => {
  const { clock, host, line } = welcomed();
  line.say(output(1, "a"));
  host.side.send("m");
  assert.deepEqual(line.sent(), [{ kind: "message", sequence: 1, received: 1, payload: "m" }]);
  line.say(output(2, "b"));
  assert.deepEqual(line.sent(), []);
  clock.turn(50);
  assert.deepEqual(line.sent(), [{ kind: "ack", received: 2 }]);
  for (let i = 3; i < 3 + 64; i++) line.say(output(i));
  assert.deepEqual(line.sent(), [{ kind: "ack", received: 66 }]);
  assert.deepEqual(host.heard.slice(0, 2), ["a", "b"]);
});

for (
  const [why, frames] of [
    ["an output comes twice", [output(1), output(1)]],
    ["an output is missing", [output(2)]],
    ["more is acknowledged than was sent", [{ kind: "ack", received: 1 }]],
    ["an output acknowledges more than was sent", [output(1, "x", 5)]],
    ["a second welcome comes", [welcome()]],
    ["a message is rejected that was never sent", [{
      kind: "rejected",
      sequence: 1,
      code: "c",
      message: "",
    }]],
    ["the wrong last output comes", [{ kind: "dismissed", sequence: 5, code: 1000, reason: "" }]],
  ] as const
) {
  Deno.test(`a host gives its channel up where ${why}, and goes on over the next`, () => {
    const { host, line } = welcomed();
    for (const frame of frames) line.say(frame as ToHost);
    assert.equal(host.lost[0]?.kind, "malformed");
    assert.equal(line.end.closed, CLOSE.broken);
    const second = connected(host);
    const [hello] = second.sent();
    assert.equal(hello?.kind === "hello" && hello.received, frames.length - 1);
    line.say(output(frames.length, "late"));
    assert.ok(!host.heard.includes("late"), "nothing more is heard of the first");
  });
}

Deno.test("a host does not listen to a home of an older epoch than the newest, nor to one that gives it another name", () => {
  const { host, line } = welcomed();
  line.reader.broken();
  connected(host).say(welcome(0, 5));
  const old = connected(host);
  old.say(welcome(0, 4));
  assert.deepEqual(host.lost.at(-1), { kind: "stale" });
  old.say(output(1, "late"));
  assert.deepEqual(host.heard, []);
  const strange = connected(host);
  strange.say({ kind: "welcome", identity: { id: "p2", key: keyOf("p2") }, epoch: 6, received: 0 });
  assert.equal(host.lost.at(-1)?.kind, "malformed");
});

Deno.test("a host is over where the log and what it knows do not belong together", () => {
  for (const [received, code] of [[0, "peer_ahead"], [9, "peer_behind"]] as const) {
    const { host, line } = welcomed();
    host.side.send("a");
    line.say({ kind: "ack", received: 1 });
    line.reader.broken();
    connected(host).say(welcome(received));
    assert.deepEqual(host.end?.kind === "refused" && [host.end.code, host.end.retry], [code, "reset"]);
  }
});

Deno.test("a host that is refused comes again, or is over, as the refusal says", () => {
  const { host, line } = welcomed();
  line.say({ kind: "refused", code: "overloaded", message: "later", retry: "retry" });
  assert.deepEqual(host.lost, [{ kind: "refused", code: "overloaded", message: "later" }]);
  const second = connected(host);
  second.say({ kind: "moved", site: "zurich" });
  assert.deepEqual(host.lost.at(-1), { kind: "moved", site: "zurich" });
  connected(host).say({ kind: "refused", code: "superseded", message: "", retry: "fix" });
  assert.equal(host.end?.kind === "refused" && host.end.code, "superseded");
  assert.equal(host.side.stage, "closed");
  assert.equal(host.side.send("x"), null);
  const late = new End();
  host.side.connected(late);
  assert.equal(late.closed, CLOSE.done);
});

Deno.test("a host that closes sends all it has, then leaves, on each channel until the session knows", () => {
  const { host, line } = welcomed();
  host.side.send("a");
  host.side.close(4000, "enough");
  assert.equal(host.side.send("b"), null);
  assert.deepEqual(line.sent().map(({ kind }) => kind), ["message", "leave"]);
  line.reader.broken();
  const second = connected(host);
  second.sent();
  second.say(welcome(1));
  assert.deepEqual(second.sent(), [{ kind: "leave", last: 1, code: 4000, reason: "enough" }]);
  second.say({ kind: "bye", code: 1000, reason: "" });
  assert.deepEqual(host.end, { kind: "bye", code: 4000, reason: "enough", isRemote: false });
  const unborn = new HandHost(new HandClock());
  unborn.side.close();
  assert.equal(unborn.end?.kind, "bye");
});

Deno.test("a host that is sent away acknowledges that, and is over", () => {
  const { host, line } = welcomed();
  line.say(output(1));
  line.say({ kind: "dismissed", sequence: 2, code: 4001, reason: "out" });
  assert.deepEqual(line.sent(), [{ kind: "ack", received: 2 }]);
  assert.deepEqual(host.end, { kind: "bye", code: 4001, reason: "out", isRemote: true });
  assert.equal(line.end.closed, CLOSE.done);
});

Deno.test("a host has a window, and a bounded buffer behind it (HS6)", () => {
  const { host, line } = welcomed({ bufferBytesMax: 3_000 });
  for (let i = 0; i < 1_030; i++) host.side.send("");
  assert.equal(line.sent().length, 1_024);
  line.say({ kind: "ack", received: 10 });
  assert.equal(line.sent().length, 6);
  assert.throws(() => host.side.send("x".repeat(2_500)), (error) => codeOf(error) === "limit_messages");
  assert.throws(
    () => host.side.send(new Uint8Array(MESSAGE_BYTES_MAX + 1)),
    (error) => codeOf(error) === "limit_value",
  );
  assert.equal(host.side.sent, 1_030);
  const large = welcomed();
  for (let i = 0; i < 3; i++) large.host.side.send(new Uint8Array(MESSAGE_BYTES_MAX - 10));
  assert.equal(large.line.sent().length, 1);
  large.line.say({ kind: "ack", received: 1 });
  assert.equal(large.line.sent().length, 1);
});

Deno.test("a host gives up a home that is silent, one that does not welcome it, and one that acknowledges nothing", () => {
  const { clock, host, line } = welcomed({ silentMs: 1_000, stalledMs: 2_500 });
  clock.turn(400);
  line.say({ kind: "pong", number: 1 });
  assert.equal(host.side.roundTripMs, 400);
  clock.turn(1_600);
  assert.deepEqual(host.lost, [{ kind: "silent" }]);
  connected(host);
  clock.turn(10_000);
  assert.deepEqual(host.lost.at(-1), { kind: "silent" });
  const stalled = connected(host);
  stalled.say(welcome());
  host.side.send("a");
  for (let number = 2; number < 7 && stalled.end.closed === null; number++) {
    stalled.say({ kind: "pong", number });
    clock.turn(1_000);
  }
  assert.deepEqual(host.lost.at(-1), { kind: "stalled" });
});

Deno.test("a host that found no better site for a message that takes its time has more patience with the next", () => {
  const { clock, host, line } = welcomed({ silentMs: 1_000, stalledMs: 2_000 });
  host.side.send("a");
  const waitedMs = (at: ReturnType<typeof connected>): number => {
    const begunMs = clock.nowMs();
    for (let number = 1; at.end.closed === null && clock.nowMs() - begunMs < 60_000; number++) {
      clock.turn(500);
      for (const frame of at.sent()) {
        if (frame.kind === "ping") at.say({ kind: "pong", number: frame.number });
      }
      clock.turn(500);
    }
    return clock.nowMs() - begunMs;
  };
  const again = () => {
    const next = connected(host);
    next.say(welcome(host.side.acknowledged));
    return next;
  };
  assert.deepEqual([waitedMs(line), waitedMs(again()), waitedMs(again())], [3_000, 5_000, 9_000]);
  const last = again();
  last.say({ kind: "ack", received: 1 });
  host.side.send("b");
  assert.equal(waitedMs(last), 3_000);
});

Deno.test("a host goes on from what it saved", () => {
  const { clock, host, line } = welcomed();
  for (const text of ["a", "b", "c"]) host.side.send(text);
  line.say({ kind: "ack", received: 1 });
  line.say(output(1, "o", 1));
  const saved = host.side.save();
  assert.ok(saved !== null);
  const later = new HandHost(clock, { instance: 2, saved });
  const second = connected(later);
  const [hello] = second.sent();
  assert.deepEqual(hello?.kind === "hello" && [hello.identity, hello.received, hello.first, hello.instance], [
    ...[identity, 1, 2, 2],
  ]);
  later.side.send("d");
  second.say(welcome(2, 3));
  assert.deepEqual(second.sent().map((each) => each.kind === "message" && each.payload), ["c", "d"]);
});

Deno.test("what a listener does while it is told takes effect, and nothing is counted twice", () => {
  const clock = new HandClock();
  const ends: End[] = [];
  const heard: string[] = [];
  const host = new HostSide({
    kind: "client",
    instance: 1,
    clock,
    listener: {
      message: (text) => {
        heard.push(String(text));
        const end = new End();
        ends.push(end);
        host.connected(end);
      },
      acknowledged: () => host.send("from within"),
      lost: () => {},
      closed: () => {},
    },
  });
  const end = new End();
  const reader = host.connected(end);
  reader.frame(encodeToHost(welcome()));
  host.send("a");
  reader.frame(encodeToHost(output(1, "o", 1)));
  assert.deepEqual(heard, ["o"]);
  const [hello] = ends[0]?.sent.map(decodeToHome) ?? [];
  assert.deepEqual(hello?.kind === "hello" && [hello.received, hello.first], [1, 2]);
  assert.equal(host.sent, 2);
});
