/** Under which versions a stateful session may write, whatever its isolate says (functions/sessions/serve/run_versions.ts). */
import assert from "node:assert/strict";
import type { Effect } from "../../../../functions/sessions/turn/mod.ts";
import { writeTurn } from "../../../../functions/sessions/turn/log_entry.ts";
import { NO_HEAD } from "../../../../functions/sessions/serve/pieces.ts";
import { ClockLead, RunVersions } from "../../../../functions/sessions/serve/run_versions.ts";
import { CLOCK_SHARE_STEP } from "../../../../store/model/clock_share.ts";
import { Writer } from "../../../../store/model/codec.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../../store/model/row.ts";

const OWN = 3, BEFORE = 5, ROOT = 1;
const NOW_MS = CLOCK_EPOCH_MS + 1_000_000;
const NOW = 1_000_000 * CLOCK_TICKS_PER_MS;
const LATER = NOW + 50_000 * CLOCK_TICKS_PER_MS;
const SECOND = 1_000 * CLOCK_TICKS_PER_MS;
const NONE = new Uint8Array();

const effect = (clock: number, replica = OWN): Effect => ({
  effect: 1,
  clock,
  replica,
  atMs: 1,
  mutations: [],
});

/** A turn's entries that say that it wrote at a clock. */
function entriesAt(clock: number): Uint8Array<ArrayBuffer> {
  const entries = new Writer();
  const input = { kind: "local", local: 0 } as const;
  writeTurn(entries, input, { clocks: [], storeClock: clock, check: 0 }, 0);
  return Uint8Array.from(entries.done());
}

/** A piece of the home before, whose clock was ahead. */
const PIECE = {
  ...NO_HEAD,
  seen: {
    token: { session: NONE, sequence: 0, replica: BEFORE, clock: NOW, open: false, path: [] },
    ...{ applied: 0, isWhole: true },
  },
  bytes: entriesAt(LATER),
};

/** None is left. */
function lead(): ClockLead {
  const all = new ClockLead(() => NOW_MS);
  assert.ok(all.takes(SECOND));
  return all;
}

const versions = () =>
  new RunVersions({ replica: OWN, nowMs: () => NOW_MS, tick: () => NOW, lead: lead() }, [PIECE]);

const AHEAD = /ahead of time/;

Deno.test("a turn writes as its site, under a clock that it was given or of now (RV1)", () => {
  const wrong = (effects: Effect[], entries = NONE, given = 0) => {
    const one = new RunVersions({ replica: OWN, nowMs: () => NOW_MS, tick: () => NOW, lead: lead() }, []);
    one.gives(given);
    return one.ofCommit({ effects, entries, isPoint: true });
  };
  assert.equal(wrong([]), null);
  assert.equal(wrong([effect(NOW)]), null);
  assert.equal(wrong([effect(LATER)], NONE, LATER), null, "it was given that");
  assert.match(wrong([effect(LATER)]) ?? "", AHEAD);
  assert.match(wrong([effect(NOW), effect(LATER)]) ?? "", AHEAD);
  assert.match(wrong([effect(NOW, ROOT)]) ?? "", /writes as 1/);
  assert.match(wrong([effect(NOW, BEFORE)]) ?? "", /writes as 5/);
  assert.match(wrong([], entriesAt(LATER)) ?? "", AHEAD, "the next home would believe the log");
  assert.equal(wrong([], entriesAt(NOW)), null);
});

Deno.test("a handler that goes on writes after itself, where the clock that it was given is ahead (RV1)", () => {
  const all = new ClockLead(() => NOW_MS);
  const one = new RunVersions({ replica: OWN, nowMs: () => NOW_MS, tick: () => NOW, lead: all }, []);
  one.gives(LATER);
  const clocks = [0, 1, 2].map((n) => LATER + n * CLOCK_SHARE_STEP);
  const entries = Uint8Array.from(clocks.flatMap((clock) => [...entriesAt(clock)]));
  const effects = clocks.map((clock) => effect(clock));
  assert.equal(one.ofCommit({ effects, entries, isPoint: true }), null);
  const next = LATER + 3 * CLOCK_SHARE_STEP;
  assert.equal(one.ofCommit({ effects: [], entries: entriesAt(next), isPoint: true }), null);
  assert.match(one.ofCommit({ effects: [], entries: entriesAt(next + SECOND), isPoint: true }) ?? "", AHEAD);
});

