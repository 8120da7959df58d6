/** What becomes of an asking while the arbiter finds out whether a home is gone. */
import { strict as assert } from "node:assert";
import type { ArbiterAsk, Reply } from "../../functions/homes/asks.ts";
import { UNSURE_HELD_MS } from "../../functions/homes/limits.ts";
import { SureArbiter } from "../../functions/homes/sure_arbiter.ts";

const name = { app: "shop", class: "cart", id: "a" };
const acquire: ArbiterAsk = { kind: "acquire", name, seen: 0, grant: 7, version: "v" };
const row = (outcome: "granted" | "refused" | "unsure"): Reply => ({ kind: "row", outcome, row: null });

/** An arbiter that says these one after the other, and then the last. */
function saying(...replies: Reply[]) {
  let nowMs = 1_000, asked = 0;
  const listeners = new Set<() => void>();
  const alarms: { readonly atMs: number; readonly run: () => void }[] = [];
  const sure = new SureArbiter({
    handle: () => Promise.resolve(replies[Math.min(asked++, replies.length - 1)] ?? row("refused")),
  }, {
    nowMs: () => nowMs,
    after: (ms, run) => {
      const alarm = { atMs: nowMs + ms, run };
      alarms.push(alarm);
      return () => void alarms.splice(alarms.indexOf(alarm), 1);
    },
    onChange: (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
  });
  return {
    sure,
    asked: () => asked,
    left: () => [listeners.size, alarms.length],
    change: () => listeners.forEach((changed) => changed()),
    pass: (ms: number) => {
      nowMs += ms;
      for (const { atMs, run } of [...alarms]) if (atMs <= nowMs) run();
    },
  };
}

const settle = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("an asking is answered when the arbiter has found out, by what it says then", async () => {
  const { sure, asked, change, left } = saying(row("unsure"), row("unsure"), row("granted"));
  const reply = sure.handle("edge-2", acquire);
  await settle();
  assert.equal(asked(), 1);
  change();
  await settle();
  assert.equal(asked(), 2);
  change();
  assert.deepEqual(await reply, row("granted"));
  assert.deepEqual(left(), [0, 0]);
});

Deno.test("an asking waits for a moment only, and not at all where the arbiter is sure or stops", async () => {
  const late = saying(row("unsure"));
  const reply = late.sure.handle("edge-2", acquire);
  await settle();
  late.pass(UNSURE_HELD_MS);
  assert.deepEqual(await reply, row("unsure"));
  assert.deepEqual(late.left(), [0, 0]);
  const here = saying(row("refused"));
  assert.deepEqual(await here.sure.handle("edge-2", acquire), row("refused"));
  assert.deepEqual([here.asked(), here.left()], [1, [0, 0]]);
  const stops = saying(row("unsure"));
  const waiting = stops.sure.handle("edge-2", acquire);
  await settle();
  stops.sure.close();
  assert.deepEqual(await waiting, row("unsure"));
  assert.deepEqual(stops.left(), [0, 0]);
});
