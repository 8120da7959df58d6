import assert from "node:assert/strict";
import { nextTurn, TURN_MS } from "./next_turn.ts";

const spend = (ms: number) => {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;);
};

Deno.test("of those who wait for a turn no more go on than it has time for, each in its order (NT1, NT2)", async () => {
  let turns = 0, isOver = false, inTurn = 0, most = 0;
  const turn = () => {
    turns++;
    most = Math.max(most, inTurn);
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const order: number[] = [];
  await Promise.all(Array.from({ length: 40 }, async (_, i) => {
    await nextTurn();
    order.push(i);
    inTurn++;
    spend(TURN_MS / 4);
    if (i % 10 === 0) {
      await nextTurn();
      order.push(100 + i);
    }
  }));
  isOver = true;
  assert.deepEqual(order.filter((i) => i < 100), Array.from({ length: 40 }, (_, i) => i));
  assert.deepEqual(order.filter((i) => i >= 100), [100, 110, 120, 130]);
  assert.ok(order.indexOf(100) > order.indexOf(39), "who asks later goes on later");
  assert.ok(most <= 5 && turns >= 9, `${most} at once, in ${turns} turns`);
  await new Promise((resolve) => setImmediate(resolve));
});

Deno.test("a turn in which little is done lets all go on that wait (NT2)", async () => {
  let turns = 0, isOver = false;
  const turn = () => void (isOver || (turns++, setImmediate(turn)));
  setImmediate(turn);
  await Promise.all(Array.from({ length: 20 }, () => nextTurn()));
  isOver = true;
  assert.ok(turns <= 3, `${turns} turns`);
  await new Promise((resolve) => setImmediate(resolve));
});
