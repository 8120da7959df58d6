import assert from "node:assert/strict";
import { decodeAnswer, encodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import { readEntries } from "../../../../functions/sessions/turn/log_entry.ts";
import { type Commit, encodePage, encodeRows } from "../../../../functions/sessions/turn/mod.ts";
import type { StoredRow } from "../../../../functions/vocabulary/store_client.ts";
import { ProgramStore } from "../../../../functions/sessions/turn/session_store.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { packKey } from "../../../../store/model/key.ts";
import { Robot, stage } from "./robot.ts";
import { inMacrotask, runSeed } from "./run.ts";
import { joined } from "./entries.ts";
import { drain } from "./drain.ts";
import { Solo, type SoloEnv } from "./solo.ts";

const call = (method: string, ...args: unknown[]): Uint8Array =>
  encodeCall({ kind: "rpc", method, args: encodeValue(args) });

const request = (method: string, ...args: unknown[]) =>
  ({ kind: "request", request: method, chain: [], bytes: call(method, ...args) }) as const;

Deno.test("a session killed at any commit, and within handlers, is replayed to what it was", async () => {
  for (let seed = 0; seed < 12; seed++) {
    const commits: Commit[] = [];
    const breaks = {
      sink: (sink: Parameters<NonNullable<NonNullable<Parameters<typeof runSeed>[1]>["sink"]>>[0]) => ({
        ...sink,
        commit: (channel: number, commit: Commit) => {
          commits.push(commit);
          sink.commit(channel, commit);
        },
      }),
    };
    const bias = { plan: { lossEveryMs: 0, isCheckpointing: false } };
    const { site } = await inMacrotask(() => runSeed(`${seed}`, breaks, bias));
    for (let kept = 1; kept <= commits.length; kept++) {
      const entries = joined(commits.slice(0, kept));
      const last = commits[kept - 1];
      const solo = await inMacrotask(() =>
        new Solo(Robot, (program) => new ProgramStore(program)).open({ class: "robot", id: "r", entries })
      );
      assert.equal(solo.parked, null, `seed ${seed}, ${kept} commits`);
      if (last === undefined || !last.isPoint || last.count === 0) continue;
      const state = site.states.get(last.first + last.count - 1);
      assert.equal(JSON.stringify((solo.object as Robot).state()), state, `seed ${seed}, ${kept} commits`);
      assert.deepEqual(
        solo.opened?.timers.length,
        countTimers(commits.slice(0, kept)),
        `seed ${seed}, ${kept}`,
      );
    }
  }
});

function countTimers(commits: readonly Commit[]): number {
  const set = new Set<string>();
  /** Of each entry, the timer that went off with it. */
  const wentOff: (string | null)[] = [];
  for (const { timers, entries } of commits) {
    for (const entry of readEntries(entries)) {
      const input = entry.kind === "turn" ? entry.input : null;
      if (input?.kind === "rejected") {
        const { voids, subject, attempt } = input;
        for (const name of wentOff.splice(wentOff.length - voids)) if (name !== null) set.add(name);
        if (subject?.kind === "timer" && attempt === 0) set.delete(subject.id);
      }
      const name = input?.kind === "timer" ? input.name : null;
      wentOff.push(name !== null && set.delete(name) ? name : null);
    }
    for (const { name, dueMs } of timers) {
      if (dueMs === null) set.delete(name);
      else set.add(name);
    }
  }
  return set.size;
}

class Small extends Session<SoloEnv> {
  n = 0;
  add(by: number): number {
    return this.n += by;
  }
  clock(): number {
    return stage.loop?.current?.now() ?? 0;
  }
  never(): Promise<void> {
    return new Promise(() => {});
  }
  neverAfter(): Promise<void> {
    this.setTimer("t", 5);
    return new Promise(() => {});
  }
  callOther(id: string): Promise<unknown> {
    return this.env.sessions.call({ class: "solo", id }, {
      kind: "rpc",
      method: "add",
      args: encodeValue([1]),
    });
  }
  background(): void {
    stage.loop?.current?.setLocal(5, () => {
      throw new Error("later");
    });
  }
  big(text: string): number {
    return text.length;
  }
  throwing(what: string): never {
    if (what === "proxy") {
      throw new Proxy({}, {
        get() {
          throw new Error("no");
        },
        has() {
          throw new Error("no");
        },
      });
    }
    if (what === "message") {
      throw Object.defineProperty(new Error(), "message", { value: { toString: null } });
    }
    throw what === "null" ? null : Object.assign(new Error("\ud800"), { code: "c".repeat(1000) });
  }
  timers(name: string, ms: number): void {
    this.setTimer(name, ms);
  }
  chained(): number {
    let n = 0;
    for (let i = 0; i < 3; i++) Promise.resolve().then(() => n++).then(() => this.n += n);
    return this.n;
  }
}

/** The same but for what it adds. */
class Other extends Small {
  override add(by: number): number {
    return this.n += by + 1;
  }
}

Deno.test("replay by a program that does otherwise parks the session, and says where (RP2)", () =>
  inMacrotask(() => {
    const { entries } = new Solo(Small).open().deliver(request("add", 1)).deliver(request("add", 2));
    const { parked } = new Solo(Other).open({ entries });
    assert.equal(parked?.code, "diverged");
    assert.match(parked?.message ?? "", /entry 3 \(request\)/);
    assert.deepEqual(Object.keys(parked?.detail ?? {}), ["sequence", "logged", "replayed", "did"]);
    assert.match(JSON.stringify(parked?.detail["did"]), /output 1 to add, \d+ bytes/);
    assert.equal(JSON.stringify(parked?.detail).includes(`"request":"add"`), true);
  }));

Deno.test("replay by other code is refused, but from a checkpoint with nothing behind it (RC1)", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1));
    const refused = new Solo(Small).open({ entries: solo.entries, code: "newer" });
    assert.deepEqual([refused.parked?.code, refused.parked?.detail], ["code_differs", {
      log: "code",
      isolate: "newer",
    }]);
    solo.loop.checkpointNow(1);
    const checkpoint = solo.run().checkpoints[0] ?? null;
    const newer = new Solo(Small).open({ checkpoint, code: "newer" }).deliver(request("add", 1));
    assert.equal((newer.object as Small).n, 2);
    // The log says from where on it is the newer code's.
    const again = new Solo(Small).open({ checkpoint, entries: newer.entries, code: "newer" });
    assert.equal((again.object as Small).n, 2);
    const older = new Solo(Small).open({ checkpoint, entries: newer.entries });
    assert.equal(older.parked?.code, "code_differs");
  }));

