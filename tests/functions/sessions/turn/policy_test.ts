/** When checkpoints are taken, what a log may come to, and what is left of a timer after a recovery. */
import assert from "node:assert/strict";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import { boundPolicy } from "../../../../functions/class/checkpoint_policy.ts";
import { bytes } from "../../../../functions/tracked/mod.ts";
import type { Program } from "../../../../functions/sessions/turn/program.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { stage } from "./robot.ts";
import { inMacrotask } from "./run.ts";
import { Solo } from "./solo.ts";

let requests = 0;
const request = (method: string, ...args: unknown[]) => {
  const bytes = encodeCall({ kind: "rpc", method, args: encodeValue(args) });
  return { kind: "request", request: `${method}${requests++}`, chain: [], bytes } as const;
};

const program = (): Program => {
  const current = stage.loop?.current;
  if (current === undefined) throw new Error("no turn runs");
  return current;
};

/** `setTimeout`, as an isolate has it. */
const timeout = (ms: number): Promise<void> => new Promise((resolve) => void program().setLocal(ms, resolve));

class Worker extends Session {
  n = 0;
  add(_text = ""): number {
    return ++this.n;
  }
  /** Never settles: what it waits for comes, and it waits again. */
  async forever(): Promise<void> {
    for (;;) await this.outside();
  }
  /** Waits for an answer from outside. */
  async outside(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const call = { kind: "fetch", bytes: new Uint8Array(8), name: "fetch https://slow.example/" } as const;
      program().call({ ...call, done: () => resolve(), failed: reject }, false);
    });
  }
  background(ms: number): void {
    void timeout(ms);
  }
  /** The clock is read before, after or not at all. */
  sleep(ms: number, reads: "before" | "never"): number {
    if (reads === "before") program().now();
    void timeout(ms);
    return ms;
  }
  clock(): number {
    return program().now();
  }
}
const open = (Class: new () => Worker = Worker) => new Solo(Class as never).open();

Deno.test("a checkpoint is taken as often as the class says", () =>
  inMacrotask(() => {
    class Each extends Worker {
      static checkpoint = { messages: 1 };
    }
    class Few extends Worker {
      static checkpoint = { messages: 1e9, bytes: 2_048, ms: 1e9 };
    }
    const each = open(Each);
    for (let i = 0; i < 3; i++) each.deliver(request("add"));
    assert.equal(each.checkpoints.length, 3);
    const few = open(Few);
    for (let i = 0; i < 12; i++) few.deliver(request("add", "x".repeat(200)));
    assert.equal(few.checkpoints.length, 1);
    const usual = open();
    for (let i = 0; i < 200; i++) usual.deliver(request("add"));
    assert.equal(usual.checkpoints.length, 0);
  }));

Deno.test("what came of a message leaves before a large state is written down, and that comes before the next (ST7)", () =>
  inMacrotask(() => {
    class Each extends Worker {
      static checkpoint = { messages: 1 };
    }
    class Large extends Each {
      all = bytes(new Uint8Array(300_000).fill(7));
    }
    const after = (Class: new () => Worker) => {
      const solo = open(Class).deliver(request("add")); // the state is there with its first checkpoint
      solo.commits.length = solo.checkpoints.length = 0;
      solo.loop.deliver(1, { ...request("add"), number: 2, storeClock: 1_000 });
      solo.deliver(request("add"));
      const at = new Set(solo.checkpoints.map(({ at }) => at));
      return solo.commits.map(({ first, count, outputs }) =>
        `${outputs.length}${at.has(first + count - 1) ? " with checkpoint" : ""}`
      );
    };
    assert.deepEqual(after(Each), ["1 with checkpoint", "1 with checkpoint"]);
    assert.deepEqual(after(Large), ["1", "0 with checkpoint", "1", "0 with checkpoint"]);
    // An isolate that is lost in between has the answer in its log.
    const solo = open(Large).deliver(request("add"));
    const { state, ...checkpoint } = solo.checkpoints[0] ?? assert.fail();
    solo.commits.length = 0;
    solo.deliver(request("add"));
    const again = new Solo(Large as never).open({
      checkpoint: { ...checkpoint, state },
      entries: solo.entries,
    });
    assert.deepEqual([again.parked, (again.object as unknown as Large).n], [null, 2]);
  }));

