/** Neighbours whose clocks are too far ahead (store/core/clock_guard.ts). */
import { strict as assert } from "node:assert";
import { ClockGuard } from "../../../store/core/clock_guard.ts";
import { HybridClock } from "../../../store/model/clock.ts";
import { CLOCK_AHEAD_MS_MAX } from "../../../store/model/limits.ts";
import { CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { packKey } from "../../../store/model/key.ts";
import { encodeMessage } from "../../../store/wire/message.ts";
import { Wall } from "../../../store/model/wall.ts";
import { Tree } from "../owners/tree.ts";
import { ProcessClock, World } from "../../sim/world.ts";

Deno.test("a neighbour that is ahead is refused until its clock is right, or until it is gone", () => {
  const ports = { clock: new ProcessClock(new World(), { skewMs: 0, drift: 0 }) };
  const clock = new HybridClock(new Wall(ports.clock));
  const refused: string[] = [];
  const guard = new ClockGuard({
    clock,
    ports,
    closed: false,
    refused: (event, from) => void refused.push(`${event} ${from}`),
  });
  const right = clock.tick(), ahead = right + (CLOCK_AHEAD_MS_MAX + 5_000) * CLOCK_TICKS_PER_MS;
  const says = (site: string, said: number) => guard.refuses(site, said, () => {});
  assert.deepEqual([says("a", ahead), says("b", ahead), says("c", right)], [true, true, false]);
  assert.deepEqual(guard.refused, ["a", "b"]);
  assert.equal(says("a", right), false);
  assert.deepEqual(guard.refused, ["b"]);
  guard.forget("b");
  assert.deepEqual(guard.refused, []);
  assert.deepEqual(refused, ["clock_ahead a", "clock_ahead b"]);
});

Deno.test("a row that is ahead of its sender's own clock is refused like the clock, and drags nobody along", async () => {
  const tree = new Tree();
  const [root, e1] = [await tree.start("root", null), await tree.start("e1", null)];
  await tree.pass(1_000);
  const session = await root.attach(null);
  await session.write([{ kind: "set", key: packKey(["b"]), value: new Uint8Array([1, 1]) }]);
  const { clock } = session.token(false);
  const row = {
    key: packKey(["a"]),
    clock: clock + (CLOCK_AHEAD_MS_MAX + 5_000) * CLOCK_TICKS_PER_MS,
    replica: 2,
    known: 1,
    expiresAtMs: 0,
    value: new Uint8Array([1, 1]),
  };
  const push = { kind: "push", upTo: 1_000, stable: 0, floor: 0, clock, rows: [row], more: false } as const;
  const feed = {
    upTo: 1_000,
    down: [],
    stable: [1],
    reach: [],
    acked: 0,
    watermark: 0,
    isFull: false,
  } as const;
  root.receive("e1", encodeMessage(push));
  e1.receive("root", encodeMessage({ ...feed, kind: "feed", clock, rows: [row], more: false }));
  await tree.pass(50);
  assert.deepEqual([root, e1].map((one) => one.status().clocksAhead), [["e1"], ["root"]]);
  await tree.pass(3_000);
  for (const one of [root, e1]) {
    const attached = await one.attach(null);
    const read = attached.get([row.key]);
    await tree.pass(100);
    assert.deepEqual(await read, [undefined]);
    await attached.write([{ kind: "set", key: packKey(["b"]), value: new Uint8Array([1, 1]) }]);
    const aheadMs = (attached.token(false).clock - clock) / CLOCK_TICKS_PER_MS;
    assert.ok(aheadMs < 10_000, `${aheadMs} ms`);
    assert.deepEqual(one.status().clocksAhead, [], "they have joined again");
  }
});
