/** What becomes of an asking while the arbiter finds out what it is to know first. */
import { strict as assert } from "node:assert";
import type { ArbiterAnswer } from "../../../../functions/sessions/home/arbiter.ts";
import type { ArbiterAsk, Reply } from "../../../../functions/sessions/log/asks.ts";
import { SETTLE_HELD_MS, UNSURE_HELD_MS, WAITS_HELD_MS } from "../../../../functions/sessions/log/limits.ts";
import { SureArbiter } from "../../../../functions/sessions/home/sure_arbiter.ts";

const name = { app: "shop", class: "cart", id: "a" };
const acquire: ArbiterAsk = { kind: "acquire", name, seen: 0, grant: 7, version: "v" };
const row = (outcome: "granted" | "refused" | "unsure"): Reply => ({ kind: "row", outcome, row: null });

/** An arbiter that says these one after the other, and then the last. */
function saying(...answers: ArbiterAnswer[]) {
  let nowMs = 1_000, asked = 0;
  const listeners = new Set<() => void>(), heard = new Set<() => void>();
  /** What was begun, and is not done before a test says so. */
  const settling: PromiseWithResolvers<readonly string[]>[] = [];
  const listen = (to: Set<() => void>) => (changed: () => void) => {
    to.add(changed);
    return () => to.delete(changed);
  };
  const alarms: { readonly atMs: number; readonly run: () => void }[] = [];
  const sure = new SureArbiter({
    handle: () => Promise.resolve(answers[Math.min(asked++, answers.length - 1)] ?? row("refused")),
  }, {
    nowMs: () => nowMs,
    after: (ms, run) => {
      const alarm = { atMs: nowMs + ms, run };
      alarms.push(alarm);
      return () => void alarms.splice(alarms.indexOf(alarm), 1);
    },
    onChange: listen(listeners),
    certainty: { onChange: listen(heard) },
    settle: () => {
      const one = Promise.withResolvers<readonly string[]>();
      settling.push(one);
      return one.promise;
    },
  });
  return {
    sure,
    asked: () => asked,
    left: () => [listeners.size + heard.size, alarms.length],
    hear: () => heard.forEach((changed) => changed()),
    settled: (missed: readonly string[]) => settling.shift()?.resolve(missed),
    change: () => listeners.forEach((changed) => changed()),
    pass: (ms: number) => {
      nowMs += ms;
      for (const { atMs, run } of [...alarms]) if (atMs <= nowMs) run();
    },
  };
}

const settle = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("an asking is answered when the arbiter has found out, by what it says then (SU1)", async () => {
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

Deno.test("an asking waits for sites that have not told, and says which they are after a second", async () => {
  const waits: Reply = { kind: "waits", sites: ["edge-3"] };
  const { sure, asked, hear } = saying(waits, row("granted"));
  const reply = sure.handle("edge-2", acquire);
  await settle();
  hear();
  assert.deepEqual([await reply, asked()], [row("granted"), 2]);
  const late = saying(waits);
  const told = late.sure.handle("edge-2", acquire);
  await settle();
  late.pass(WAITS_HELD_MS);
  assert.deepEqual([await told, late.left()], [waits, [0, 0]]);
});

Deno.test("a name that is not settled is settled first; where sites are missed for that, they are named", async () => {
  const { sure, asked, settled } = saying({ kind: "unsettled", name }, row("granted"));
  const reply = sure.handle("edge-2", acquire);
  await settle();
  assert.equal(asked(), 1);
  settled([]);
  assert.deepEqual([await reply, asked()], [row("granted"), 2]);
  const missed = saying({ kind: "unsettled", name });
  const told = missed.sure.handle("edge-2", acquire);
  await settle();
  missed.settled(["edge-4"]);
  await settle();
  missed.pass(SETTLE_HELD_MS);
  assert.deepEqual(await told, { kind: "waits", sites: ["edge-4"] });
});
