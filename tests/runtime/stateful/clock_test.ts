import assert from "node:assert/strict";
import { guarded } from "../../../functions/sessions/serve/clock.ts";
import { SYSTEM_CLOCK } from "../../../runtime/stateful/clock.ts";

Deno.test("what is thrown in a timer of one session is told, and the process goes on", async () => {
  const told: unknown[] = [];
  const clock = guarded(SYSTEM_CLOCK, (error) => told.push(error));
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancelled = clock.after(0, () => assert.fail("it was cancelled"));
  cancelled();
  clock.after(0, () => {
    throw new Error("a fault");
  });
  clock.after(1, resolve);
  await promise;
  assert.deepEqual(told.map(String), ["Error: a fault"]);
});
