/** What a session has made and not given out, and what is kept of what it gave (functions/sessions/turn/outbox.ts). */
import assert from "node:assert/strict";
import type { Effect, Output } from "../../../../functions/sessions/turn/mod.ts";
import type { BegunEvent } from "../../../../functions/sessions/turn/event.ts";
import { Outbox } from "../../../../functions/sessions/turn/outbox.ts";

const MIB = 1024 * 1024;
const output = (to: string, sequence = 1, bytes = 1): Output =>
  ({ to, sequence, bytes: new Uint8Array(bytes) }) as unknown as Output;
const effect = (number: number): Effect => ({ effect: number, mutations: [] }) as unknown as Effect;
const made = (outputs: Output[], effects: Effect[] = [], left: string[] = []) => ({
  ...{ outputs, effects, left, timers: [{ name: "t", dueMs: 1 }] },
});
/** With peers p and q. */
const outbox = () => new Outbox({ program: { peers: { has: (id: string) => id === "p" || id === "q" } } });
const kept = (box: Outbox) => box.kept.outputs.map(({ to, sequence }) => `${to} ${sequence}`);

Deno.test("what was made leaves at the next commit point, at once and once, or never (OB1, stateful_session.ts ST2)", () => {
  const box = outbox();
  box.add(made([output("a")], [effect(1)]));
  box.add(made([output("b")], [effect(2)]));
  assert.deepEqual(box.take(false), { outputs: [], effects: [], timers: [] });
  const { outputs, effects, timers } = box.take(true);
  assert.deepEqual(outputs.map(({ to }) => to), ["a", "b"]);
  assert.deepEqual([effects.length, timers.length], [2, 2]);
  assert.deepEqual(box.take(true), { outputs: [], effects: [], timers: [] });
  const call = { call: 1, kind: "commit", bytes: new Uint8Array(0), effect: 1 } as const;
  box.addIntent(call);
  assert.equal(box.hasIntents, true);
  assert.deepEqual([box.takeIntents(), box.hasIntents], [[call], false]);
  box.add(made([output("c")], [effect(3)], ["p"]));
  box.addIntent(call);
  box.drop();
  assert.deepEqual([box.hasIntents, box.made], [false, []]);
  box.keep();
  assert.deepEqual(box.take(true), { outputs: [], effects: [], timers: [] });
  assert.deepEqual(box.kept, { outputs: [], effects: [] });
});

Deno.test("what left is kept until it is acknowledged, for each by itself (OB2, commit.ts CM4)", () => {
  const box = outbox();
  box.add(
    made(
      [output("r1"), output("p", 1), output("p", 2), output("q", 1), output("p", 3)],
      [1, 2, 3].map(effect),
    ),
  );
  box.keep();
  box.take(true);
  assert.deepEqual(kept(box), ["r1 1", "p 1", "p 2", "p 3", "q 1"]);
  const request = (id: string) => ({ kind: "request", request: id }) as unknown as BegunEvent;
  assert.deepEqual([box.hasAnswered(request("r1")), box.hasAnswered(request("r2"))], [true, false]);
  box.acknowledge({ outputs: { p: 2 }, effects: 2 });
  assert.deepEqual(kept(box), ["r1 1", "p 3", "q 1"]);
  assert.deepEqual(box.kept.effects.map((each) => each.effect), [3]);
  box.acknowledge({ outputs: { r1: 1, q: 0, nobody: 9 }, effects: 2 });
  assert.deepEqual(kept(box), ["p 3", "q 1"]);
  box.acknowledge({ outputs: { p: 3 }, effects: 3 });
  assert.deepEqual([kept(box), box.kept.effects], [["q 1"], []]);
  box.add(made([output("p", 4), output("q", 2)], [], ["q"]));
  box.keep();
  assert.deepEqual(kept(box), ["p 4"], "what who has gone was sent is of no use");
});

Deno.test("answers are kept up to a number and up to their bytes, the oldest let go first; one stands for those before (OB2)", () => {
  const many = outbox();
  for (let i = 0; i < 1_025; i++) many.keepAll([output(`r${i}`)], []);
  assert.deepEqual([many.kept.outputs.length, kept(many)[0]], [1_024, "r1 1"]);
  const long = outbox();
  long.keepAll([output("p", 1, 2 * MIB), output("a", 1, MIB / 2), output("b", 1, MIB / 2)], []);
  assert.equal(long.kept.outputs.length, 3, "what peers are sent is for their home to bound");
  long.keepAll([output("c", 1, MIB / 4)], []);
  assert.deepEqual(kept(long), ["b 1", "c 1", "p 1"]);
  long.keepAll([output("c", 2, MIB / 2)], []);
  assert.deepEqual(kept(long), ["b 1", "c 2", "p 1"]);
  long.acknowledge({ outputs: { b: 1 }, effects: 0 });
  long.keepAll([output("d", 1, MIB / 2)], []);
  assert.deepEqual(kept(long), ["c 2", "d 1", "p 1"]);
});

Deno.test("what a log gave out is kept but for what is known, and what its open handler made is made (OB1, OB2, RC2)", () => {
  const box = outbox();
  const given = { outputs: [output("r2"), output("q", 1), output("p", 2)], effects: [effect(2)], timers: [] };
  box.recovered(
    {
      ...{ parts: { outputs: [output("r1"), output("p", 1)], effects: [effect(1)] }, given, left: ["q"] },
      pending: made([output("r3")], [effect(3)]),
    },
    { out: { r1: 1, p: 1 }, effectsApplied: 1 },
  );
  assert.deepEqual(kept(box), ["r2 1", "p 2"]);
  assert.deepEqual(box.kept.effects.map((each) => each.effect), [2]);
  assert.deepEqual(box.made.map(({ to }) => to), ["r3"]);
});
