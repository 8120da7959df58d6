import assert from "node:assert/strict";
import { TurnWatch } from "./turn_watch.ts";

const LIMITS = { cpuMs: 300, heapMib: 128, buffersMib: 128 };
const LOOK_MS = 100;

/** A watch over a process that is told here, at times that are told here. */
function withWatch(
  run: (bench: {
    readonly watch: TurnWatch;
    /** Has the process send a frame. */
    speak(): void;
    /** Lets so many looks pass, between which the process uses so much CPU time; returns the reason to kill it. */
    pass(looks: number, cpuMsEach: number): string | null;
    readonly process: { threads: number; residentMib: number; isHeld: boolean };
    /** Numbers of looks at the process, and of pings. */
    readonly seen: { looks: number; pings: number };
  }) => void,
): void {
  const { setInterval } = globalThis, { now } = performance;
  const process = { threads: 8, residentMib: 60, isHeld: false }, seen = { looks: 0, pings: 0 };
  let nowMs = 0, cpuMs = 0, killed: string | null = null, tick = () => {};
  globalThis.setInterval = ((look: () => void) => (tick = look, 0)) as unknown as typeof setInterval;
  performance.now = () => nowMs;
  try {
    const watched = {
      app: { limits: LIMITS },
      framesSeen: 0,
      usage: () => {
        seen.looks++;
        return { cpuMs, addressMib: 20_000, threads: process.threads, residentMib: process.residentMib };
      },
      get isHeld() {
        return process.isHeld;
      },
      ping: () => void seen.pings++,
      kill: (why: string) => void (killed ??= why),
    };
    const watch = new TurnWatch(watched), speak = () => void watched.framesSeen++;
    seen.looks = 0;
    const pass = (looks: number, cpuMsEach: number) => {
      for (let i = 0; i < looks && killed === null; i++) {
        nowMs += LOOK_MS;
        cpuMs += cpuMsEach;
        tick();
      }
      return killed;
    };
    run({ watch, speak, pass, process, seen });
  } finally {
    globalThis.setInterval = setInterval;
    performance.now = now;
  }
}

Deno.test("a turn that computes longer than a request may ends its isolate, and one on a busy machine does not (T1; stateful_isolate.ts I3)", () => {
  withWatch(({ watch, pass, seen }) => {
    watch.begin();
    assert.equal(pass(1, 0), null);
    assert.equal(seen.pings, 1);
    assert.equal(pass(2, 100), null);
    assert.match(pass(1, 100) ?? "", /more than 300 ms of CPU time/);
  });
  withWatch(({ watch, pass }) => {
    watch.begin();
    assert.equal(pass(25, 10), null, "of 2.5 s it got 250 ms");
  });
  withWatch(({ watch, speak, pass }) => {
    for (let turn = 0; turn < 20; turn++) {
      watch.begin();
      assert.equal(pass(3, 90), null);
      speak();
      assert.equal(pass(1, 0), null, "it gives the loop back");
    }
  });
});

Deno.test("a loop that stands still ends its isolate after ten times as long, and not while its frames are unread (T2)", () => {
  withWatch(({ watch, pass }) => {
    watch.begin();
    assert.equal(pass(30, 0), null);
    assert.match(pass(1, 0) ?? "", /stood still for more than 3000 ms/);
  });
  withWatch(({ watch, pass, process }) => {
    process.isHeld = true;
    watch.begin();
    assert.equal(pass(100, 0), null);
  });
});

Deno.test("an isolate beyond the bounds of its process ends, also between two turns (T3; stateful_isolate.ts I3)", () => {
  withWatch(({ pass, process }) => {
    process.residentMib = 257;
    assert.match(pass(10, 0) ?? "", /held 257 MiB/);
  });
  withWatch(({ watch, speak, pass }) => {
    let why: string | null = null;
    for (let i = 0; i < 100 && why === null; i++) {
      speak(); // its loop turns
      watch.begin();
      why = pass(1, 200);
    }
    assert.match(why ?? "", /cores/);
  });
});

Deno.test("an isolate of which nothing is asked is looked at once in ten looks (T4)", () => {
  withWatch(({ watch, speak, pass, seen }) => {
    for (let i = 0; i < 10; i++) {
      assert.equal(pass(1, 0), null);
      speak(); // it answers each ping
      assert.equal(pass(9, 0), null);
    }
    assert.ok(seen.looks >= 10 && seen.looks <= 20, `${seen.looks} of 100 looks`);
    seen.looks = 0;
    for (let i = 0; i < 10; i++) {
      watch.begin();
      assert.equal(pass(1, 0), null);
      speak();
    }
    assert.equal(seen.looks, 10);
  });
});
