import assert from "node:assert/strict";
import { Inboxes } from "../../../store/core/inboxes.ts";
import { SLICE_MS } from "../../../store/model/lock.ts";

Deno.test("what a neighbour says at once leaves everything else its turns, and comes in its order (B2)", async () => {
  let nowMs = 0, turns = 0, isClosed = false;
  const order: string[] = [];
  const inboxes = new Inboxes({
    clock: {
      steadyMs: () => nowMs,
      turn: () => {
        turns++;
        order.push("turn");
        return new Promise((resolve) => setImmediate(resolve));
      },
    },
    isClosed: () => isClosed,
    fail: (error) => assert.fail(String(error)),
  });
  const say = (site: string, name: string) =>
    inboxes.enqueue(site, () => {
      order.push(name);
      nowMs += SLICE_MS / 2;
    });
  for (let i = 0; i < 20; i++) say("parent", `p${i}`);
  say("child", "c");
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  while (!order.includes("p19")) await turn();
  assert.deepEqual(order.filter((name) => /^p/.test(name)), Array.from({ length: 20 }, (_, i) => `p${i}`));
  assert.ok(turns >= 10, `${turns} turns`);
  assert.ok(order.indexOf("c") <= 3, order.join());
  say("parent", "p20");
  say("parent", "p21");
  say("parent", "never");
  isClosed = true;
  for (let i = 0; i < 5; i++) await turn();
  assert.ok(!order.includes("never"));
});
