import { strict as assert } from "node:assert";
import { BEAT_MS_MAX, MEASURE_MS } from "../../../store/model/limits.ts";
import type { Beat } from "../../../store/wire/message.ts";
import { Detector, type Standing } from "../../../store/presence/detector.ts";
import { World } from "../../sim/world.ts";

const TIMES = { beatMs: 100, suspectMs: 400, deadMs: 2_000 };

/** Detectors of a few sites, over links of one delay that can be cut; all in virtual time. */
class Sites {
  readonly world = new World();
  readonly strangers = new Set<string>();
  readonly away = new Map<string, number>();
  readonly beats: string[] = [];
  readonly notes: string[] = [];
  readonly cut = new Set<string>();
  readonly detectors = new Map<string, Detector>();
  delayMs = 7;
  /** Added to every clock, as if all processes had stood still. */
  stoodMs = 0;

  add(site: string): Detector {
    const nowMs = () => this.world.nowMs + this.stoodMs;
    const detector = new Detector({
      nowMs,
      wallMs: nowMs,
      after: (ms, callback) => this.world.after(ms, callback),
      send: (to, beat) => {
        this.say(site, to, beat);
        return Promise.resolve();
      },
      isKnown: (one) => !this.strangers.has(one),
      knowsTree: () => true,
      awayUntilMs: (one) => this.away.get(one),
      count: () => {},
      note: (event, detail) => this.notes.push(`${site} ${event} ${detail.from} ${detail.before}`),
    }, TIMES);
    this.detectors.set(site, detector);
    return detector;
  }

  say(from: string, to: string, beat: Beat | null): void {
    if (beat?.isAnswer === false) this.beats.push(`${from}→${to}`);
    this.world.after(this.delayMs, () => {
      if (this.cut.has(from) || this.cut.has(to)) return;
      this.detectors.get(to)?.heard(from);
      if (beat !== null) this.detectors.get(to)?.received(from, beat);
    });
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }
}

function two(): { sites: Sites; a: Detector; changes: Standing[] } {
  const sites = new Sites();
  const a = sites.add("a");
  sites.add("b");
  a.watch("b");
  const changes: Standing[] = [];
  a.onChange((_, standing) => void changes.push(standing));
  return { sites, a, changes };
}

Deno.test("detector: a site is unknown, alive, suspected, dead, and alive again as it answers or not", async () => {
  const { sites, a, changes } = two();
  assert.equal(a.standing("b"), "unknown");
  await sites.pass(300);
  assert.equal(a.standing("b"), "alive");
  sites.cut.add("b");
  await sites.pass(TIMES.suspectMs - 150);
  assert.equal(a.standing("b"), "alive");
  await sites.pass(250);
  assert.equal(a.standing("b"), "suspected");
  await sites.pass(TIMES.deadMs);
  assert.equal(a.standing("b"), "dead");
  sites.cut.delete("b");
  sites.say("b", "a", null);
  await sites.pass(10);
  assert.deepEqual(changes, ["alive", "suspected", "dead", "alive"]);
});

Deno.test("detector: a site that never spoke is suspected and dead in its time", async () => {
  const { sites, changes } = two();
  sites.cut.add("b");
  await sites.pass(TIMES.deadMs + 200);
  assert.deepEqual(changes, ["suspected", "dead"]);
});

Deno.test("detector: the round trip is that of the link, falls at once and rises slowly", async () => {
  const { sites, a } = two();
  const rtt = () => a.list()[0]?.rttMs ?? null;
  assert.equal(rtt(), null);
  await sites.pass(300);
  assert.equal(rtt(), 14);
  sites.delayMs = 3;
  await sites.pass(300);
  assert.equal(rtt(), 6);
  sites.delayMs = 43;
  await sites.pass(200);
  const risen = rtt() ?? 0;
  assert.ok(risen > 6 && risen < 86, `${risen}`);
  await sites.pass(6_000);
  assert.ok((rtt() ?? 0) > 70, `${rtt()}`);
  a.measured("b", 20);
  assert.equal(rtt(), 20);
});

