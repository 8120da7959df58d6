/** A stateful session that a site serves, over runs by hand. */
import { strict as assert } from "node:assert";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import type { OpenedProgram } from "../../../../functions/sessions/turn/mod.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { HomeError, type StatefulName } from "../../../../functions/sessions/home/mod.ts";
import { Hosted, type HostedSite } from "../../../../functions/sessions/serve/hosted.ts";
import type { Reason } from "../../../../functions/sessions/serve/reason.ts";
import { type HostPorts, SessionHost } from "../../../../functions/sessions/serve/session_host.ts";
import type { RunOver } from "../../../../functions/sessions/serve/run_over.ts";
import type { SessionRun } from "../../../../functions/sessions/serve/session_run.ts";
import { type MemoryHost, memoryHost, seeing, sleep } from "./memory_host.ts";

const name = { app: "shop", class: "cart", id: "x" };

/** A run that ends when a test says so. */
function aRun() {
  const finished = Promise.withResolvers<void>();
  const run = {
    isOver: false,
    over: null,
    handling: null,
    first: undefined,
    home: { epoch: 1 },
    finished: finished.promise,
    finish: finished.resolve,
    line: { single: () => {} },
    isAllDone: true,
    rejected: undefined as unknown,
    serve: (rejected: unknown) => void (run.rejected = rejected),
  };
  return run as typeof run & SessionRun;
}

function served() {
  const runs: ReturnType<typeof aRun>[] = [];
  const next = {
    ...{ epoch: 1, fails: false, over: null as RunOver | null, noted: () => {} },
    made: (_run: SessionRun) => {},
    holds: null as Promise<never> | null,
  };
  const time = { nowMs: 0 };
  let gone = 0;
  const reasons: Reason[] = [];
  const site = {
    ports: { clock: { nowMs: () => time.nowMs, after: () => () => {} } },
    parking: { why: () => null, park: (_name: StatefulName, reason: Reason) => void reasons.push(reason) },
    log: () => {},
    peersOf: () => ({
      clock: { nowMs: () => 0, after: () => () => {} },
      isShared: () => false,
      origin: () => null,
      failed: () => {},
    }),
    serves: () => {},
    gone: () => gone++,
    openings: {
      open: () => {
        next.noted();
        if (next.holds !== null) return next.holds;
        if (next.fails) return Promise.reject(new HomeError("superseded", "not now"));
        const run = aRun();
        if (next.over !== null) {
          Object.assign(run, { isOver: true, over: next.over });
          run.finish();
        }
        Object.assign(run.home, { epoch: next.epoch });
        runs.push(run);
        next.made(run);
        return Promise.resolve(run);
      },
    },
  } as unknown as HostedSite;
  const hosted = new Hosted(name, site);
  return { hosted, runs, next, reasons, time, gone: () => gone };
}

const turns = () => new Promise<void>((resolve) => setTimeout(resolve));

Deno.test("a session that is to be opened when its run has ended is not forgotten meanwhile (H6)", async () => {
  const { hosted, runs, gone } = served();
  const first = await hosted.ensure();
  assert.equal(first, runs[0]);
  Object.assign(first, { isOver: true }); // its last commits are on their way to its owners
  const next = hosted.ensure(); // by a timer that is due, or who is attached: nobody asks it anything
  hosted.over(first, { kind: "rested" });
  assert.equal(gone(), 0);
  runs[0]?.finish();
  assert.equal(await next, runs[1]);
  hosted.tidy();
  assert.equal(gone(), 0);
  hosted.over(await next, { kind: "rested" });
  assert.equal(gone(), 1);
});

