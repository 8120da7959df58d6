/** What a site does for those that are at home there and rest. */
import { strict as assert } from "node:assert";
import { AtHome } from "../../../../functions/sessions/home/at_home.ts";
import type { LiveHome } from "../../../../functions/sessions/home/live_home.ts";
import { name } from "./cluster.ts";

/** A home that counts how often it is looked at. */
function home(id: string) {
  const live = { name: name(id), ticks: 0, tick: () => void live.ticks++ };
  return live;
}
type Counted = ReturnType<typeof home>;
const asLive = (counted: Counted): LiveHome => counted as unknown as LiveHome;
const ticksOf = (all: readonly Counted[]): number => all.reduce((sum, { ticks }) => sum + ticks, 0);

Deno.test("open ones are looked at with every tick, those that rest one part after the other (AH1)", () => {
  const homes = new AtHome();
  const open = [home("a"), home("b")], resting = Array.from({ length: 1_600 }, (_, i) => home(`r${i}`));
  for (const each of [...open, ...resting]) homes.begins(asLive(each));
  for (const each of resting) homes.rests(asLive(each));
  assert.deepEqual([...homes.all()].length, 1_602);
  homes.tick();
  assert.deepEqual(open.map(({ ticks }) => ticks), [1, 1]);
  assert.ok(ticksOf(resting) > 80 && ticksOf(resting) <= 101, `${ticksOf(resting)} of ${resting.length}`);
  for (let i = 1; i < 18; i++) homes.tick();
  assert.deepEqual(open.map(({ ticks }) => ticks), [18, 18]);
  assert.ok(resting.every(({ ticks }) => ticks === 1 || ticks === 2), "each in its turn");
});

Deno.test("one that wakes, ends or is followed by another of its name is looked at as what it is", () => {
  const homes = new AtHome();
  const first = home("x"), next = home("x");
  homes.begins(asLive(first));
  homes.rests(asLive(first));
  homes.wakes(asLive(first));
  homes.tick();
  homes.begins(asLive(next));
  homes.rests(asLive(first));
  homes.over(asLive(first));
  assert.equal(homes.get(name("x"))?.live, asLive(next));
  homes.tick();
  assert.deepEqual([first.ticks, next.ticks], [1, 1]);
  homes.over(asLive(next));
  homes.tick();
  assert.deepEqual([next.ticks, [...homes.all()].length], [1, 0]);
});
