/** What leaves of one opening of a stateful session, and when (R1). */
import { callMaker } from "./call_maker.ts";
import assert from "node:assert/strict";
import type { Home, OpenedSession as OpenedHome } from "../../../../functions/sessions/home/mod.ts";
import { encodeCallToSession, encodeGet } from "../../../../functions/sessions/turn/call_bytes.ts";
import { writeTurn } from "../../../../functions/sessions/turn/log_entry.ts";
import { type Effect, type OpenedProgram, TIMERS_MAX } from "../../../../functions/sessions/turn/mod.ts";
import { HANDLER_SEND_BYTES_MAX, HANDLER_SENDS_MAX } from "../../../../functions/sessions/turn/sends.ts";
import { PROGRAM_CALLS_MAX } from "../../../../functions/sessions/turn/program.ts";
import type { OwnStore } from "../../../../functions/sessions/serve/own_store.ts";
import type { NamedSend } from "../../../../functions/sessions/serve/ports.ts";
import { RunFailed, type RunListener, type RunOver } from "../../../../functions/sessions/serve/run_over.ts";
import { ClockLead, RunVersions } from "../../../../functions/sessions/serve/run_versions.ts";
import { SessionRun } from "../../../../functions/sessions/serve/session_run.ts";
import { Writer } from "../../../../store/model/codec.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../../store/model/row.ts";
import { SystemClock } from "../../../../runtime/site/system_ports.ts";

const NOTHING: OpenedProgram = {
  ...{ sequence: 3, peers: [], outputs: [], effects: [], timers: [], calls: [], handling: null },
  ...{ isQuiescent: true, isEnded: false },
};
const EFFECT: Effect = { effect: 1, clock: 1, replica: 1, atMs: 1, mutations: [] };
const SEEN = { session: new Uint8Array(16), sequence: 0, replica: 1, clock: 0, open: false, path: [0] };
const asked = encodeCallToSession({
  ...{ target: { class: "cart", id: "x" }, chain: [], call: new Uint8Array() },
});

