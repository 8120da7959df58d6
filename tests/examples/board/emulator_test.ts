import { ok, strictEqual } from "node:assert/strict";
import type { StoreClient } from "../../../functions/vocabulary/store_client.ts";
import { MemoryStore } from "../../functions/memory_store.ts";
import { check } from "./checker.ts";
import { type Emulated, run } from "./emulator.ts";
import { load } from "./loader.ts";
import { ADMIN_TOKEN, localEdge } from "./local.ts";
import { Random } from "./random.ts";
import { smallData } from "./small_data.ts";
import { builtInTransitions, INTERACTIONS, Walk } from "./transitions.ts";
import { Words } from "./words.ts";

/** Twelve clients on two edges that both serve what `storeAt` gives them. */
async function emulate(storeAt: (edge: number) => StoreClient, loadInto: StoreClient[]): Promise<Emulated> {
  for (const store of loadInto) {
    await load(smallData().data(), localEdge("loading", () => store).send, ADMIN_TOKEN);
  }
  return await run({
    edges: [0, 1].map((edge) => localEdge(`edge-${edge + 1}`, () => storeAt(edge))),
    clients: 12,
    seed: 1,
    durationMs: 60_000,
    stepsMax: 150,
    thinkMs: 1,
    users: 40,
    reader: builtInTransitions(),
    author: builtInTransitions(),
    words: Words.builtIn(),
    commentBytes: 100,
    attachmentBytes: 0,
    moveShare: 0.2,
    freshShare: 0.3,
  });
}

Deno.test("clients over one store reach every interaction and see no violation", async () => {
  const store = new MemoryStore();
  const { history, samples } = await emulate(() => store, [store]);
  const verdict = check(history);
  strictEqual(verdict.violations.length, 0, JSON.stringify(verdict.violations.slice(0, 3)));
  ok(verdict.checked > 500, `${verdict.checked} checked`);
  const failed = samples.filter((sample) => sample.status >= 400 && ![401, 403, 404].includes(sample.status));
  strictEqual(failed.length, 0, JSON.stringify(failed.slice(0, 3)));
  const reached = new Set(samples.map((sample) => sample.interaction));
  for (const interaction of INTERACTIONS) ok(reached.has(interaction), `${interaction} was not reached`);
});

Deno.test("clients over two stores that never meet see violations", async () => {
  const stores = [new MemoryStore(), new MemoryStore()];
  const { history } = await emulate((edge) => stores[edge] ?? new MemoryStore(), stores);
  const broken = new Set(check(history).violations.map((violation) => violation.guarantee));
  ok(broken.has("read-your-writes"), [...broken].join());
  ok(broken.has("monotonic-reads"), [...broken].join());
});

Deno.test("a walk goes back to the page before, and ends", () => {
  const walk = new Walk(builtInTransitions(), new Random(3));
  let ends = 0;
  for (let i = 0; i < 2000; i++) {
    if (walk.step() === null) {
      ends++;
      walk.restart();
    }
  }
  ok(ends > 20);
});
