/** Messages of a stateful session on their way to be stored (functions/sessions/serve/run_sends.ts). */
import { strict as assert } from "node:assert";
import type { NamedSend } from "../../../../functions/sessions/serve/ports.ts";
import { RunSends, type SendingRun } from "../../../../functions/sessions/serve/run_sends.ts";
import type { Effect } from "../../../../functions/sessions/turn/mod.ts";
import { World } from "../../../sim/world.ts";

const body = new Uint8Array([1]);
const effect = (number: number, ...queues: readonly string[]): Effect => ({
  ...{ effect: number, clock: 1, replica: 1, atMs: 100 * number, mutations: [] },
  ...queues.length === 0 ? {} : { sends: queues.map((queue) => ({ queue, body })) },
});

/** A run whose queues refuse what `refuses` has an error for. */
function sending() {
  const world = new World();
  const tried: string[] = [], lines: string[] = [];
  const refuses = new Map<string, { readonly code: string }>();
  const run = {
    queues: {
      store: async ({ effect, place, atMs, send: { queue } }: NamedSend) => {
        tried.push(`${Math.round(world.nowMs)}: ${effect}/${place} of ${atMs} to ${queue}`);
        await Promise.resolve();
        const refusal = refuses.get(queue);
        if (refusal !== undefined) throw Object.assign(new Error(`${queue} refuses`), refusal);
      },
    },
    clock: { nowMs: () => world.nowMs, after: (ms: number, work: () => void) => world.after(ms, work) },
    listener: { log: (level: string, text: string) => void lines.push(`${level} ${text}`) },
    isOver: false as boolean,
  } satisfies SendingRun;
  return { world, tried, lines, refuses, run, sends: new RunSends(run) };
}

Deno.test("messages are stored together, each under the name of its effect and its place there (WM2)", async () => {
  const { sends, tried, lines } = sending();
  await sends.store([effect(1), effect(2, "a", "b"), effect(3, "a")]);
  assert.deepEqual(tried, ["0: 2/0 of 200 to a", "0: 2/1 of 200 to b", "0: 3/0 of 300 to a"]);
  assert.deepEqual([sends.unsent, lines], [null, []]);
});

Deno.test("what is refused is tried again until it is stored, less and less often, and that shows (WM1)", async () => {
  const { sends, tried, lines, refuses, world } = sending();
  refuses.set("full", { code: "queue_full" });
  let isStored = false;
  const stored = sends.store([effect(1, "full", "other", "full")]).then(() => isStored = true);
  await world.run(world.nowMs + 30_000);
  assert.deepEqual(sends.unsent, { messages: 2, why: "full refuses" });
  const times = tried.filter((one) => one.includes("1/0")).map((one) => Number(one.split(":")[0]));
  assert.deepEqual(times, [0, 500, 1_500, 3_500, 7_500, 15_500, 25_500]);
  assert.equal(tried.filter((one) => one.endsWith("other")).length, 1, "what is stored is done with");
  assert.equal(isStored, false);
  refuses.set("full", { code: "owners_unreachable" });
  await world.run(world.nowMs + 30_000);
  assert.deepEqual(lines, [
    "warn 2 messages of a stateful session to queues wait: full refuses",
    "warn 2 messages of a stateful session to queues wait: full refuses",
  ], "once for each reason");
  refuses.clear();
  await world.run(world.nowMs + 30_000);
  await stored;
  assert.deepEqual([isStored, sends.unsent], [true, null]);
});

Deno.test("what no later attempt would store is left out, and logged as an error (WM1)", async () => {
  const { sends, tried, lines, refuses } = sending();
  for (const code of ["queue_unknown", "message_invalid", "limit_message"]) refuses.set(code, { code });
  await sends.store([effect(1, "queue_unknown", "ok", "message_invalid", "limit_message")]);
  assert.equal(tried.length, 4);
  assert.deepEqual(
    lines,
    ["queue_unknown", "message_invalid", "limit_message"].map((queue) =>
      `error a message of a stateful session to a queue is refused, and left out: ${queue} refuses`
    ),
  );
});

Deno.test("a run that is over tries nothing any more", async () => {
  const { sends, tried, refuses, run, world } = sending();
  refuses.set("full", { code: "queue_full" });
  const stored = sends.store([effect(1, "full")]);
  await world.run(world.nowMs + 100);
  run.isOver = true;
  await world.run(world.nowMs + 10_000);
  await stored;
  assert.equal(tried.length, 1);
  await sends.store([effect(2, "other")]);
  assert.equal(tried.length, 1);
});
