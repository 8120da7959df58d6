/** Homes and their peers in virtual time over the real executor, and what the checker makes of them when they are broken. */
import assert from "node:assert/strict";
import { inMacrotask } from "../functions/sessions/turn/run.ts";
import { runSeed } from "./peers/run.ts";
import { variants } from "./peers/variants.ts";

/** The seeds of every test run: some two seconds. */
const SEEDS = 200;

Deno.test("peers hear what one uninterrupted run says, once and in order, whatever breaks, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = await inMacrotask(() => runSeed(`${seed}`));
    assert.deepEqual(run.wrong, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (
    const name of [
      ...["crash", "takeover", "kill", "clone", "restart", "checkpoints", "rejections", "hello again"],
      ...["lost: broken", "lost: moved", "lost: refused", "lost: malformed", "lost: silent"],
      ...["closed: bye", "closed: superseded", "closed: peer_unknown"],
    ]
  ) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
});

Deno.test("what a timer says that a clock left for the end of a run is heard before the run is judged", async () => {
  assert.deepEqual((await inMacrotask(() => runSeed("90005444"))).wrong, []);
});

Deno.test("peers outlive a channel that breaks, and a home that dies, with any frame", async () => {
  const quiet = {
    ...{
      breaks: 0,
      garbles: 0,
      stalls: 0,
      crashMs: 0,
      killMs: 0,
      takeoverMs: 0,
      pauseMs: 0,
      jumpMs: 0,
      relayMs: 0,
    },
    ...{
      reconnectMs: 0,
      cloneMs: 0,
      deaths: 0,
      hosts: 2,
      messages: 12,
      spanMs: 600,
      keepMs: 10,
      delayMs: 10,
    },
    ...{ isCheckpointing: true, closes: 0.4 },
  };
  for (const seed of ["a", "b"]) {
    const { frames } = await inMacrotask(() => runSeed(seed, {}, quiet));
    assert.ok(frames > 40, `${frames} frames`);
    for (let at = 1; at <= frames; at++) {
      for (const spot of [{ breakAtFrame: at }, { crashAtFrame: at }]) {
        const { wrong } = await inMacrotask(() => runSeed(seed, {}, quiet, spot));
        assert.deepEqual(wrong, [], `seed ${seed}: ${JSON.stringify(spot)}`);
      }
    }
  }
});

/** Seeds after which a variant counts as not caught; most are in the first ten. */
const VARIANT_SEEDS = 100;

for (const variant of variants) {
  Deno.test(`peers broken on purpose are caught: ${variant.name}`, async () => {
    for (let seed = 0; seed < VARIANT_SEEDS; seed++) {
      const { wrong } = await inMacrotask(() => runSeed(`${seed}`, variant.make(), variant.bias));
      if (wrong.length > 0) return;
    }
    assert.fail(`nothing was wrong in ${VARIANT_SEEDS} runs`);
  });
}