Deno.test("a log or checkpoint that can't be read parks the session (ST5)", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1));
    solo.loop.checkpointNow(1);
    const [checkpoint] = solo.run().checkpoints;
    const cut = solo.entries.slice(0, -1);
    assert.equal(new Solo(Small).open({ entries: cut }).parked?.code, "log_corrupt");
    assert.ok(checkpoint);
    const short = { ...checkpoint, bytes: checkpoint.bytes.slice(0, -3) };
    assert.equal(new Solo(Small).open({ checkpoint: short }).parked?.code, "log_corrupt");
    const torn = { ...checkpoint, state: checkpoint.state.map((segment) => segment.slice(0, -3)) };
    assert.equal(new Solo(Small).open({ checkpoint: torn }).parked?.code, "log_corrupt");
  }));

Deno.test("a handler that waits for nothing that comes parks the session, and is named (ST5)", () =>
  inMacrotask(() => {
    const { parked } = new Solo(Small).open().deliver(request("never"));
    assert.deepEqual([parked?.code, parked?.detail], ["waits_unrecorded", { handler: "never", did: [] }]);
    const after = new Solo(Small).open().deliver(request("neverAfter")).parked;
    assert.match(
      after?.message ?? "",
      /neverAfter waits .* the last thing that it did was sets the timer "t", at .*replay_test\.ts:\d+/,
    );
  }));

Deno.test("a call to a session that waits for this one fails with `cycle` (turn/session_calls.ts SC1)", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open();
    solo.deliver({ ...request("callOther", "x"), chain: ["solo/x", "solo/y"] });
    assert.equal(solo.calls.length, 0);
    assert.match(answers(solo).at(-1) ?? "", /cycle/);
    solo.deliver({ ...request("callOther", "s"), request: "self" });
    assert.match(answers(solo).at(-1) ?? "", /solo\/s → solo\/s/);
    solo.deliver({ ...request("callOther", "z"), chain: ["solo/x"] });
    assert.equal(solo.commits.at(-1)?.calls.length, 1);
  }));