Deno.test("detector: another site's beat is no answer to one of this site's, be it of the same moment (F4)", async () => {
  const { sites, a } = two(), sent: Beat[] = [], say = sites.say.bind(sites);
  sites.delayMs = 0.8 * TIMES.beatMs;
  sites.say = (from, to, beat) => {
    if (from === "a" && beat?.isAnswer === false) sent.push(beat);
    say(from, to, beat);
  };
  for (let ms = 0; sent.length === 0; ms++) {
    assert.ok(ms < 1_000);
    await sites.pass(1);
  }
  for (const beat of sent) a.received("b", beat);
  assert.equal(a.list()[0]?.rttMs ?? null, null);
  await sites.pass(5 * TIMES.beatMs);
  assert.equal(a.list()[0]?.rttMs, 2 * sites.delayMs);
});

Deno.test("detector: a site farther away than a beat is measured, and as far as it is (F4)", async () => {
  const { sites, a } = two();
  sites.delayMs = 1.8 * TIMES.beatMs;
  await sites.pass(6_000);
  assert.equal(a.list()[0]?.rttMs, 3.6 * TIMES.beatMs);
  assert.equal(a.standing("b"), "alive");
});

Deno.test("detector: where something else flows a site is asked for its round trip only (F1)", async () => {
  const { sites, a } = two();
  await sites.pass(1_000);
  const before = sites.beats.length;
  for (let i = 0; i < 100; i++) {
    sites.say("b", "a", null);
    await sites.pass(TIMES.beatMs / 2);
  }
  assert.equal(sites.beats.length, before);
  assert.equal(a.standing("b"), "alive");
  for (let ms = 0; ms < MEASURE_MS; ms += TIMES.beatMs / 2) {
    sites.say("b", "a", null);
    await sites.pass(TIMES.beatMs / 2);
  }
  assert.equal(sites.beats.length, before + 1);
});

Deno.test("detector: of two that watch each other one asks, and both hear", async () => {
  const sites = new Sites();
  sites.add("a").watch("b");
  await sites.pass(30);
  sites.add("b").watch("a");
  await sites.pass(10_000);
  const asked = 10_000 / TIMES.beatMs;
  assert.ok(sites.beats.length < asked * 1.2, `${sites.beats.length} beats in ${asked} beat times`);
});

Deno.test("detector: the longer a site is silent the less often it is asked", async () => {
  const { sites } = two();
  sites.cut.add("b");
  await sites.pass(200_000);
  const before = sites.beats.length;
  await sites.pass(100_000);
  assert.equal(sites.beats.length - before, 100_000 / BEAT_MS_MAX);
});

Deno.test("detector: a site that announced its return is suspected at once, and dead only after it (F2)", async () => {
  const { sites, a } = two();
  await sites.pass(300);
  sites.away.set("b", sites.world.nowMs + 60_000);
  await sites.pass(TIMES.beatMs);
  assert.equal(a.standing("b"), "suspected");
  sites.cut.add("b");
  await sites.pass(59_000);
  assert.equal(a.standing("b"), "suspected");
  await sites.pass(2_000);
  assert.equal(a.standing("b"), "dead");
});

Deno.test("detector: a site that is back before its time is alive when it has taken its word back", async () => {
  const { sites, a } = two();
  await sites.pass(300);
  sites.away.set("b", sites.world.nowMs + 60_000);
  await sites.pass(1_000);
  assert.equal(a.standing("b"), "suspected");
  sites.away.delete("b");
  await sites.pass(200);
  assert.equal(a.standing("b"), "alive");
});

Deno.test("detector: what passed while the process stood still is nobody's silence (F3, F4)", async () => {
  const { sites, a, changes } = two();
  await sites.pass(300);
  sites.stoodMs = 3_600_000;
  await sites.pass(300);
  assert.equal(a.standing("b"), "alive");
  assert.deepEqual(changes, ["alive"]);
  assert.equal(a.list()[0]?.rttMs, 14);
  sites.cut.add("b");
  await sites.pass(TIMES.suspectMs + 200);
  assert.equal(a.standing("b"), "suspected");
});

Deno.test("detector: a stranger is refused, counted, and noted once a minute (F5)", async () => {
  const { sites, a } = two();
  sites.strangers.add("x");
  for (let i = 0; i < 5; i++) a.received("x", { kind: "beat", stamp: i, isAnswer: false });
  assert.deepEqual(sites.notes, ["a beat_stranger x 0"]);
  await sites.pass(60_000);
  a.received("x", { kind: "beat", stamp: 9, isAnswer: true });
  assert.deepEqual(sites.notes, ["a beat_stranger x 0", "a beat_stranger x 4"]);
  assert.equal(a.standing("x"), "unknown");
});

