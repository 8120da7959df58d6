/** Hosts that hold the log, at their home: who is waited for, whose word counts, and frames that have no place. */
import assert from "node:assert/strict";
import { HOSTS_MAX } from "../../../../functions/sessions/log/host_owners.ts";
import {
  decodeToHost,
  encodeToHome,
  encodeToHost,
  type ToHost,
} from "../../../../functions/sessions/attach/mod.ts";
import {
  HOST_LOG_BYTES_MAX,
  HOST_RECORDS_MAX,
  INCREMENT_BYTES_MAX,
} from "../../../../functions/sessions/attach/limits.ts";
import { tag } from "../../../../functions/sessions/attach/frame_bytes.ts";
import { encodeSummary, type HostCopy, HostLog } from "../../../../functions/sessions/sealed/mod.ts";
import { End, HandClock, HandFeeds, HandHome, HandHost, hello, keyOf } from "./peer_pair.ts";

const identity = (id: string) => ({ id, key: keyOf(id) });
const summary = encodeSummary({ promised: 0, tag: null });

/** Counts records as feeds do: one for each entry, and what is taken is as it was said. */
class CountingFeeds extends HandFeeds {
  #sent = 0;
  #taken = 0;

  override next(): readonly Uint8Array[] {
    if (this.#sent === this.last) return [];
    this.#sent = this.last;
    return [Uint8Array.of(this.#sent)];
  }
  override taken(_host: string, records: number): void {
    this.#taken = records;
  }
  override untaken(): number {
    return this.#taken < this.#sent ? this.#taken + 1 : 0;
  }
  override sent(): number {
    return this.#sent;
  }
  override late(host: string): void {
    this.lates.push(host);
    this.#taken = this.#sent;
  }
}

/** A home whose peers hold the log, and one of them, p1, on a line by hand. */
function attached(feeds: HandFeeds, more = {}) {
  const home = new HandHome(new HandClock(), more);
  home.side.opened({ ...{ epoch: 1, peers: [], outputs: [] }, ahead: { ...nobodyAsked, feeds } });
  const line = home.line();
  line.say(hello({ log: summary }));
  home.done();
  line.heard();
  return { home, line };
}
const nobodyAsked = { released: 0, asked: [] };

for (
  const [who, takenAfterMs, isLate] of [
    ["takes each record in its time is waited for", 1_900, false],
    ["takes one record after the other, each later than the one before, is not waited for", null, true],
  ] as const
) {
  Deno.test(`a host that ${who} (PR4)`, () => {
    const feeds = new CountingFeeds();
    const { home, line } = attached(feeds);
    let taken = 0;
    for (let entry = 1; entry <= 100; entry++) {
      feeds.last = entry;
      home.side.appended({ entry, outputs: [{ to: "p1", sequence: entry, bytes: tag("o") }] });
      home.side.hostsChanged();
      // A hundred records in ten seconds: one a second is said to be held, or all but the newest.
      const records = takenAfterMs === null
        ? Math.floor(home.clock.nowMs() / 1_000)
        : Math.floor((home.clock.nowMs() - takenAfterMs) / 100);
      if (records > taken) line.say({ kind: "taken", records: taken = records });
      home.clock.turn(100);
      line.heard();
    }
    assert.deepEqual(feeds.lates.length > 0, isLate);
    home.side.over(null);
  });
}

Deno.test("who was asked for the log, and is not there any more when the session is open, is waited for no more", () => {
  const gone: string[] = [], feeds = new HandFeeds();
  feeds.detach = (host) => void gone.push(host);
  const home = new HandHome();
  home.line().say(hello({ identity: identity("p1"), log: summary }));
  const peers = ["p1", "p2"].map((id) => ({
    ...{ kind: "client" as const, id, sent: 0, received: 0, isClosed: false },
  }));
  const ahead = { ...nobodyAsked, feeds, asked: ["p1", "p2"] };
  home.side.opened({ ...{ epoch: 1, outputs: [] }, peers, ahead });
  assert.deepEqual([feeds.attached, gone], [["p1"], ["p2"]]);
});

Deno.test("who holds no log is told what was on its way to hosts when that has been recovered: it is released (PR3)", () => {
  const home = new HandHome(), feeds = new HandFeeds();
  home.side.opened({ ...{ epoch: 1, peers: [], outputs: [] }, ahead: { ...nobodyAsked, feeds } });
  const line = home.line();
  line.say(hello());
  home.done();
  line.heard();
  const outputs = [{ to: "p1", sequence: 1, bytes: tag("o") }];
  home.side.appended({ entry: 5, outputs });
  assert.deepEqual(line.heard(), []);
  const peers = [{ ...{ kind: "client" as const, id: "p1", sent: 1, received: 0 }, isClosed: false }];
  home.side.opened({ ...{ epoch: 1, peers, outputs }, ahead: { feeds, released: 5, asked: [] } });
  assert.deepEqual(line.heard().map(({ kind }) => kind), ["output"]);
  home.side.over(null);
});

Deno.test("who is attached holds the log when its class says so, on the channel that is there; who can't is told what others are", () => {
  const home = new HandHome(), feeds = new HandFeeds();
  home.side.opened({ epoch: 1, peers: [], outputs: [] });
  for (const [instance, log] of [[1, summary], [2, null]] as const) {
    home.line().say(hello({ instance, log }));
    home.done();
  }
  const peers = ["p1", "p2"].map((id) => ({
    ...{ kind: "client" as const, id, sent: 0, received: 0, isClosed: false },
  }));
  home.side.opened({ ...{ epoch: 1, outputs: [] }, peers, ahead: { ...nobodyAsked, feeds } });
  assert.deepEqual(feeds.attached, ["p1"]);
  home.side.opened({ epoch: 1, peers, outputs: [] });
  assert.deepEqual(feeds.attached, [], "and no more when it does not");
});

Deno.test("a host for which the log gets too long just then is told no more than others are (HO1)", () => {
  const feeds = new HandFeeds();
  const { home, line } = attached(feeds);
  const outputs = [{ to: "p1", sequence: 1, bytes: tag("o") }];
  feeds.last = 1;
  feeds.next = () => {
    feeds.last = 0;
    return [];
  };
  home.side.appended({ entry: 1, outputs });
  home.side.hostsChanged();
  assert.deepEqual(line.heard(), []);
  feeds.last = 1;
  feeds.next = () => [];
  home.side.released({ done: [], outputs, entry: 1 });
  assert.deepEqual(line.heard().map(({ kind }) => kind), ["output"]);
});

Deno.test("a host that does not keep up is told so when it is off the record, and what it sends until then is nothing (PR5)", () => {
  const feeds = new HandFeeds();
  const { home, line } = attached(feeds, { outboxBytesMax: 100 });
  feeds.awaited.add("p1");
  home.side.released({
    done: [],
    outputs: [1, 2].map((sequence) => ({ to: "p1", sequence, bytes: tag("x".repeat(80)) })),
    entry: 1,
  });
  assert.deepEqual(home.events, [{ kind: "detach", peer: "p1" }]);
  line.say({ kind: "message", sequence: 1, received: 0, payload: "m" });
  line.say({ kind: "taken", records: 1 });
  assert.deepEqual([home.events.length, line.end.closed], [1, null]);
  home.done();
  assert.deepEqual([line.end.closed, home.side.status.attached], [null, 0]);
  line.heard();
  feeds.awaited.delete("p1");
  home.side.hostsChanged();
  const [refused] = line.heard();
  assert.deepEqual(refused?.kind === "refused" && [refused.code, refused.retry], ["limit_slow", "reset"]);
});

/** What a host gave back, with entries up to one. */
Deno.test("a host that has left, and of which its home knows so by the log of the next run, is told when it is off the record (PR5)", () => {
  const feeds = new HandFeeds();
  const { home, line } = attached(feeds);
  feeds.awaited.add("p1");
  line.say({ kind: "leave", last: 0, code: 1000, reason: "" });
  // Its detach was in the log when the isolate was lost, and had not left.
  home.side.opened({ ...{ epoch: 1, peers: [], outputs: [] }, ahead: { ...nobodyAsked, feeds } });
  assert.deepEqual(line.heard(), []);
  feeds.awaited.delete("p1");
  home.side.hostsChanged();
  assert.deepEqual(line.heard(), [{ kind: "bye", code: 1000, reason: "" }]);
});

for (
  const [when, isLater] of [["when its class says so no longer", false], [
    "and its class says so no longer",
    true,
  ]] as const
) {
  Deno.test(`a host that leaves ${when} is told that it has left when it is off the record (PR5)`, () => {
    const feeds = new HandFeeds();
    const { home, line } = attached(feeds);
    feeds.awaited.add("p1");
    const leave = () => {
      line.say({ kind: "leave", last: 0, code: 1000, reason: "" });
      home.done();
    };
    if (isLater) leave();
    const peers = isLater
      ? []
      : [{ kind: "client" as const, id: "p1", sent: 0, received: 0, isClosed: false }];
    home.side.opened({ ...{ epoch: 1, peers, outputs: [] }, onRecord: feeds });
    if (!isLater) leave();
    home.side.hostsChanged();
    assert.deepEqual([line.heard(), line.end.closed], [[], null]);
    feeds.awaited.delete("p1");
    home.side.hostsChanged();
    assert.deepEqual(line.heard(), [{ kind: "bye", code: 1000, reason: "" }]);
  });
}

const copyUpTo = (through: number): HostCopy => ({
  log: {
    ...{ seed: new Uint8Array(32), version: "v1", base: null, parts: [] },
    pieces: [{ epoch: 1, first: 1, count: through, wakeAtMs: 0, bytes: new Uint8Array(1) }],
  },
  ...{ through, epoch: 1, tag: new Uint8Array(12), bytes: 100, records: 1 },
});

Deno.test("of two programs that speak for one host the longer log counts, whichever comes last (LB3)", async () => {
  // A log of so many bytes reaches so far; one of 99 does not open.
  const home = new HandHome(new HandClock(), {
    openLog: (_, [record]) =>
      record?.length === 99
        ? { ok: false, code: "log_forged", message: "it does not open" }
        : { ok: true, copy: copyUpTo(record?.length ?? 0) },
  });
  const answers = home.side.ask({ epoch: 7, hosts: ["p1", "p2"], withinMs: 500 });
  for (const [instance, records] of [[1, [5]], [2, [9]], [3, [4]], [4, []], [5, [99]]] as const) {
    const line = home.line();
    line.say(hello({ identity: identity("p1"), instance, log: summary }));
    assert.deepEqual(line.heard(), [{ kind: "fence", epoch: 7 }]);
    line.say({ kind: "log", epoch: 7, records: records.map((length) => new Uint8Array(length)) });
  }
  home.clock.turn(600);
  const found = await answers;
  assert.ok(found !== "superseded");
  assert.deepEqual([found.get("p1")?.through, found.size], [9, 1]);
  home.side.over(null);
});

Deno.test("a host whose log does not open counts as one that holds nothing, also when it is asked again and does not come (LB2)", async () => {
  const home = new HandHome(new HandClock(), {
    openLog: () => ({ ok: false, code: "log_forged", message: "it does not open" }),
  });
  const answers = home.side.ask({ epoch: 7, hosts: ["p1"], withinMs: 500 });
  const line = home.line();
  line.say(hello({ identity: identity("p1"), log: summary }));
  line.say({ kind: "log", epoch: 7, records: [new Uint8Array(20)] });
  assert.deepEqual(line.heard().map(({ kind }) => kind), ["fence", "refused"]);
  assert.deepEqual(await answers, new Map([["p1", null]]));
  const again = home.side.ask({ epoch: 8, hosts: ["p1", "p2"], withinMs: 500 });
  home.clock.turn(600);
  assert.deepEqual(await again, new Map([["p1", null]]));
});

// ── Frames that have no place ──

/** A host side on a channel by hand. */
function hostSide(log?: HostLog) {
  const host = new HandHost(new HandClock(), log === undefined ? {} : { log });
  const end = new End(), reader = host.side.connected(end);
  return { host, end, say: (frame: ToHost) => reader.frame(encodeToHost(frame)), reader };
}
const welcome: ToHost = { kind: "welcome", identity: identity("p1"), epoch: 3, received: 0 };
const EPOCH = 9;

Deno.test("a host gives up a channel on which its log is asked for after the welcome, and promises nothing by it", () => {
  const log = new HostLog();
  const { host, end, say } = hostSide(log);
  say(welcome);
  end.sent.splice(0);
  say({ kind: "fence", epoch: EPOCH });
  assert.deepEqual([host.lost[0]?.kind, end.sent, log.promised], ["malformed", [], 0]);
  assert.equal(host.side.epoch, 3);
  const bare = hostSide();
  bare.say({ kind: "fence", epoch: EPOCH });
  assert.deepEqual([bare.host.lost[0]?.kind, bare.host.side.epoch], ["malformed", 0], "it holds none");
});

Deno.test("a host gives up a channel with a record before the welcome, of no log, or longer than one may be (host_side.ts HS4)", () => {
  const whole = Uint8Array.of(0, 3, ...new Uint8Array(16 + 12));
  const long = new Uint8Array(INCREMENT_BYTES_MAX + 1);
  long.set(whole);
  for (
    const [frames, held] of [
      [[{ kind: "record", record: whole }], 0],
      [[welcome, { kind: "record", record: Uint8Array.of(7) }], 0],
      [[welcome, { kind: "record", record: Uint8Array.of(2, ...new Uint8Array(12)) }], 0],
      [[welcome, { kind: "record", record: whole }, { kind: "record", record: long }], 1],
      [
        [welcome, { kind: "output", sequence: 1, received: 0, payload: "o", increment: long }],
        0,
      ],
    ] as const
  ) {
    const log = new HostLog();
    const { host, say } = hostSide(log);
    for (const frame of frames) say(frame);
    assert.deepEqual([host.lost[0]?.kind, host.heard, log.length], ["malformed", [], held]);
  }
  const most = long.slice(0, INCREMENT_BYTES_MAX), log = new HostLog();
  const { host, say } = hostSide(log);
  say(welcome);
  say({ kind: "output", sequence: 1, received: 0, payload: "o", increment: most });
  assert.deepEqual([host.lost, host.heard, log.bytes], [[], ["o"], INCREMENT_BYTES_MAX]);
});

Deno.test("a host drops what it holds when its peer is over, and not where its session can't be opened (HS5)", () => {
  const whole = Uint8Array.of(0, 3, ...new Uint8Array(16 + 12));
  for (
    const [code, retry, isOver] of [
      ["limit_stateful", "fix", false], // that site has no room for it, another one may
      ["app_unknown", "fix", false],
      ["stateful_unreachable", "retry", false],
      ["superseded", "fix", true],
      ["peer_unknown", "reset", true],
    ] as const
  ) {
    for (const isHolding of [true, false]) {
      const log = new HostLog();
      const { host, say } = hostSide(log);
      say(welcome);
      if (isHolding) say({ kind: "record", record: whole });
      say({ kind: "refused", code, message: "", retry });
      const goesOn = !isOver && (isHolding || retry === "retry");
      assert.deepEqual([host.end === null, log.length], [goesOn, goesOn && isHolding ? 1 : 0], code);
    }
  }
});

Deno.test("a home refuses a log that it did not ask for, before the welcome and after, and one that is too long", () => {
  const records = [new Uint8Array(20)];
  const { line } = attached(new HandFeeds());
  line.say({ kind: "log", epoch: 1, records });
  const early = new HandHome();
  const waiting = early.line();
  waiting.say(hello({ identity: identity("p1"), log: summary }));
  waiting.say({ kind: "log", epoch: 1, records });
  const many = Array.from({ length: HOST_RECORDS_MAX + 1 }, () => new Uint8Array(1));
  const large = [new Uint8Array(HOST_LOG_BYTES_MAX), new Uint8Array(1)];
  const asked = [many, large].map((each) => {
    const opened: number[] = [];
    const home = new HandHome(new HandClock(), {
      openLog: (_, records) => {
        opened.push(records.length);
        return { ok: true, copy: copyUpTo(1) };
      },
    });
    void home.side.ask({ epoch: 7, hosts: ["p1"], withinMs: 500 });
    const line = home.line();
    line.say(hello({ identity: identity("p1"), log: summary }));
    line.heard();
    line.say({ kind: "log", epoch: 7, records: each });
    assert.deepEqual(opened, []);
    home.clock.turn(600);
    return line;
  });
  for (const { heard } of [line, waiting, ...asked]) {
    const last = heard().at(-1);
    assert.equal(last?.kind === "refused" && last.code, "message_malformed");
  }
});

Deno.test("the log is held by as many hosts as may be: who comes then is told what others are, and what it takes is nothing", () => {
  const feeds = new HandFeeds();
  const { home, line } = attached(feeds);
  const lines = [line];
  for (let instance = 2; instance <= HOSTS_MAX + 1; instance++) {
    const next = home.line();
    next.say(hello({ instance, log: summary }));
    home.done();
    next.heard();
    lines.push(next);
  }
  const beyond = lines[HOSTS_MAX], id = `p${HOSTS_MAX + 1}`;
  assert.deepEqual([feeds.attached.length, feeds.attached.includes(id)], [HOSTS_MAX, false]);
  feeds.last = 1;
  feeds.records = [Uint8Array.of(1)];
  const outputs = ["p1", id].map((to) => ({ to, sequence: 1, bytes: tag("o") }));
  home.side.appended({ entry: 1, outputs });
  home.side.hostsChanged();
  assert.deepEqual(line.heard().map(({ kind }) => kind), ["output"]);
  beyond?.say({ kind: "taken", records: 1 });
  assert.deepEqual([beyond?.heard().map(({ kind }) => kind), feeds.took], [["ack"], []]);
  home.side.released({ done: [], outputs, entry: 1 });
  assert.deepEqual(beyond?.heard().map((each) => each.kind === "output" && each.increment), [null]);
  line.reader.broken();
  const late = home.line();
  late.say(hello({ instance: 100, log: summary }));
  home.done();
  assert.equal(feeds.attached.at(-1), `p${HOSTS_MAX + 2}`, "there is room again");
  home.side.over(null);
});

Deno.test("a payload is a view of the frame that it came in, and a record, which is kept, has bytes of its own (frame_bytes.ts FR2)", () => {
  const payload = Uint8Array.of(1, 2, 3);
  const output = encodeToHost({ kind: "output", sequence: 1, received: 0, increment: payload, payload });
  const record = encodeToHost({ kind: "record", record: payload });
  const [given, held] = [decodeToHost(output), decodeToHost(record)];
  assert.ok(given.kind === "output" && held.kind === "record" && given.payload instanceof Uint8Array);
  output.fill(0);
  record.fill(0);
  assert.deepEqual([...given.payload], [0, 0, 0]);
  assert.deepEqual([[...held.record], [...given.increment ?? []]], [[1, 2, 3], [1, 2, 3]]);
});

Deno.test("frames of logs have one form each, and nothing before or behind it (frame_bytes.ts FR1)", () => {
  const log = encodeToHome({ kind: "log", epoch: 7, records: [Uint8Array.of(1, 2)] });
  const home = new HandHome();
  const refusedFor = (bytes: Uint8Array) => {
    const { reader, heard, say } = home.line();
    say(hello({ identity: identity("p1"), log: summary }));
    reader.frame(bytes);
    const last = heard().at(-1);
    return last?.kind === "refused" && last.code;
  };
  for (let at = 1; at < log.length; at++) {
    assert.equal(refusedFor(log.subarray(0, at)), "message_malformed", `${at} bytes of it`);
  }
  assert.equal(refusedFor(Uint8Array.of(...log, 0)), "message_malformed");
  // Without a promise there are no records; numbers are not 0.
  assert.equal(refusedFor(Uint8Array.of(5, 7, 0, 1, 1, 9)), "message_malformed");
  assert.equal(refusedFor(Uint8Array.of(5, 0, 1, 0)), "message_malformed");
  assert.equal(refusedFor(Uint8Array.of(6, 0)), "message_malformed");
  for (const bytes of [[0x49], [0x49, 0], [0x49, 1, 0], [0x4a], [0x4a, 2, 1], [0x4a, 1, 1, 1]]) {
    assert.throws(() => decodeToHost(Uint8Array.from(bytes)), { name: "CodecError" });
  }
});