const parkedOf = ({ parked }: Solo) => parked;

const answers = ({ commits }: Solo): string[] =>
  commits.flatMap(({ outputs }) => outputs.map(({ bytes }) => new TextDecoder().decode(bytes)));

Deno.test("a handler that goes on after a recovery is ended where it took its isolate with it", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1)).deliver(request("callOther", "z"));
    const again = new Solo(Small).open({ entries: solo.entries });
    assert.deepEqual([again.opened?.handling, again.opened?.calls.length], ["callOther", 1]);
    const of = request("callOther", "z");
    again.deliver({ kind: "reject", of, code: "isolate_killed", message: "m" }).deliver(request("add", 1));
    assert.match(answers(again)[0] ?? "", /isolate_killed/);
    assert.equal((again.object as Small).n, 2);
    const last = new Solo(Small).open({ entries: joined([...solo.commits, ...again.commits]) });
    assert.deepEqual([last.parked, (last.object as Small).n, last.opened?.handling], [null, 2, null]);
  }));

Deno.test("a session that is at rest is not made again when what took its isolate with it is rejected", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1));
    const again = new Solo(Small).open({ entries: solo.entries });
    const made = again.object;
    const reject = { kind: "reject", code: "isolate_killed", message: "m" } as const;
    again.deliver({ ...reject, of: request("add", 5) }).deliver({ ...reject, of: null });
    assert.equal(again.object, made);
    again.deliver(request("add", 2));
    assert.equal((made as Small).n, 3);
    const last = new Solo(Small).open({ entries: joined([...solo.commits, ...again.commits]) });
    assert.deepEqual([last.parked, (last.object as Small).n], [null, 3]);
  }));

/** Each of its turns takes 40 ms. */
class Slow extends Small {
  static solo: Solo | undefined;
  override add(by: number): number {
    if (Slow.solo !== undefined) Slow.solo.nowMs += 40;
    return super.add(by);
  }
}

class Writer extends Session<SoloEnv> {
  async write(): Promise<unknown> {
    const { store } = this.env;
    const a = packKey(["a"]), b = packKey(["b"]), c = packKey(["c"]);
    await store.commit([], [{ kind: "sum", key: a, value: encodeValue(2) }]);
    await store.commit([], [{ kind: "sum", key: a, value: encodeValue(3) }]);
    await store.commit([], [{ kind: "set", key: b, value: encodeValue(7) }]);
    await store.commit([], [{ kind: "max", key: b, value: encodeValue(9) }]);
    await store.commit([], [{ kind: "delete", key: c }]);
    const range = {
      start: packKey([""]),
      end: packKey(["z"]),
      limit: 2,
      reverse: false,
      level: "session",
    } as const;
    const [rows, page] = await Promise.all([store.get([a, b, c], "session"), store.list(range)]);
    const values = (rows: readonly (StoredRow | null)[]) => rows.map((row) => row && decodeValue(row.value));
    return [values(rows), values(page.rows), page.more];
  }
}

Deno.test("a handler reads what it wrote, over what the store has (SS1)", () =>
  inMacrotask(() => {
    const solo = new Solo(Writer).open().deliver(request("write"));
    const row = (key: string, value: number) =>
      ({ key: packKey([key]), value: encodeValue(value), versionstamp: "0".repeat(20) }) as const;
    assert.deepEqual(solo.calls.map(({ kind }) => kind), ["get", "list"]);
    solo.result(1, encodeRows([row("a", 10)]));
    solo.result(2, encodePage({ more: false, rows: [row("a", 10), row("c", 1), row("d", 4)] }));
    const [output] = solo.commits.flatMap(({ outputs }) => outputs);
    const answer = decodeAnswer(output?.bytes ?? new Uint8Array(0));
    const value = answer.kind === "value" ? decodeValue(answer.value) : answer;
    assert.deepEqual(value, [[15, 9, null], [15, 9], true]);
    const effects = solo.commits.flatMap(({ effects }) => effects);
    assert.deepEqual(effects.map(({ mutations }) => mutations.map(({ kind }) => kind)), [
      ["sum", "sum", "set", "max", "delete"],
    ]);
    const again = new Solo(Writer).open({ entries: solo.entries });
    assert.deepEqual([again.parked, again.opened?.effects], [null, effects]);
  }));

