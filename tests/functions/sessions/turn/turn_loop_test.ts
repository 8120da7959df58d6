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
