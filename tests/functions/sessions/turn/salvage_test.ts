/** What is kept of sessions whose log can't be gone through to its end (functions/sessions/turn/salvage.ts). */
import assert from "node:assert/strict";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { readEntries } from "../../../../functions/sessions/turn/log_entry.ts";
import type { KeptCheckpoint, Parked } from "../../../../functions/sessions/turn/mod.ts";
import type { Program } from "../../../../functions/sessions/turn/program.ts";
import { ProgramStore } from "../../../../functions/sessions/turn/session_store.ts";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { Draws } from "../../../sim/random.ts";
import { joined } from "./entries.ts";
import { Robot } from "./robot.ts";
import { inMacrotask, runSeed } from "./run.ts";
import { Solo } from "./solo.ts";

const storeOf = (program: Program) => new ProgramStore(program);
const NO_ENTRIES = new Uint8Array(0);

/** Entries as they are, but for their checks. */
const withoutChecks = (bytes: Uint8Array): string =>
  JSON.stringify(readEntries(bytes).map((entry) => "check" in entry ? { ...entry, check: null } : entry));

/** A log of which an entry has another check; null: it has none. */
function withOtherCheck(entries: Uint8Array, index: number): Uint8Array | null {
  const read = readEntries(entries), entry = read[index];
  if (entry?.kind !== "turn" || typeof entry.check === "number") return null;
  const same = withoutChecks(entries);
  for (let at = read[index - 1]?.end ?? 0; at < entry.end; at++) {
    const other = entries.slice();
    other[at] = (other[at] ?? 0) ^ 1;
    try {
      const there = readEntries(other)[index];
      const isOther = there?.kind === "turn" && JSON.stringify(there.check) !== JSON.stringify(entry.check);
      if (isOther && withoutChecks(other) === same) return other;
    } catch {
      // Another byte is its check.
    }
  }
  return assert.fail(`entry ${index} has no check`);
}

interface Kept {
  readonly parked: Parked;
  readonly checkpoint: KeptCheckpoint | undefined;
}

/** What is salvaged of a log behind a checkpoint. */
function salvaged(
  Class: new () => SessionObject,
  checkpoint: KeptCheckpoint | null,
  entries: Uint8Array,
  code = "code",
): Kept {
  const solo = new Solo(Class, storeOf);
  solo.open({ checkpoint, entries, code, salvages: true });
  assert.ok(solo.parked);
  assert.deepEqual([solo.opened, solo.commits, solo.calls], [null, [], []], "nothing of it leaves");
  const [made] = solo.checkpoints;
  const before = made?.on === null ? [] : checkpoint?.state ?? [];
  return { parked: solo.parked, checkpoint: made && { ...made, state: [...before, ...made.state] } };
}

Deno.test("what is kept of a log is what the session was at the last commit point before it differs (SV1)", () =>
  inMacrotask(() => {
    let compared = 0, whole = 0;
    for (let seed = 1; seed <= 150; seed++) {
      const { site } = runSeed(`salvage ${seed}`, undefined, { plan: { lossEveryMs: 0 } });
      const { checkpoint, commits } = site.durable;
      const entries = joined(commits);
      const draws = new Draws(`salvage at ${seed}`);
      const index = draws.integer(0, readEntries(entries).length);
      const log = withOtherCheck(entries, index) ?? entries;
      const kept = salvaged(Robot as unknown as new () => SessionObject, checkpoint, log);
      if (checkpoint === null && index < 2 && log !== entries) continue; // before it is born
      assert.equal(kept.parked.code, "salvaged", kept.parked.message);
      const { through, why } = kept.parked.detail as { through: number; why: string | null };
      const before = checkpoint?.at ?? 0;
      if (log === entries) {
        assert.equal(why, null);
        assert.equal(through, before + readEntries(entries).length);
        whole++;
      } else assert.ok(through <= before + index, `${through} of ${before} and ${index}`);
      const state = site.states.get(through);
      if (state === undefined || kept.checkpoint === undefined) continue;
      const solo = new Solo(Robot as unknown as new () => SessionObject, storeOf);
      solo.open({ checkpoint: kept.checkpoint, entries: NO_ENTRIES });
      assert.equal(JSON.stringify((solo.object as unknown as Robot).state()), state);
      compared++;
    }
    assert.ok(compared > 60 && whole > 10, `${compared}, ${whole}`);
  }));

/** Counts, and knows what it was called with last. */
class Adder extends Session {
  sum = 0;
  add(by: number): number {
    return this.sum += by;
  }
}

const Adds = Adder as unknown as new () => SessionObject;

function added(): Solo {
  const solo = new Solo(Adds).open();
  for (const by of [1, 2, 4]) {
    const bytes = encodeCall({ kind: "rpc", method: "add", args: encodeValue([by]) });
    solo.deliver({ kind: "request", request: `q${by}`, chain: [], bytes });
  }
  return solo;
}

Deno.test("the same code on another Deno keeps what its replay agrees with, and replays nothing else (SV3)", () =>
  inMacrotask(() => {
    const { entries } = added();
    const opened = new Solo(Adds).open({ entries, code: "code on another" });
    assert.equal(opened.parked?.code, "code_differs");
    const { parked, checkpoint } = salvaged(Adds, null, entries, "code on another");
    assert.deepEqual([parked.code, parked.detail["why"]], ["salvaged", null]);
    const solo = new Solo(Adds).open({ checkpoint: checkpoint ?? null, code: "code on another" });
    assert.equal((solo.object as unknown as Adder).sum, 7);
  }));

Deno.test("of a session whose log begins otherwise nothing is kept, and that is said", () =>
  inMacrotask(() => {
    const { entries } = added();
    const first = withOtherCheck(entries, 0);
    assert.ok(first);
    const { parked, checkpoint } = salvaged(Adds, null, first);
    assert.deepEqual([parked.code, checkpoint], ["log_corrupt", undefined]);
    assert.match(parked.message, /nothing of its log can be replayed/);
  }));