/** Does otherwise where it is told to, by what all sessions share. */
const otherwise: boolean[] = [];
class Shifting extends Small {
  override add(by: number): number {
    return this.n += otherwise.shift() === true ? 2 * by : by;
  }
}

Deno.test("a replay that does otherwise is done once more, and what that did is told where it is not the same (RC3)", () =>
  inMacrotask(() => {
    const { entries } = new Solo(Shifting).open().deliver(request("add", 1));
    const messageAfter = (...replays: readonly boolean[]) => {
      otherwise.splice(0, Infinity, ...replays);
      return new Solo(Shifting).open({ entries }).parked?.message ?? "";
    };
    assert.equal(messageAfter(false), "");
    assert.doesNotMatch(messageAfter(true, true), /second replay/);
    assert.match(messageAfter(true, false), /a second replay did as the log says/);
    assert.deepEqual(otherwise, []);
  }));

/** Answers with what the way of a request names. */
class Answering extends Small {
  override n = 0;
  override fetch({ url }: Request): Response {
    const body = new ReadableStream({
      pull: (controller) => {
        if (++this.n < 3) return controller.enqueue(Uint8Array.of(this.n));
        controller.close();
      },
    });
    return url.endsWith("/body") ? new Response(body) : new Response(null, { status: 204 });
  }
}

Deno.test("a response's body is read to its end before its handler ends; none is none (HD2)", () =>
  inMacrotask(() => {
    const get = (request: string) =>
      ({
        ...{ kind: "request", request, chain: [] } as const,
        bytes: encodeCall({
          ...{
            kind: "fetch",
            method: "GET",
            url: `https://shop.example/${request}`,
            headers: [],
            body: null,
          },
        }),
      }) as const;
    const solo = new Solo(Answering).open().deliver(get("body")).deliver(get("none"));
    const answers = solo.commits.flatMap(({ outputs }) => outputs).map(({ bytes }) => decodeAnswer(bytes));
    assert.deepEqual(answers.map((each) => each.kind === "response" && [each.status, each.body]), [
      [200, Uint8Array.of(1, 2)],
      [204, null],
    ]);
    assert.equal(new Solo(Answering).open({ entries: solo.entries }).parked, null);
  }));

/** Writes before and after it waits for another. */
class Waiting extends Small {
  async both(): Promise<void> {
    const write = () => this.env.store.commit([], [{ kind: "delete", key: packKey(["k"]) }]);
    await write();
    await this.callOther("z");
    await write();
  }
}

Deno.test("what a handler wrote before a recovery is its old site's, and what it writes after that the new one's", () =>
  inMacrotask(() => {
    for (const epoch of [1, 2]) { // the same site may have another number by now
      const solo = new Solo(Waiting).open().deliver(request("both"));
      const again = new Solo(Waiting).open({ entries: solo.entries, epoch, replica: 7 });
      again.result(1, encodeAnswer({ kind: "value", value: encodeValue(1) }));
      const effects = again.commits.flatMap(({ effects }) => effects);
      assert.deepEqual(effects.map(({ replica }) => replica), [1, 7], `epoch ${epoch}`);
    }
  }));

Deno.test("whatever a handler throws is an answer, and leaves the session as it was (LP2, PG3)", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1));
    for (const what of ["proxy", "message", "null", "code"]) {
      solo.deliver({ ...request("throwing", what), request: what });
    }
    for (const [name, ms] of [["", 1], ["\ud800", 1], ["x", NaN], ["x", 1e300], ["x", -1]] as const) {
      solo.deliver({ ...request("timers", name, ms), request: `timer ${name.length} ${ms}` });
    }
    assert.deepEqual([parkedOf(solo), answers(solo).length], [null, 10]);
    assert.equal(parkedOf(solo), null);
    assert.equal((solo.object as Small).n, 1);
    assert.equal(solo.commits.flatMap(({ timers }) => timers).length, 0);
    assert.equal((new Solo(Small).open({ entries: solo.entries }).object as Small).n, 1);
  }));

