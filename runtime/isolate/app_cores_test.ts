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
  const cores = new AppCores(), one = new Told(), other = new Told();
  const member = cores.join(one);
  cores.join(other);
  member.looked(BURST_MS, 0);
  assert.ok(!cores.givesWay, "a burst is free");
  member.looked(BURST_MS + 10, 1);
  assert.ok(cores.givesWay && one.does && other.does);
  const restedMs = BURST_MS / CORES_FREE;
  member.looked(BURST_MS + 10, restedMs);
  assert.ok(cores.givesWay, "it has not rested for long enough");
  member.looked(BURST_MS + 10, restedMs + 100);
  assert.ok(!cores.givesWay && !one.does && !other.does);
});

Deno.test("an app that computes little for good never gives way (CW1)", () => {
  const cores = new AppCores(), member = cores.join(new Told());
  for (let ms = 0; ms < 600_000; ms += 100) {
    member.looked(ms * CORES_FREE, ms);
    assert.ok(!cores.givesWay);
  }
});

Deno.test("processes that end one after the other fill one bucket, with what their starts took (CW1)", () => {
  const cores = new AppCores();
  for (let ms = 0; ms <= 2 * BURST_MS; ms += 200) {
    const member = cores.join(new Told());
    member.looked(200, ms);
    member.leave();
  }
  assert.ok(cores.givesWay);
  const next = new Told();
  cores.join(next);
  assert.ok(next.does, "what is started next gives way, too");
});

Deno.test("what was computed for hours has run off after a minute (CW1)", () => {
  const cores = new AppCores(), member = cores.join(new Told());
  for (let ms = 0; ms <= 3_600_000; ms += 1_000) member.looked(ms, ms);
  assert.ok(cores.givesWay);
  member.looked(3_600_000, 3_600_000 + LEVEL_MS_MAX / CORES_FREE + 1);
  assert.ok(!cores.givesWay);
});

Deno.test("what the system refuses is tried again at the next look, of those that have not ended (CW3)", () => {
  const cores = new AppCores(), process = new Told(), gone = new Told();
  const member = cores.join(process);
  cores.join(gone).leave();
  process.refuses = true;
  member.looked(2 * BURST_MS, 0);
  assert.ok(cores.givesWay && !process.does && !gone.does);
  process.refuses = false;
  member.looked(2 * BURST_MS, 100);
  assert.ok(process.does);
});

Deno.test("a process that was started to give way is one like the others in an app that does not (CW2)", () => {
  const process = new Told(true);
  new AppCores().join(process);
  assert.ok(!process.does);
});
