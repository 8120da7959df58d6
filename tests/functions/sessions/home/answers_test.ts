/** Requests of one session and their answers, at its home. */
import assert from "node:assert/strict";
import { AnswerRoom } from "../../../../functions/sessions/home/answer_room.ts";
import { Answers } from "../../../../functions/sessions/home/answers.ts";

Deno.test("an answer leaves when its commit is held, and all before it, also for who asks again meanwhile (R2)", async () => {
  const nowMs = () => 0;
  const answers = new Answers(nowMs, new AnswerRoom({ nowMs, bytesMax: 1_000 }));
  const left: string[] = [];
  const ask = (request: string, who: string) => {
    const asked = answers.ask(request);
    if (asked.kind === "known") void asked.answer.then(() => left.push(who));
    return asked.kind;
  };
  const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([ask("r1", "first"), ask("r2", "second")], ["new", "new"]);
  assert.equal(ask("r1", "before it is answered"), "known");
  answers.answered([{ request: "r1", bytes: Uint8Array.of(1) }], 3);
  answers.answered([{ request: "r2", bytes: Uint8Array.of(2) }], 5);
  assert.deepEqual([ask("r1", "after"), ask("r2", "after the second")], ["known", "known"]);
  answers.held(2);
  await turn();
  assert.deepEqual(left, []);
  answers.held(4);
  await turn();
  assert.deepEqual(left.sort(), ["after", "before it is answered"]);
  answers.held(5);
  await turn();
  assert.deepEqual(left.at(-1), "after the second");
});