Deno.test("a policy of checkpoints is brought within its bounds, and one that is none is refused (checkpoint_policy.ts CQ1)", () => {
  assert.deepEqual(boundPolicy(undefined), { messages: 256, bytes: 65_536, ms: 100 });
  assert.deepEqual(boundPolicy({ messages: 1e9, bytes: 1, ms: 0.5 }), {
    messages: 4_096,
    bytes: 1_024,
    ms: 1,
  });
  for (const bad of [{ messages: 0 }, { ms: "1" }, { bytes: NaN }, { often: 1 }, "often", null]) {
    assert.throws(() => boundPolicy(bad), /static checkpoint is .*messages\?, bytes\?, ms\?/);
  }
});

/** Messages until it takes no more, and one after a long wait. */
function filledUp(solo: Solo): Solo {
  const big = "x".repeat(200_000);
  for (let i = 0; i < 12; i++) solo.deliver(request("add", big));
  solo.nowMs += 120_000;
  return solo.deliver(request("add"));
}

Deno.test("a log that can't become a checkpoint does not grow without bound, and what it waits for is named", () =>
  inMacrotask(() => {
    const timers = filledUp(open().deliver(request("background", 5_000)));
    assert.equal(timers.parked?.code, "log_full");
    assert.match(`${timers.parked?.message}`, /1 closure timers, of 5000 ms/);
    assert.ok(timers.entries.length < 1.5e6, `${timers.entries.length}`);
    // The handler that waits lets no other begin: nothing is added to the log.
    const outside = filledUp(open().deliver(request("outside")));
    assert.equal(outside.parked, null);
    assert.ok(outside.entries.length < 1_000);
  }));

Deno.test("a handler that never settles is parked at the log's limit, by name", () =>
  inMacrotask(() => {
    const solo = open().deliver(request("forever"));
    for (let call = 1; call < 100 && solo.parked === null; call++) solo.result(call, new Uint8Array(100_000));
    assert.equal(solo.parked?.code, "log_full");
    assert.match(`${solo.parked?.message}`, /forever is open, with fetch https:\/\/slow\.example\//);
    assert.ok(solo.calls.length < 50, `${solo.calls.length} calls`);
  }));

Deno.test("a session whose log is long is not parked for those who have been waiting no minute yet, however long it has run", () =>
  inMacrotask(() => {
    const solo = open().deliver(request("forever"));
    // They came when nothing kept them from being handled but the one before.
    for (let i = 0; i < 2; i++) solo.deliver(request("add"));
    for (let call = 1; call <= 12; call++) solo.result(call, new Uint8Array(100_000)); // it takes no more from 1 MiB on
    solo.deliver(request("add"));
    assert.equal(solo.parked, null);
    solo.nowMs += 59_000;
    assert.equal(solo.deliver(request("add")).parked, null);
    solo.nowMs += 2_000;
    assert.equal(solo.deliver(request("add")).parked?.code, "log_full");
  }));

Deno.test("a pending setTimeout waits what is left of its time after a recovery, and never less", () =>
  inMacrotask(() => {
    const rows = [
      { reads: "before", later: false, passed: 20_000, left: 40_000, says: "the clock was read in its turn" },
      { reads: "before", later: false, passed: 90_000, left: 0, says: "its time is over" },
      { reads: "never", later: false, passed: 20_000, left: 60_000, says: "nothing tells when it was set" },
      {
        reads: "never",
        later: true,
        passed: 20_000,
        left: 50_000,
        says: "it was set before the clock was read",
      },
    ] as const;
    for (const { reads, later, passed, left, says } of rows) {
      const solo = open();
      solo.deliver(request("sleep", 60_000, reads));
      if (later) {
        solo.nowMs += 10_000;
        solo.deliver(request("clock"));
        solo.nowMs -= 10_000;
      }
      const again = new Solo(Worker as never);
      again.nowMs = solo.nowMs + passed;
      again.open({ entries: solo.entries, epoch: 2 });
      assert.equal(again.delays.at(-1), left, says);
    }
  }));

Deno.test("a log of another Deno says what to do", () =>
  inMacrotask(() => {
    const code = "v1 deno 2.9.6 x86_64";
    const solo = new Solo(Worker as never).open({ code }).deliver(request("add"));
    const parked = (newer: string) =>
      new Solo(Worker as never).open({ code: newer, entries: solo.entries }).parked;
    assert.match(
      `${parked("v1 deno 3.0.0 x86_64")?.message}`,
      /run Deno 2\.9\.6 on x86_64 once more at a site/,
    );
    assert.match(`${parked("v2 deno 2.9.6 x86_64")?.message}`, /deploy what wrote it again/);
  }));
