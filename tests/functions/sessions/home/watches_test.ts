/** Whom a site keeps an eye on for homes (functions/sessions/home/watches.ts). */
import assert from "node:assert/strict";
import { Watches } from "../../../../functions/sessions/home/watches.ts";
import type { SiteId } from "../../../../store/model/ports.ts";
import type { Standing } from "../../../../store/presence/detector.ts";

function watching() {
  const standings = new Map<SiteId, Standing>([["b", "alive"], ["c", "alive"]]);
  const watched: SiteId[] = [], looked: SiteId[] = [], state = { nowMs: 0 };
  const watches = new Watches(
    {
      isKnown: (site) => site === "a" || standings.has(site),
      standing: (site) => standings.get(site) ?? "unknown",
      watch: (site) => {
        watched.push(site);
        return () => void watched.splice(watched.indexOf(site), 1);
      },
      look: (site) => void looked.push(site),
    },
    "a",
    () => state.nowMs,
  );
  return { watches, standings, watched, looked, state };
}

Deno.test("a site is gone that was not heard of for long, or has left the tree; this one never is (W1)", () => {
  const { watches, standings, looked, watched } = watching();
  assert.equal(watches.gone("a"), "here");
  for (
    const [standing, gone] of [
      ["alive", "here"],
      ["unknown", "unsure"],
      ["suspected", "gone"],
      ["dead", "gone"],
    ] as const
  ) {
    standings.set("b", standing);
    assert.equal(watches.gone("b"), gone, standing);
    assert.equal(watches.isLost("b"), gone === "gone", standing);
  }
  assert.deepEqual([watches.gone("left"), watches.isLost("left"), watches.isLost("a")], [
    "gone",
    true,
    false,
  ]);
  assert.deepEqual(
    looked,
    ["b", "b"],
    "who asks, asks again: where it is not known to be lost it is looked for",
  );
  assert.deepEqual(watched, ["b"]);
});

Deno.test("who was asked about is watched for a while, and who has timers for as long as it has them", () => {
  const { watches, watched, state } = watching();
  watches.gone("b");
  state.nowMs = 59_999;
  watches.tick();
  watches.gone("b");
  state.nowMs = 60_001;
  watches.tick();
  assert.deepEqual(watched, ["b"], "it was asked about again");
  state.nowMs = 120_000;
  watches.tick();
  assert.deepEqual(watched, []);
  watches.ofHome("log 1", "c");
  watches.ofHome("log 1", "c");
  watches.ofHome("log 2", "c");
  watches.ofHome("log 3", "a");
  assert.deepEqual(watched, ["c"], "once, and not itself");
  watches.ofHome("log 1", null);
  assert.deepEqual(watched, ["c"]);
  watches.ofHome("log 2", "b");
  assert.deepEqual(watched, ["b"]);
  watches.ofHome("log 3", null);
  watches.gone("c");
  watches.close();
  assert.deepEqual(watched, []);
});
