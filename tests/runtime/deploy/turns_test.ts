/** Turns of the control plane's changes. */
import assert from "node:assert/strict";
import { Turns } from "../../../runtime/deploy/turns.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

Deno.test("changes take turns in the order in which they came, and one that fails ends only itself (TN2, TN3)", async () => {
  const turns = new Turns();
  const told: string[] = [];
  const step = (name: string) => async () => {
    told.push(`${name} begins`);
    await turn();
    told.push(`${name} ends`);
  };
  const failing = turns.take("a", () => Promise.reject(new Error("no")));
  const all = [turns.take("b", step("b")), turns.take(null, step("all")), turns.take("b", step("b again"))];
  await assert.rejects(failing, /no/);
  await Promise.all(all);
  assert.deepEqual(told.map((line) => line.split(" ").at(-1)), [
    ...["begins", "ends", "begins", "ends", "begins", "ends"],
  ]);
});

Deno.test("what is aside lets others by, but none of its own app, and waits for its turn again (TN1, TN2)", async () => {
  const turns = new Turns();
  const told: string[] = [];
  const aside = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const a = turns.take("a", async (turn) => {
    await turn.aside(() => aside.promise);
    told.push("a");
  });
  const again = turns.take("a", () => Promise.resolve(told.push("a again")));
  await turns.take("b", () => Promise.resolve(told.push("b")));
  const all = turns.take(null, async () => {
    aside.resolve();
    await held.promise;
    told.push("all");
  });
  await turn();
  held.resolve();
  await Promise.all([a, again, all]);
  assert.deepEqual(told, ["b", "all", "a", "a again"]);
});
