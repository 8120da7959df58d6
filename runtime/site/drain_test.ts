import assert from "node:assert/strict";
import type { SoleCopies } from "../../store/api/api.ts";
import type { SiteReplica } from "../../store/replica.ts";
import { drain } from "./drain.ts";

/** Drains a site that is made up, and returns what it did, in order. */
async function drained(logs: number, queues: readonly SoleCopies[]) {
  const did: string[] = [];
  const says = (what: string) => {
    did.push(what);
    return Promise.resolve();
  };
  let told: readonly SoleCopies[] = [];
  const answer = await drain({
    replica: {
      members: {
        leave: (untilMs: number, sole: readonly SoleCopies[]) => {
          told = sole;
          return says(`away until ${untilMs}`);
        },
      },
      status: () => ({ pending: 0 }),
    } as unknown as SiteReplica,
    apps: {
      isolates: { close: () => says("isolates end") },
      stateful: {
        leave: async () => {
          await says("sessions move");
          return logs;
        },
      },
      messages: {
        quiet: () => says("handlers end"),
        close: () => says("queues close"),
        sole: () => {
          did.push("messages are counted");
          return queues;
        },
      },
    },
    requests: { count: () => 0, cut: () => void did.push("requests are cut") },
    untilMs: 9,
  });
  assert.deepEqual(answer, { untilMs: 9, pending: 0, complete: true, sole: told });
  return { did, told };
}

Deno.test("a site says that it is away when nothing runs there any more, and what it has alone is counted (D1, D2)", async () => {
  const { did, told } = await drained(2, [{ what: "few", count: 1 }, { what: "many", count: 5 }]);
  assert.deepEqual(did, [
    "requests are cut",
    "handlers end",
    "sessions move",
    "isolates end",
    "queues close",
    "messages are counted",
    "away until 9",
  ]);
  assert.deepEqual(told, [
    { what: "logs of stateful sessions", count: 2 },
    { what: "many", count: 5 },
    { what: "few", count: 1 },
  ]);
  assert.deepEqual((await drained(0, [])).told, []);
});

Deno.test("the word of a site with very many queues stays short, and counts all of them (D2)", async () => {
  const queues = Array.from({ length: 1_000 }, (_, i) => ({ what: `queue ${i}`, count: 1 + i }));
  const { told } = await drained(1, queues);
  assert.equal(told.length, 20);
  assert.deepEqual(told[1], { what: "queue 999", count: 1_000 });
  assert.deepEqual(told.at(-1), { what: "messages of 982 other queues", count: 982 * 983 / 2 });
});
