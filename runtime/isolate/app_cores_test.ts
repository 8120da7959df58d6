import { strict as assert } from "node:assert";
import { AppCores, BURST_MS, CORES_FREE, type GivesWay, LEVEL_MS_MAX } from "./app_cores.ts";

/** A process that only notes what it is told. */
class Told implements GivesWay {
  does: boolean;
  refuses = false;

  constructor(readonly startedGivingWay = false) {
    this.does = startedGivingWay;
  }

  giveWay(does: boolean): boolean {
    if (this.refuses) return false;
    this.does = does;
    return true;
  }
}

Deno.test("an app gives way that computes more than a burst, with all its processes, and comes back when it has rested (CW1, CW2)", () => {
  let nowMs = 0;
  const cores = new AppCores(() => nowMs), one = new Told(), other = new Told();
  assert.ok(cores.isRested);
  const member = cores.join(one);
  cores.join(other);
  member.looked(BURST_MS);
  assert.ok(!cores.givesWay, "a burst is free");
  nowMs = 1;
  member.looked(BURST_MS + 10);
  assert.ok(cores.givesWay && one.does && other.does);
  nowMs = BURST_MS / CORES_FREE;
  member.looked(BURST_MS + 10);
  assert.ok(cores.givesWay && !cores.isRested, "it has not rested for long enough");
  nowMs += 100;
  assert.ok(cores.isRested);
  member.looked(BURST_MS + 10);
  assert.ok(!cores.givesWay && !one.does && !other.does);
});

Deno.test("an app that computes little for good never gives way (CW1)", () => {
  let nowMs = 0;
  const cores = new AppCores(() => nowMs), member = cores.join(new Told());
  for (; nowMs < 600_000; nowMs += 100) {
    member.looked(nowMs * CORES_FREE);
    assert.ok(!cores.givesWay);
  }
});

Deno.test("processes that end one after the other fill one bucket, with what their starts took (CW1)", () => {
  let nowMs = 0;
  const cores = new AppCores(() => nowMs);
  for (; nowMs <= 2 * BURST_MS; nowMs += 200) {
    const member = cores.join(new Told());
    member.looked(200);
    member.leave();
  }
  assert.ok(cores.givesWay);
  const next = new Told();
  cores.join(next);
  assert.ok(next.does, "what is started next gives way, too");
});

Deno.test("what was computed for hours has run off after a minute (CW1)", () => {
  let nowMs = 0;
  const cores = new AppCores(() => nowMs), member = cores.join(new Told());
  for (; nowMs <= 3_600_000; nowMs += 1_000) member.looked(nowMs);
  assert.ok(cores.givesWay);
  nowMs += LEVEL_MS_MAX / CORES_FREE;
  member.looked(3_600_000);
  assert.ok(!cores.givesWay);
});

Deno.test("what the system refuses is tried again at the next look, of those that have not ended (CW3)", () => {
  const cores = new AppCores(() => 0), process = new Told(), gone = new Told();
  const member = cores.join(process);
  cores.join(gone).leave();
  process.refuses = true;
  member.looked(2 * BURST_MS);
  assert.ok(cores.givesWay && !process.does && !gone.does);
  process.refuses = false;
  member.looked(2 * BURST_MS);
  assert.ok(process.does);
});

Deno.test("a process that was started to give way is one like the others in an app that does not (CW2)", () => {
  const process = new Told(true);
  new AppCores().join(process);
  assert.ok(!process.does);
});
