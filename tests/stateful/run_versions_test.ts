/** Under which versions a stateful session may write, whatever its isolate says (runtime/stateful/run_versions.ts). */
import assert from "node:assert/strict";
import type { Effect } from "../../functions/turns/mod.ts";
import { writeTurn } from "../../functions/turns/log_entry.ts";
import { NO_HEAD } from "../../runtime/stateful/pieces.ts";
import { RunVersions } from "../../runtime/stateful/run_versions.ts";
import { Writer } from "../../store/codec.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../store/row.ts";

const OWN = 3, BEFORE = 5, ROOT = 1;
const NOW_MS = CLOCK_EPOCH_MS + 1_000_000;
const NOW = 1_000_000 * CLOCK_TICKS_PER_MS;
const LATER = NOW + 50_000 * CLOCK_TICKS_PER_MS;
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

const versions = () => new RunVersions({ replica: OWN, nowMs: () => NOW_MS, tick: () => NOW }, [PIECE]);

Deno.test("a commit writes as its site, under a clock that it was given or of now (RV1)", () => {
  const wrong = (effects: Effect[], entries = NONE, given = 0) => {
    const one = versions();
    one.gives(given);
    return one.ofCommit({ effects, entries });
  };
  assert.equal(wrong([]), null);
  assert.equal(wrong([effect(NOW)]), null);
  assert.equal(wrong([effect(LATER)], NONE, LATER), null, "it was given that");
  assert.match(wrong([effect(LATER)]) ?? "", /ahead of time/);
  assert.match(wrong([effect(NOW), effect(LATER)]) ?? "", /ahead of time/);
  assert.match(wrong([effect(NOW, ROOT)]) ?? "", /writes as 1/);
  assert.match(wrong([effect(NOW, BEFORE)]) ?? "", /writes as 5/);
  assert.match(wrong([], entriesAt(LATER)) ?? "", /ahead of time/, "the next home would believe the log");
  assert.equal(wrong([], entriesAt(NOW)), null);
});

Deno.test("what a log left open is of who wrote it, under a clock that it has (RV2)", () => {
  const wrong = (...effects: Effect[]) => versions().ofLog({ effects, isQuiescent: true });
  assert.equal(wrong(effect(LATER, BEFORE), effect(NOW)), null);
  assert.match(wrong(effect(LATER + 1, BEFORE)) ?? "", /not in its log/);
  assert.match(wrong(effect(NOW, ROOT)) ?? "", /wrote none of its log/);
});

Deno.test("a handler that goes on commits what it wrote at the site before, and nobody else does (RV3)", () => {
  const wrong = (isQuiescent: boolean, ...effects: Effect[]) => {
    const one = versions();
    assert.equal(one.ofLog({ effects: [], isQuiescent }), null);
    return one.ofCommit({ effects, entries: NONE });
  };
  assert.equal(wrong(false, effect(LATER, BEFORE), effect(NOW)), null);
  assert.match(wrong(false, effect(LATER + 1, BEFORE)) ?? "", /ahead of time/);
  assert.match(wrong(false, effect(NOW, ROOT)) ?? "", /writes as 1/);
  assert.match(wrong(true, effect(NOW, BEFORE)) ?? "", /writes as 5/);
});