Deno.test("who would wait too long for a session is told so at once, and that it was not begun (session_room.ts)", async () => {
  const { hosted, runs, time } = served();
  await hosted.ensure();
  const run = runs[0];
  assert.ok(run !== undefined);
  Object.assign(run, { deliver: () => {} });
  Object.assign(run.home, { ask: () => ({ kind: "new" }) });
  let asked = 0;
  const comes = () =>
    hosted.request(
      {
        ...{ request: `r${asked++}`, app: "shop", chain: [], token: null, bytes: new Uint8Array() },
        signal: undefined,
      } as unknown as Parameters<Hosted["request"]>[0],
    );
  const line = Array.from({ length: 40 }, comes);
  for (let i = 0; i < 10; i++) { // 20 ms each
    time.nowMs += 20;
    hosted.answered(`r${i}`, new Uint8Array(), null as never);
  }
  assert.deepEqual(await line[9], { answer: new Uint8Array(), token: null });
  await assert.rejects(comes(), { code: "overloaded" });
  assert.equal(hosted.waiting, 30);
  for (let i = 10; i < 35; i++) hosted.answered(`r${i}`, new Uint8Array(), null as never);
  void comes();
  assert.equal(hosted.waiting, 6, "a few may wait");
});

for (const [what, isAllDone] of [["is none of these", true], ["may be one of these", false]] as const) {
  Deno.test(`what an isolate ends for ${what} when ${isAllDone ? "all" : "some"} have been done since (H4)`, async () => {
    const { hosted, runs } = served();
    await hosted.ensure();
    for (const next of [1, 2]) {
      const run = runs[next - 1];
      assert.ok(run !== undefined);
      Object.assign(run, { isOver: true, first: { kind: "timer", name: `t${next}`, dueMs: 0 } });
      const how = { isCause: true, isUnbegun: false, underWay: 2, why: "out of memory" } as const;
      hosted.over(run, { kind: "killed", ...how });
      const follows = await hosted.ensure();
      Object.assign(follows, { isAllDone });
      hosted.done();
    }
    assert.equal(runs[1]?.rejected, null);
    assert.deepEqual(runs[2]?.rejected === null, isAllDone);
  });
}

Deno.test("what killed an isolate is not given up where another site has been the home since (H3)", async () => {
  const event = { kind: "timer", name: "t", dueMs: 0 };
  const how = { kind: "killed", isCause: true, isUnbegun: false, underWay: 1, why: "out of memory" } as const;
  const superseded = new HomeError("superseded", "another site has it");
  for (const [epoch, isTold] of [[1, false], [1, true], [2, false], [2, true]] as const) {
    const { hosted, runs, gone, next } = served();
    const first = await hosted.ensure();
    Object.assign(first, { isOver: true, first: event });
    next.epoch = epoch;
    next.fails = true;
    hosted.over(first, how);
    await new Promise((resolve) => setTimeout(resolve));
    assert.equal(gone(), 0, "it is to be opened again");
    if (isTold) hosted.homeOver(1, superseded);
    assert.equal(gone(), isTold ? 1 : 0);
    next.fails = false;
    const second = await hosted.ensure();
    assert.equal(second, runs[1]);
    const { rejected } = runs[1] ?? {};
    if (epoch === 1 && !isTold) assert.deepEqual((rejected as { of: unknown }).of, event);
    else assert.equal(rejected, null);
  }
});

Deno.test("a run that is over before it serves is one that could not be opened: those who wait hear so", async () => {
  const { hosted, runs, next } = served();
  const superseded = new HomeError("superseded", "another site has it");
  next.over = { kind: "moved", error: superseded };
  await assert.rejects(hosted.ensure(), superseded);
  assert.equal(hosted.run, null);
  next.over = null;
  assert.equal(await hosted.ensure(), runs[1]);
});

Deno.test("what ends isolates while they open it parks a session, and what others end does not (H3)", async () => {
  for (const isCause of [true, false]) {
    const { hosted, runs, next, reasons } = served();
    next.over = { kind: "killed", isCause, isUnbegun: false, underWay: 0, why: "out of memory" };
    const code = isCause ? "stateful_parked" : "isolate_killed";
    await assert.rejects(hosted.ensure(), { code, message: /out of memory/ });
    assert.equal(runs.length, isCause ? 3 : 5);
    assert.deepEqual(reasons.map((reason) => reason.code), isCause ? ["isolate_killed"] : []);
    assert.equal(hosted.parked !== null, isCause);
  }
});