Deno.test("detector: an answer that nobody asked for measures nothing", async () => {
  const { sites, a } = two();
  await sites.pass(300);
  a.received("b", { kind: "beat", stamp: 1, isAnswer: true });
  a.received("b", { kind: "beat", stamp: Number.MAX_SAFE_INTEGER, isAnswer: true });
  assert.equal(a.list()[0]?.rttMs, 14);
});

Deno.test("detector: other timeouts hold at once", async () => {
  const { sites, a } = two();
  await sites.pass(300);
  sites.cut.add("b");
  await sites.pass(200);
  assert.equal(a.standing("b"), "alive");
  a.configure({ beatMs: 20, suspectMs: 100, deadMs: 200 });
  assert.equal(a.standing("b"), "dead");
});

Deno.test("detector: nobody is asked for whom nobody watches any more", async () => {
  const sites = new Sites();
  const a = sites.add("a");
  sites.add("b");
  const forget = [a.watch("b"), a.watch("b")];
  await sites.pass(300);
  forget[0]?.();
  forget[0]?.();
  assert.equal(a.standing("b"), "alive");
  forget[1]?.();
  assert.deepEqual(a.list(), []);
  const before = sites.beats.length;
  await sites.pass(10_000);
  assert.equal(sites.beats.length, before);
});

Deno.test("a site where nobody listens is suspected at once by presence, and by nothing else (F6)", async () => {
  const { sites, a, changes } = two();
  await sites.pass(300);
  changes.length = 0;
  const presences: string[] = [];
  a.onPresence((site, presence, before) => presences.push(`${site} ${before}→${presence}`));
  a.refused("b");
  a.refused("b");
  assert.deepEqual([a.presence("b"), a.standing("b")], ["suspected", "alive"]);
  assert.deepEqual(presences, ["b alive→suspected"]);
  await sites.pass(150);
  assert.deepEqual([a.presence("b"), a.standing("b")], ["alive", "alive"], "its next word ends it");
  assert.deepEqual(presences, ["b alive→suspected", "b suspected→alive"]);
  assert.deepEqual(changes, [], "who goes by standing has heard of nothing");
});

Deno.test("what a link found of a site that nobody watches is known for as long as silence takes to say more", async () => {
  const { sites, a } = two();
  a.refused("c");
  assert.deepEqual([a.presence("c"), a.standing("c")], ["suspected", "unknown"]);
  await sites.pass(TIMES.deadMs + 1);
  assert.equal(a.presence("c"), "unknown");
  sites.strangers.add("d");
  a.refused("d");
  assert.equal(a.presence("d"), "unknown", "one that is not of the tree");
});

Deno.test("a site where nobody listens goes on from suspected to dead by its silence", async () => {
  const { sites, a } = two();
  await sites.pass(300);
  sites.cut.add("b");
  a.refused("b");
  await sites.pass(600);
  assert.deepEqual([a.presence("b"), a.standing("b")], ["suspected", "suspected"]);
  await sites.pass(TIMES.deadMs);
  assert.equal(a.presence("b"), "dead");
});

Deno.test("detector: who is in touch with a site has not been taken for dead by it, wherever the two are cut", async () => {
  for (const delayMs of [1, 7, 40]) {
    for (let cutMs = 1_000; cutMs < 1_300; cutMs += 7) {
      const sites = new Sites();
      sites.delayMs = delayMs;
      const a = sites.add("a"), b = sites.add("b");
      b.watch("a");
      await sites.pass(cutMs % 97);
      a.watch("b");
      await sites.pass(cutMs);
      let touched = 0;
      for (let ms = 0; ms < 200; ms++) {
        // Farther away the silence between two beats is too long to tell.
        assert.ok(a.isInTouch("b") || delayMs > 7, "they hear each other");
        await sites.pass(1);
      }
      sites.cut.add("b");
      while (b.standing("a") !== "suspected") {
        if (a.isInTouch("b")) touched++;
        await sites.pass(1);
      }
      assert.equal(a.isInTouch("b"), false, `cut at ${cutMs} ms`);
      assert.ok(touched > TIMES.suspectMs / 8 || delayMs > 7, `in touch for ${touched} ms after the cut`);
    }
  }
  const { sites, a } = two();
  await sites.pass(300);
  assert.equal(a.isInTouch("b"), true);
  sites.stoodMs += 10 * TIMES.suspectMs;
  await sites.pass(10);
  assert.equal(a.isInTouch("b"), false, "the other one may have taken it for dead as it stood still (F3)");
  assert.equal(a.isInTouch("c"), false, "it is not watched");
});
