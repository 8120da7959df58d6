/** Whose turn it is in an isolate (functions/sessions/turn/turn_loop.ts). */
import assert from "node:assert/strict";
import { Leak } from "../../../../functions/sessions/turn/leak.ts";
import { type LoopHost, TurnLoop } from "../../../../functions/sessions/turn/turn_loop.ts";
import { Program, type ProgramHost } from "../../../../functions/sessions/turn/program.ts";

const aProgram = (id: string) => new Program({} as ProgramHost, "robot", id);

Deno.test("code of another session than the one whose turn it is acts for nobody (TL4)", () => {
  const [own, other] = [aProgram("a"), aProgram("b")];
  let owner: Program | undefined;
  const loop = new TurnLoop({ nowMs: () => 0, drain: () => {}, owner: () => owner } as unknown as LoopHost);
  const acting = () => loop.aside(own, () => loop.acting);
  for (owner of [own, undefined]) assert.equal(acting(), own);
  owner = other;
  assert.throws(acting, Leak);
  assert.equal(loop.acting, undefined, "between turns it is nobody's");
});

Deno.test("each session that has much to do has a turn after one of each other that has something (TL3)", () => {
  const scheduled: (() => void)[] = [], turns: string[] = [];
  const host = { nowMs: () => 0, schedule: (run: () => void) => void scheduled.push(run), mark() {} };
  const loop = new TurnLoop(host as unknown as LoopHost);
  const sessions = ["a", "b", "c"].map((name, channel) => {
    let left = 3;
    return {
      ...{ channel, received: 0, close() {}, broke: (error: unknown) => assert.fail(String(error)) },
      get hasWork() {
        return left > 0;
      },
      step: () => void turns.push(`${name}${left--}`),
    };
  });
  for (const session of sessions) loop.wake(session);
  for (let run = scheduled.shift(); run !== undefined; run = scheduled.shift()) run();
  assert.deepEqual(turns, ["a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1"]);
});
