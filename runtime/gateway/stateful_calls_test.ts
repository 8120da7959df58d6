import assert from "node:assert/strict";
import { decodeAnswer } from "../../functions/calls/call.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { StatefulCalls, type StatefulCallsUse } from "./stateful_calls.ts";

/** Calls of a request of an app with one class, and what they come to, in order. */
function setUp(
  see: () => Promise<void> = () => Promise.resolve(),
): { calls: StatefulCalls; steps: string[] } {
  const steps: string[] = [];
  const carried = (how: string) => ({ class: name }: { class: string }) => void steps.push(`${how} ${name}`);
  const use = {
    caller: {
      call: ({ address }: { address: { class: string } }) => {
        carried("call")(address);
        return Promise.resolve({ answer: Uint8Array.of(7), token: { seen: "there" } });
      },
      attach: ({ address }: { address: { class: string } }) => Promise.resolve(carried("attach")(address)),
    },
    version: { app: "shop", manifest: { sessions: { room: {} } } },
    session: {
      ...{ isDurable: true, token: () => ({}), durable: () => Promise.resolve() },
      see: async (token: { seen: string }) => {
        steps.push(`sees ${token.seen}`);
        await see();
        steps.push("has it");
      },
    },
    once: null,
    seen: () => steps.push("seen"),
  } as unknown as StatefulCallsUse;
  return { calls: new StatefulCalls(use), steps };
}

Deno.test("only sessions of a class that the app's version declares are called or attached to (SFC1)", async () => {
  const { calls, steps } = setUp();
  for (const name of ["toString", "other", ""]) {
    const answer = decodeAnswer(await calls.call({ class: name, id: "a" }, new Uint8Array()));
    assert.ok(answer.kind === "error" && answer.code === "not_available", JSON.stringify(answer));
    await assert.rejects(calls.attach({ class: name, id: "a" }, []), Problem);
  }
  assert.deepEqual(steps, []);
  await calls.attach({ class: "room", id: "a" }, []);
  assert.deepEqual(steps, ["attach room"]);
});

Deno.test("an answer is handed over when this site has what the stateful session had touched (SFC2)", async () => {
  const arrives = Promise.withResolvers<void>();
  const { calls, steps } = setUp(() => arrives.promise);
  const answer = calls.call({ class: "room", id: "a" }, new Uint8Array());
  void answer.then(() => steps.push("answered"));
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual(steps, ["call room", "sees there"]);
  arrives.resolve();
  assert.deepEqual(await answer, Uint8Array.of(7));
  await Promise.resolve();
  assert.deepEqual(steps, ["call room", "sees there", "has it", "seen", "answered"]);
  const vain = setUp(() => Promise.reject(new Problem("source_lost", "it is gone")));
  await assert.rejects(vain.calls.call({ class: "room", id: "a" }, new Uint8Array()), Problem);
});
