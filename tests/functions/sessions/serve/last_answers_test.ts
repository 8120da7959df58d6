import assert from "node:assert/strict";
import { LastAnswers } from "../../../../functions/sessions/serve/last_answers.ts";

const clock = { now: 0, nowMs: () => clock.now, after: () => () => {} };
const some = (...requests: string[]) => new Map(requests.map((request) => [request, new Uint8Array(1_000)]));

Deno.test("last answers are kept for their time, and are nobody else's", () => {
  clock.now = 0;
  const last = new LastAnswers(clock, 100);
  last.keep("x", some("r1", "r2"));
  clock.now = 50;
  last.keep("y", some("r1"));
  assert.equal(last.get("x", "r1")?.length, 1_000);
  assert.deepEqual([last.get("y", "r2"), last.get("z", "r1")], [null, null]);
  clock.now = 100;
  assert.deepEqual([last.get("x", "r1"), last.get("y", "r1")?.length], [null, 1_000]);
  last.sweep();
  assert.equal(last.size, 1);
  clock.now = 150;
  last.sweep();
  assert.equal(last.size, 0);
});

Deno.test("last answers take so many bytes together: the oldest go (LA1)", () => {
  clock.now = 0;
  const last = new LastAnswers(clock, 100, 4_000);
  for (const request of ["r1", "r2", "r3", "r4", "r3"]) last.keep("x", some(request));
  assert.deepEqual(["r1", "r2", "r3", "r4"].map((request) => last.get("x", request) !== null), [
    false,
    true,
    true,
    true,
  ]);
});