Deno.test("a call that was in line when its isolate ended was not begun: it ends with who waits for it (H7)", async () => {
  for (const wasInLine of [true, false]) {
    const { hosted, next } = served(), given: string[] = [];
    next.made = (run) => {
      const line = { ...run.line, has: () => wasInLine, take: () => false };
      const home = { epoch: 1, ask: () => ({ kind: "new" }) };
      Object.assign(run, { line, home, deliver: (event: { request: string }) => given.push(event.request) });
    };
    const caller = new AbortController();
    const bytes = new Uint8Array(), chain = ["robot/other"];
    const asked = hosted.request({ request: "r", chain, bytes, token: null, signal: caller.signal });
    let told = "";
    asked.catch(({ code }) => told = code);
    await turns();
    assert.deepEqual(given, ["r"]);
    const { run } = hosted;
    assert.ok(run !== null);
    next.fails = false;
    next.holds = new Promise(() => {}); // the next run opens as long as it takes
    hosted.over(run, { kind: "killed", why: "another one", isCause: false, isUnbegun: false, underWay: 1 });
    caller.abort();
    await turns();
    assert.equal(told, wasInLine ? "superseded" : "", "whether another was begun is not known");
  }
});

Deno.test("a request that is asked again while it waits is handed to its run once, and both hear its answer (H1)", async () => {
  const { hosted, next } = served();
  const given: string[] = [];
  next.made = (run) => {
    const line = { ...run.line, has: () => false, take: () => false };
    const home = { epoch: 1, ask: () => ({ kind: "new" }) };
    Object.assign(run, { line, home, deliver: (event: { request: string }) => given.push(event.request) });
  };
  const asked = { request: "r", chain: [], bytes: new Uint8Array(), token: null };
  const errors: string[] = [];
  const [first, again] = [hosted.request(asked), hosted.request(asked)];
  for (const each of [first, again]) each.catch(({ code }) => errors.push(code));
  await turns();
  assert.deepEqual([given, hosted.waiting], [["r"], 1]);
  const { run } = hosted;
  assert.ok(run !== null);
  hosted.over(run, { kind: "moved", error: new HomeError("superseded", "another site has it") });
  await turns();
  assert.deepEqual(errors, ["superseded", "superseded"]);
});

Deno.test("who comes when an opening has failed asks for the next one (HP1)", async () => {
  const { hosted, runs, next } = served();
  const peers = [{ kind: "client", id: "p1", isClosed: false, received: 0, sent: 0 }] as const;
  next.fails = true;
  next.noted = () => hosted.peers.noted({ peers, outputs: [] } as unknown as OpenedProgram);
  await assert.rejects(hosted.ensure());
  next.fails = false;
  await hosted.peers.connect({ send: () => {}, close: () => {} }, null);
  assert.equal(runs.length, 1);
});

Deno.test("who asks while an operator has a session opened without its clients waits for that opening (H6)", async () => {
  const openings: PromiseWithResolvers<never>[] = [];
  const nothing = () => () => {};
  const current = { app: name.app, version: "v1", manifest: { sessions: { cart: { methods: null } } } };
  const host = new SessionHost({
    homes: {
      open: () => {
        openings.push(Promise.withResolvers());
        return openings.at(-1)?.promise;
      },
      followable: { log: () => undefined },
      leastOpen: Infinity,
    },
    storeClock: () => 1,
    apps: { get: () => ({ current }), onChange: nothing },
    parked: { get: () => null, onDrop: nothing, drop: () => Promise.resolve() },
    clock: { nowMs: () => 0, after: nothing },
    nowMs: () => 0,
  } as unknown as HostPorts);
  const ask = (request: string) =>
    host.request(name, { request, chain: [], bytes: new Uint8Array(), token: null }).catch(({ code }) =>
      code
    );
  const before = ask("r1");
  const resumed = host.resume(name, true).catch(({ code }) => code);
  const missing = new HomeError("stateful_unreachable", "a client that holds its log has not come back");
  openings[0]?.reject(missing);
  assert.equal(await before, "stateful_unreachable");
  await new Promise<void>((resolve) => setTimeout(resolve));
  assert.equal(openings.length, 2, "without them, now");
  const meanwhile = ask("r2");
  await new Promise<void>((resolve) => setTimeout(resolve));
  assert.equal(openings.length, 2);
  openings[1]?.reject(missing);
  assert.deepEqual(await Promise.all([resumed, meanwhile]), [missing.code, missing.code]);
});