Deno.test("isolates of a site lead its clock on no faster than time passes (RV1)", () => {
  let nowMs = NOW_MS;
  const all = new ClockLead(() => nowMs);
  const of = { replica: OWN, nowMs: () => nowMs, tick: () => NOW, lead: all };
  const runs = [new RunVersions(of, []), new RunVersions(of, [])];
  let clock = LATER, steps = 0;
  for (const run of runs) run.gives(clock);
  const isTaken = () => {
    const run = runs[steps % 2];
    assert.ok(run);
    run.gives(clock); // what one has written, the next is given
    clock += CLOCK_SHARE_STEP;
    const isSo = run.ofCommit({ effects: [effect(clock)], entries: NONE, isPoint: true }) === null;
    if (isSo) steps++;
    else clock -= CLOCK_SHARE_STEP;
    return isSo;
  };
  while (isTaken());
  assert.equal(steps, 8_000, "a second");
  nowMs += 10;
  while (isTaken());
  assert.equal(steps, 8_080);
  nowMs -= 3_600_000; // a clock that is put back leads nobody on
  assert.ok(!isTaken());
});

Deno.test("what a log left open is of who wrote it, under a clock that it has (RV2)", () => {
  const wrong = (...effects: Effect[]) => versions().ofLog({ effects, isQuiescent: false });
  assert.equal(wrong(effect(LATER, BEFORE), effect(NOW)), null);
  assert.match(wrong(effect(LATER + 2, BEFORE)) ?? "", AHEAD);
  assert.match(wrong(effect(NOW, ROOT)) ?? "", /writes as 1/);
});

Deno.test("what a handler wrote at the home before leaves when it ends here, and nothing does after that (RV2)", () => {
  const before = { effects: [effect(LATER, BEFORE)], entries: NONE };
  const opened = (isQuiescent: boolean) => {
    const one = versions();
    assert.equal(one.ofLog({ effects: [], isQuiescent }), null);
    return one;
  };
  const one = opened(false);
  assert.equal(one.ofCommit({ effects: [], entries: NONE, isPoint: false }), null);
  assert.equal(one.ofCommit({ ...before, isPoint: true }), null);
  assert.match(one.ofCommit({ ...before, isPoint: true }) ?? "", /writes as 5/);
  const foreign = { effects: [effect(NOW, ROOT)], entries: NONE, isPoint: true };
  assert.match(opened(false).ofCommit(foreign) ?? "", /writes as 1/);
  assert.match(
    opened(true).ofCommit({ ...before, isPoint: true }) ?? "",
    /writes as 5/,
    "none was under way",
  );
});

Deno.test("who wrote a log is told by its epochs where no token is in it, and none names another site (RV2, RV3)", () => {
  const epoch = (replica: number): Uint8Array<ArrayBuffer> => {
    const entries = new Writer();
    const input = { kind: "epoch", epoch: 2, replica, code: "c" } as const;
    writeTurn(entries, input, { clocks: [], storeClock: null, check: 0 }, 0);
    return Uint8Array.from(entries.done());
  };
  const of = { replica: OWN, nowMs: () => NOW_MS, tick: () => NOW, lead: lead() };
  const one = new RunVersions(of, [{ ...NO_HEAD, bytes: epoch(BEFORE) }]);
  assert.equal(one.ofLog({ effects: [effect(NOW, BEFORE)], isQuiescent: true }), null);
  assert.equal(one.ofCommit({ effects: [], entries: epoch(OWN), isPoint: true }), null);
  assert.match(one.ofCommit({ effects: [], entries: epoch(BEFORE), isPoint: true }) ?? "", /epoch as 5/);
});

Deno.test("a base says who wrote what follows, where its site has taken another number since (RV2)", () => {
  const { seen } = PIECE;
  const token = { ...seen.token, replica: ROOT };
  const base = { ...NO_HEAD, seen: { ...seen, token }, bytes: NONE };
  const after = { ...NO_HEAD, bytes: entriesAt(NOW) };
  const of = { replica: OWN, nowMs: () => NOW_MS, tick: () => NOW, lead: lead() };
  const opened = { effects: [effect(NOW, BEFORE)], isQuiescent: true };
  assert.match(new RunVersions(of, [base, after]).ofLog(opened) ?? "", /writes as 5/);
  assert.equal(new RunVersions(of, [{ ...base, writer: BEFORE }, after]).ofLog(opened), null);
});
