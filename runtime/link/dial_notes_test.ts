import assert from "node:assert/strict";
import { DialNotes } from "./dial_notes.ts";

function notesAt(): { notes: DialNotes; pass: (ms: number) => void } {
  let nowMs = 0;
  return { notes: new DialNotes(() => nowMs), pass: (ms) => void (nowMs += ms) };
}

Deno.test("a dial that fails as before is told once, and each minute with how often it was tried (DN1)", () => {
  const { notes, pass } = notesAt();
  assert.deepEqual(notes.failed("edge-1", "refused"), { warns: true });
  for (let i = 0; i < 119; i++) {
    pass(500);
    assert.equal(notes.failed("edge-1", "refused"), null);
  }
  pass(500);
  assert.deepEqual(notes.failed("edge-1", "refused"), { warns: true, before: 119 });
});

Deno.test("reasons that take turns are told once each", () => {
  const { notes, pass } = notesAt();
  const told = Array.from({ length: 20 }, (_, i) => {
    pass(500);
    return notes.failed("edge-1", i % 2 === 0 ? "refused" : "timed out");
  });
  assert.deepEqual(told.map((each) => each !== null).slice(0, 3), [true, true, false]);
  assert.equal(told.filter((each) => each !== null).length, 2);
});

Deno.test("a reason that is never the same is not told each time", () => {
  const { notes } = notesAt();
  const told = Array.from({ length: 100 }, (_, i) => notes.failed("edge-1", `attempt ${i}`));
  assert.equal(told.filter((each) => each !== null).length, 8);
});

Deno.test("a failure is news after a connection, and at another site (DN2)", () => {
  const { notes } = notesAt();
  notes.failed("edge-1", "refused");
  assert.deepEqual(notes.failed("edge-2", "refused"), { warns: true });
  notes.connected("edge-1");
  assert.deepEqual(notes.failed("edge-1", "refused"), { warns: true });
});

Deno.test("a site where nobody listens is warned of when it has not come in time (DN3)", () => {
  const { notes, pass } = notesAt();
  assert.deepEqual(notes.failed("cloud", "refused", true), { warns: false });
  pass(9_999);
  assert.equal(notes.failed("cloud", "refused", true), null);
  pass(1);
  assert.deepEqual(notes.failed("cloud", "refused", true), { warns: true, before: 1 });
  pass(1);
  assert.equal(notes.failed("cloud", "refused", true), null);
  assert.deepEqual(notes.failed("cloud", "another cluster's secret"), { warns: true, before: 1 });
});