/** A run over a home of which nothing is held until it is said; what has left of it. `disk.busy`: it writes till then. */
function running() {
  const disk: { busy: Promise<void> | null } = { busy: null };
  const queue: { refuses: Error | null } = { refuses: null };
  const left: string[] = [], said: string[] = [];
  const overs: { readonly over: RunOver; readonly sequence: number; readonly first: unknown }[] = [];
  const held = Promise.withResolvers<void>();
  const over = new Promise(() => {});
  const appended = Promise.withResolvers<void>();
  const home = {
    ...{ sequence: 3, epoch: 2, over, logBytes: 0 },
    hosts: { asked: [] },
    settled: () => held.promise,
    rest: () => Promise.resolve(),
    checkpoint: () => held.promise,
    commit: () => {
      home.sequence++;
      return appended.promise;
    },
  };
  const store = {
    apply: ({ effect }: Effect) => Promise.resolve(void left.push(`effect ${effect}`)),
    applyOld: () => Promise.resolve(),
    ...{ seen: () => SEEN, token: () => Promise.resolve(SEEN), tick: () => 1, close: () => {} },
    ...{ touches: 0, settle: () => Promise.resolve(), knowsMarks: true },
    get isDurable() {
      return disk.busy === null;
    },
    durable: () => disk.busy ?? Promise.resolve(),
  } as unknown as OwnStore;
  const peers = {
    ...{ noted() {}, opened() {}, released() {}, ready: () => Promise.resolve(), isPeer: () => false },
  };
  const answered = Promise.withResolvers<void>();
  const clock = new SystemClock();
  const run = new SessionRun({
    versions: new RunVersions(
      { replica: 1, nowMs: Date.now, tick: () => 1, lead: new ClockLead(Date.now) },
      [],
    ),
    home: { checkpoint: null, start: () => home as unknown as Home } as unknown as OpenedHome,
    ...{
      version: "v1",
      store,
      queues: {
        store: ({ effect, place, send }: NamedSend) => {
          if (queue.refuses !== null) return Promise.reject(queue.refuses);
          left.push(`message ${place} of ${effect} to ${send.queue}`);
          return Promise.resolve();
        },
      },
      clock,
      nowMs: () => clock.nowMs(),
      isShared: false,
      isAdopted: false,
      applied: 0,
      open: 0,
    },
    listener: {
      ...{ peers, failed() {}, done() {}, answered: (request: string) => void left.push(request) },
      log: (level: string, text: string) => void said.push(`${level} ${text}`),
      over: (of: SessionRun, over: RunOver) =>
        void overs.push({ over, sequence: home.sequence, first: of.first }),
    } as unknown as RunListener,
    originWay: null,
    calls: callMaker({
      ...{ store, outside: null as never, keyOf: (effect: number) => `key ${effect}` },
      callSession: (_, request) => {
        left.push(request);
        return answered.promise.then(() => ({
          ...{ answer: new Uint8Array([1]), heard: () => void left.push("heard") },
        }));
      },
    }),
  });
  const given: string[] = [], kept = { bytes: 0 };
  const isolate = {
    ...{
      acknowledge() {},
      closeChannel() {},
      checkpointNow: () => void said.push("checkpoint now"),
      holds: (bytes: number) => void (kept.bytes += bytes),
      killFor: (_: number, why: string) => void said.push(why),
    },
    deliver: (_: number, { kind }: { kind: string }) => void given.push(kind),
  };
  const started = run.start(Promise.resolve({ channel: 1, isolate } as never));
  const now = { held: held.resolve, appended: appended.resolve, answered: answered.resolve };
  return { run, left, given, kept, now, started, overs, disk, said, queue };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

Deno.test("what a log left open leaves when all owners have it, and not before: it may be lost with this disk (R1)", async () => {
  const { run, left, now, started } = running();
  await turn();
  const call = { call: 1, kind: "session", bytes: asked, effect: 1 } as const;
  run.opened({ ...NOTHING, effects: [EFFECT], calls: [call], isQuiescent: false });
  await turn();
  assert.deepEqual(left, []);
  now.held();
  await started;
  assert.deepEqual(left, ["effect 1", "key 1"]);
});

const SEND: Effect = { ...EFFECT, sends: [{ queue: "jobs", body: new Uint8Array([1]) }] };

Deno.test("messages that a log left open are stored when all owners have it, and not before (R1)", async () => {
  const { run, left, now, started } = running();
  await turn();
  run.opened({ ...NOTHING, effects: [SEND] });
  await turn();
  assert.deepEqual(left, []);
  now.held();
  await started;
  assert.deepEqual(left, ["effect 1", "message 0 of 1 to jobs"]);
});

Deno.test("a commit's messages are stored when its log is at all owners and its rows are written, and its answer waits for them (releases.ts RL2)", async () => {
  const { run, left, now, started, queue, said } = running();
  await turn();
  run.opened(NOTHING);
  now.held();
  await started;
  run.serve(null);
  run.deliver({ kind: "request", request: "asks", chain: [], bytes: new Uint8Array() });
  queue.refuses = Object.assign(new Error("it is full"), { code: "queue_full" });
  const entries = new Writer();
  writeTurn(entries, { kind: "local", local: 1 }, { clocks: [], storeClock: null, check: 0 }, 0);
  run.commit({
    ...{
      first: 4,
      count: 1,
      entries: entries.done(),
      through: 1,
      isPoint: true,
      effects: [SEND],
      timers: [],
    },
    ...{ calls: [], rejected: null, isQuiescent: true, isEnded: false },
    outputs: [{ to: "asks", sequence: 1, bytes: new Uint8Array([1]) }],
  });
  await turn();
  assert.deepEqual(left, []);
  now.appended();
  await turn();
  assert.deepEqual(left, ["effect 1"]);
  assert.deepEqual(run.unsent, { messages: 1, why: "it is full" });
  assert.deepEqual(run.state.unsent, run.unsent);
  assert.match(run.openWork ?? "", /queues is not stored: it is full/);
  assert.match(said.at(-1) ?? "", /^warn .* wait: it is full/);
  queue.refuses = null;
  while (run.unsent !== null) await turn();
  await run.settled;
  assert.deepEqual(left, ["effect 1", "message 0 of 1 to jobs", "asks"]);
});

Deno.test("an isolate whose session sends more to queues than a handler may is ended, and nothing of it leaves (R11)", async () => {
  const body = new Uint8Array([1]), send = { queue: "jobs", body };
  const most = Array.from({ length: HANDLER_SENDS_MAX }, () => send);
  const long = { queue: "jobs", body: new Uint8Array(HANDLER_SEND_BYTES_MAX) };
  const rows = [[most, false], [[...most, send], true], [[long], false], [[long, send], true]] as const;
  for (const [sends, isEnded] of rows) {
    const { run, left, now, started, said } = running();
    await turn();
    run.opened(NOTHING);
    now.held();
    now.appended();
    await started;
    run.serve(null);
    run.commit({ ...IN_COMMIT, isPoint: true, effects: [{ ...EFFECT, sends }] });
    await turn();
    assert.deepEqual([run.isOver, left.length > 0], [isEnded, !isEnded], `${sends.length}`);
    if (isEnded) assert.match(said.at(-1) ?? "", /^it sends more to queues than a handler may/);
  }
});

Deno.test("a session of which nothing was left open serves before all owners have its log", async () => {
  const { run, left, started } = running();
  await turn();
  const read = { call: 1, kind: "session", bytes: asked, effect: null } as const;
  run.opened({ ...NOTHING, calls: [read] });
  await started;
  await turn();
  assert.deepEqual(left, ["key 1"]);
});

Deno.test("an answer of another session is heard when the log that has it is at all owners, and not before", async () => {
  const { run, left, now, started } = running();
  await turn();
  const call = { call: 1, kind: "session", bytes: asked, effect: 1 } as const;
  run.opened({ ...NOTHING, calls: [call], isQuiescent: false });
  now.held();
  await started;
  run.serve(null);
  now.answered();
  await turn();
  assert.deepEqual(left, ["key 1"], "it may be asked for again");
  const entries = new Writer();
  const end = { clocks: [], storeClock: null, check: 0 };
  writeTurn(entries, { kind: "result", call: 1, bytes: new Uint8Array([1]) }, end, 0);
  run.commit({
    ...{ first: 4, count: 1, entries: entries.done(), through: 0, isPoint: true, outputs: [], effects: [] },
    ...{ timers: [], calls: [], rejected: null, isQuiescent: true, check: 0, isEnded: false },
  });
  await turn();
  assert.deepEqual(left, ["key 1"]);
  now.appended();
  await turn();
  assert.deepEqual(left, ["key 1", "heard"]);
});

Deno.test("what is given up in place of a handler that goes on comes before what that one waits for", async () => {
  const { run, given, now, started } = running();
  await turn();
  const call = { call: 1, kind: "session", bytes: asked, effect: 1 } as const;
  run.opened({ ...NOTHING, calls: [call], isQuiescent: false });
  now.held();
  now.answered(); // at once, as what was answered before is
  await started;
  await turn();
  assert.deepEqual(given, []);
  const of = { kind: "timer", name: "t", dueMs: 0 } as const;
  run.serve({ kind: "reject", of, code: "isolate_killed", message: "it was lost" });
  await turn();
  assert.deepEqual(given, ["reject", "result"]);
});

Deno.test("a commit that writes as another site, or ahead of time, ends its isolate, and nothing of it leaves (R9)", async () => {
  const ahead = (Date.now() + 50_000 - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS;
  for (const forged of [{ replica: 2 }, { clock: ahead }]) {
    const { run, left, now, started, overs, said } = running();
    await turn();
    run.opened(NOTHING);
    now.held();
    now.appended();
    await started;
    run.serve(null);
    run.commit({
      ...{ first: 4, count: 1, entries: new Uint8Array(), through: 0, isPoint: true, outputs: [] },
      ...{ timers: [], calls: [], rejected: null, isQuiescent: true, isEnded: false },
      effects: [{ ...EFFECT, ...forged }],
    });
    await turn();
    assert.ok(run.isOver);
    assert.deepEqual(left, []);
    assert.deepEqual(overs.map(({ over }) => over.kind === "killed" && over.isCause), [true]);
    const [logged, killed = "?"] = said;
    assert.equal(logged, `error the isolate of a stateful session is ended: ${killed}`);
    assert.match(killed, /^it writes /);
  }
});

Deno.test("what an isolate says that its log left open is of a site that wrote the log, under a clock of it, or ends it (R9)", async () => {
  for (const wrong of [{ replica: 2 }, { clock: 2 ** 52 }]) {
    const { run, left, now, started, said } = running();
    await turn();
    now.held();
    run.opened({ ...NOTHING, effects: [{ ...EFFECT, ...wrong }] });
    await assert.rejects(started, RunFailed);
    assert.match(said.at(-1) ?? "", /^it writes /);
    assert.deepEqual(left, []);
  }
});

Deno.test("an isolate that opens another log than the home's is ended, and whoever opens the session is told so (R5)", async () => {
  const { run, started, said } = running();
  await turn();
  run.opened({ ...NOTHING, sequence: NOTHING.sequence + 1 });
  await assert.rejects(
    started,
    (error) => error instanceof RunFailed && error.over.kind === "killed" && error.over.isCause,
  );
  assert.equal(said.length, 2, "it is logged, and ended");
});

Deno.test("an idle session is asked for one checkpoint, however long its owners take for it, and rests then (R10)", async () => {
  const { run, now, started, overs, said } = running();
  await turn();
  run.opened(NOTHING);
  await started;
  run.serve(null);
  run.rest();
  run.checkpointed({ at: 3, on: null, bytes: new Uint8Array([1]), state: [] });
  await turn();
  for (let sweep = 0; sweep < 3; sweep++) run.rest();
  assert.deepEqual(said, ["checkpoint now"]);
  assert.ok(!run.isOver);
  now.held();
  await turn();
  run.rest();
  await turn();
  assert.deepEqual(overs.map(({ over }) => over.kind), ["rested"]);
  assert.deepEqual(said, ["checkpoint now"]);
});

Deno.test("what an isolate told before it was lost is in the log, and the event after it is to blame (R8)", async () => {
  const durable = Promise.withResolvers<void>();
  const { run, left, now, started, overs, disk } = running();
  await turn();
  run.opened(NOTHING);
  now.held();
  await started;
  run.serve(null);
  const [first, second] = ["first", "second"].map((request) =>
    ({ kind: "request", request, chain: [], bytes: new Uint8Array() }) as const
  );
  for (const event of [first, second]) if (event !== undefined) run.deliver(event);
  disk.busy = durable.promise;
  const entries = new Writer();
  const end = { clocks: [], storeClock: null, check: 0 };
  writeTurn(entries, { kind: "local", local: 1 }, end, 0);
  run.commit({
    ...{ first: 4, count: 1, entries: entries.done(), through: 1, isPoint: true, effects: [], timers: [] },
    ...{ calls: [], rejected: null, isQuiescent: true, isEnded: false },
    outputs: [{ to: "first", sequence: 1, bytes: new Uint8Array([1]) }],
  });
  run.ended({ isPlanned: false, why: "it looped", channel: 1, received: 2 }, true);
  run.deliver({ kind: "request", request: "third", chain: [], bytes: new Uint8Array() });
  await turn();
  assert.deepEqual([overs.length, run.isOver], [0, false], "it waits for the disk");
  durable.resolve();
  now.appended();
  await run.finished;
  assert.deepEqual(overs.map(({ over, sequence, first }) => [over.kind, sequence, first]), [
    ["killed", 4, second],
  ]);
  assert.deepEqual(
    left.filter((each) => each !== "first"),
    [],
    "at most the answer that is in the log has left",
  );
  assert.ok(run.line.has("third"), "what came meanwhile was given to nobody");
});

const IN_COMMIT = {
  ...{ first: 4, count: 0, entries: new Uint8Array(), through: 0, isPoint: false, effects: [], outputs: [] },
  ...{ calls: [], timers: [], rejected: null, isQuiescent: false, isEnded: false },
};

Deno.test("a read of the store is made when all that was committed before it is applied, and a call of a session at once (R7)", async () => {
  const { run, left, given, now, started } = running();
  await turn();
  run.opened(NOTHING);
  now.held();
  await started;
  run.serve(null);
  run.commit({ ...IN_COMMIT, count: 1, isPoint: true, effects: [EFFECT] });
  run.call({ call: 1, kind: "get", bytes: encodeGet([], "session"), effect: null });
  run.call({ call: 2, kind: "session", bytes: asked, effect: null });
  await turn();
  assert.deepEqual([left.length, given], [1, []], "the session is called");
  now.appended();
  while (given.length === 0) await turn();
  assert.deepEqual([left[1], given], ["effect 1", ["result"]]);
});

Deno.test("an isolate whose session makes more calls than a program may is ended, be they dropped or of one number (R11, open_calls.ts OC4)", async () => {
  const call = (call: number) => ({ call, kind: "session", bytes: asked, effect: null }) as const;
  const ended = async (flood: (run: SessionRun) => void) => {
    const { run, left, now, started, said, kept } = running();
    await turn();
    run.opened(NOTHING);
    now.held();
    await started;
    run.serve(null);
    flood(run);
    await turn();
    assert.ok(run.isOver && said.some((line) => /^it (has more than|makes call|sets more than)/.test(line)));
    assert.ok(left.length <= 4 * PROGRAM_CALLS_MAX, `${left.length} are made`);
    assert.ok(kept.bytes >= left.length * asked.length, `${kept.bytes} count`);
  };
  await ended((run) => {
    for (let number = 1; number <= 10 * PROGRAM_CALLS_MAX; number++) run.call(call(number));
  });
  await ended((run) => {
    for (let number = 1; number <= 10 * PROGRAM_CALLS_MAX; number++) {
      run.call(call(number));
      run.dropped(number);
    }
  });
  await ended((run) => {
    for (let again = 0; again < 2; again++) run.call(call(1));
  });
  await ended((run) => {
    const calls = Array.from({ length: 10 * PROGRAM_CALLS_MAX }, (_, i) => ({ ...call(i), effect: i + 1 }));
    run.commit({ ...IN_COMMIT, calls });
  });
  await ended((run) => {
    for (let of = 0; of < 10; of++) {
      const timers = Array.from({ length: TIMERS_MAX }, (_, i) => ({ name: `${of} ${i}`, dueMs: 8e12 }));
      run.commit({ ...IN_COMMIT, timers });
    }
  });
});

Deno.test("what is answered makes room: a program may make calls as long as it likes", async () => {
  const { run, now, started, kept } = running();
  await turn();
  run.opened(NOTHING);
  now.held();
  await started;
  run.serve(null);
  now.answered();
  for (let number = 1; number <= 5 * PROGRAM_CALLS_MAX; number++) {
    run.call({ call: number, kind: "session", bytes: asked, effect: null });
    if (number % PROGRAM_CALLS_MAX === 0) await turn();
  }
  await turn();
  assert.deepEqual([run.isOver, kept.bytes], [false, 0]);
});