class Counter extends Session {
  count = 0;
  add(by: number): number {
    return this.count += by;
  }
  async slowly(by: number): Promise<number> {
    await sleep(50);
    return this.add(by);
  }
  close(): void {
    this.end();
  }
}

const robot = { app: "shop", class: "robot", id: "r" };
const asks =
  ({ host, replica }: MemoryHost) =>
  async (request: string, method: string, args: unknown[], hasSeen = false) => {
    const token = hasSeen ? (await replica.attach(null)).token(false) : null;
    const bytes = encodeCall({ kind: "rpc", method, args: encodeValue(args) });
    const { answer } = await host.request(robot, { request, chain: [], bytes, token });
    host.received(robot, request);
    const told = decodeAnswer(answer);
    return told.kind === "value" ? decodeValue(told.value) : told;
  };

Deno.test("an answer that a run had, and that is over before its writes are applied, is given by the next run (H2, R2)", async () => {
  const { hosted, runs, next } = served();
  const applying = Promise.withResolvers<void>();
  next.made = (run) => {
    const number = runs.length, settled = number === 1 ? applying.promise : Promise.resolve();
    const answer = Promise.resolve(Uint8Array.of(number));
    Object.assign(run.home, { ask: () => ({ kind: "known", answer }) });
    Object.assign(run, { settled, store: { token: () => Promise.resolve(`token ${number}`) } });
  };
  const asked = hosted.request({ request: "r", chain: [], bytes: new Uint8Array(), token: null });
  await turns();
  const [run] = runs;
  assert.ok(run !== undefined);
  Object.assign(run, { isOver: true }); // nothing leaves of it any more, and nothing is waited for
  applying.resolve();
  await turns();
  hosted.over(run, { kind: "killed", why: "another one", isCause: false, isUnbegun: false, underWay: 0 });
  run.finish();
  const { answer, token } = await asked;
  assert.deepEqual([[...answer], token], [[2], "token 2"]);
});

Deno.test("a session that began anew is served when a request of the one before fails (H6)", async () => {
  await using memory = await memoryHost(() => new Counter() as unknown as SessionObject);
  const ask = asks(memory), how = seeing(memory.replica);
  assert.equal(await ask("r1", "add", [1]), 1);
  const attached = Promise.withResolvers<never>();
  how.see = () => attached.promise;
  const late = ask("r2", "add", [1], true).catch(({ message }) => message);
  await ask("r3", "close", []);
  assert.match(String(await late), /has ended/);
  assert.equal(await ask("r4", "add", [1]), 1);
  attached.reject(new Error("a source that is not there"));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(await ask("r5", "add", [1]), 2);
});

Deno.test("a request that failed to reach one run has the answer of the next (H2)", async () => {
  await using memory = await memoryHost(() => new Counter() as unknown as SessionObject);
  const { host } = memory, ask = asks(memory), how = seeing(memory.replica);
  assert.equal(await ask("r1", "add", [1]), 1);
  const attached = Promise.withResolvers<never>();
  how.see = () => {
    how.see = null;
    return attached.promise;
  };
  const asked = ask("r2", "slowly", [1], true);
  while (how.see !== null) await new Promise((resolve) => setTimeout(resolve));
  memory.loseIsolates();
  for (let i = 0; i < 300 && !(host.look(robot)?.waiting === 1 && host.counts.open === 1); i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  attached.reject(new Error("a source that was not there"));
  assert.equal(await asked, 2);
});
