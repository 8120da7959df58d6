import assert from "node:assert/strict";
import type { KillCause } from "./app_process.ts";
import type { Isolate } from "./isolate.ts";
import { DEFAULT_ISOLATE_LIMITS } from "./limits.ts";
import { Watchdog } from "./watchdog.ts";

const LOOK_MS = 100;

/** Has an isolate that answers no ping use so much CPU time between two looks; returns what it is killed for, and when. */
function killedFor(cpuMsEach: number, looks: number): { cause: KillCause; atMs: number } | null {
  const { setInterval } = globalThis, { now } = performance;
  let nowMs = 0, cpuMs = 0, killed: { cause: KillCause; atMs: number } | null = null, tick = () => {};
  globalThis.setInterval = ((look: () => void) => (tick = look, 0)) as unknown as typeof setInterval;
  performance.now = () => nowMs;
  try {
    const isolate = {
      exchanges: new Map([[1, { id: 1, headSeen: false, cpuMs: 0, expireAt: () => {}, pending: {} }]]),
      ended: new Promise(() => {}),
      ...{ begun: 1, framesSeen: 1, isOver: false, isHeld: false, isStuck: false },
      usage: () => ({ cpuMs, threads: 8, addressMib: 20_000, residentMib: 60 }),
      ping: () => {},
      kill: (_: string, cause: KillCause) => killed ??= { cause, atMs: nowMs },
    } as unknown as Isolate;
    const watchdog = new Watchdog({ revived: () => {}, busy: () => {} });
    watchdog.watch(isolate, { ...DEFAULT_ISOLATE_LIMITS, cpuMs: 300 });
    for (let i = 0; i < looks && killed === null; i++) {
      nowMs += LOOK_MS;
      tick();
      cpuMs += cpuMsEach;
    }
    watchdog.close();
    return killed;
  } finally {
    globalThis.setInterval = setInterval;
    performance.now = now;
  }
}

Deno.test("a handler that holds the event loop is killed for CPU time, and for none that others took (W1, W2)", () => {
  assert.deepEqual(killedFor(100, 100), { cause: "cpu", atMs: 400 });
  assert.equal(killedFor(10, 28), null, "of 2.8 s it got 280 ms");
  assert.deepEqual(killedFor(0, 100), { cause: "stalled", atMs: 3_100 });
});