Deno.test("a closure timer that throws is gone, and nothing else", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1)).deliver(request("background"));
    solo.timersDue[0]?.();
    solo.run();
    assert.equal(solo.commits.at(-1)?.isQuiescent, true);
    assert.equal((solo.object as Small).n, 1);
    const again = new Solo(Small).open({ entries: solo.entries });
    assert.equal(again.opened?.isQuiescent, true);
  }));

Deno.test("microtasks of a turn are done before its commit, and belong to it", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("chained"));
    assert.equal((solo.object as Small).n, 9);
    const again = new Solo(Small).open({ entries: solo.entries });
    assert.equal((again.object as Small).n, 9);
  }));

Deno.test("a thousand sessions of an isolate see nothing of each other", () =>
  inMacrotask(() => {
    const solo = new Solo(Small);
    for (let channel = 1; channel <= 1000; channel++) solo.open({ id: `${channel}` }, channel);
    for (let turn = 1; turn <= 3; turn++) {
      for (let channel = 1; channel <= 1000; channel++) {
        solo.deliver({ ...request("add", channel), request: `${channel}.${turn}` }, channel);
      }
    }
    const last = new Map(solo.commits.flatMap(({ outputs }) => outputs.map(({ to, bytes }) => [to, bytes])));
    for (let channel = 1; channel <= 1000; channel++) {
      const bytes = last.get(`${channel}.3`);
      const value = new DataView((bytes ?? new Uint8Array(11)).slice(3).buffer).getFloat64(0, true);
      assert.equal(value, channel * 3);
    }
    drain();
  }));

Deno.test("time stands still in a turn and is in the log only where it was read", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("add", 1)).deliver(request("add", 1));
    solo.nowMs += 5;
    solo.deliver(request("clock"));
    solo.nowMs -= 100;
    solo.deliver(request("clock"));
    const dts = readEntries(solo.entries).map((entry) => entry.kind === "turn" ? entry.dt : undefined);
    assert.deepEqual(dts, [null, 1_000_000, null, null, 5, 0]);
    const times = solo.commits.slice(-2).flatMap(({ outputs }) =>
      outputs.map(({ bytes }) => new DataView(bytes.slice(3).buffer).getFloat64(0, true))
    );
    assert.deepEqual(times, [1_000_005, 1_000_005]);
  }));

Deno.test("a checkpoint is taken after many turns, and after few that take long", () =>
  inMacrotask(() => {
    const many = new Solo(Small).open();
    for (let i = 0; i < 300; i++) many.deliver(request("add", 1));
    assert.deepEqual(many.checkpoints.map(({ at }) => at), [257]);
    const slow = Slow.solo = new Solo(Slow).open();
    for (let i = 0; i < 5; i++) slow.deliver(request("add", 1));
    assert.deepEqual(slow.checkpoints.map(({ at }) => at), [6]);
    const again = new Solo(Small).open({ checkpoint: many.checkpoints[0] ?? null });
    assert.equal((again.object as Small).n, 254);
  }));

Deno.test("a session that never rests takes no more messages when its log is long, and is parked in the end", () =>
  inMacrotask(() => {
    const solo = new Solo(Small).open().deliver(request("background"));
    const big = "x".repeat(200_000);
    for (let i = 0; i < 10; i++) solo.deliver({ ...request("big", big), request: `${i}` });
    const answered = answers(solo).length;
    assert.ok(answered < 8, `${answered} were answered`);
    assert.equal(parkedOf(solo)?.code, undefined);
    // It rests: all are answered, and a checkpoint makes the log short.
    solo.timersDue.shift()?.();
    solo.run();
    assert.equal(answers(solo).length, 11);
    assert.equal(solo.checkpoints.length > 0, true);
    solo.deliver({ ...request("background"), request: "again" });
    for (let i = 0; i < 10; i++) solo.deliver({ ...request("big", big), request: `b${i}` });
    solo.nowMs += 120_000;
    solo.deliver(request("add", 1));
    assert.equal(parkedOf(solo)?.code, "log_full");
    assert.match(parkedOf(solo)?.message ?? "", /1 closure timers/);
  }));
