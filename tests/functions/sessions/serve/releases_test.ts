/** What leaves of a run, and what its base says of the store (functions/sessions/serve/releases.ts). */
import assert from "node:assert/strict";
import type { Commit } from "../../../../functions/sessions/turn/mod.ts";
import { Releases, type ReleasingRun } from "../../../../functions/sessions/serve/releases.ts";

const COMMIT = {
  ...{
    effects: [],
    outputs: [],
    timers: [],
    calls: [],
    rejected: null,
    through: 0,
    entries: new Uint8Array(),
  },
} as unknown as Commit;

Deno.test("a base names the number that its run writes under where its token has another, or there is none (pieces.ts P5)", async () => {
  const token = { replica: 7 };
  const nothing = () => {};
  const run = {
    ...{
      writer: 7,
      isOver: false,
      undone: new Map(),
      acknowledged: nothing,
      timers: {},
      calls: {},
      home: {},
    },
    store: { settle: () => Promise.resolve(), durable: () => Promise.resolve(), seen: () => token },
    listener: { peers: { isPeer: () => false, released: nothing }, done: nothing, rejected: nothing },
  };
  const releases = new Releases(run as unknown as ReleasingRun, 0);
  const base = () => {
    const { seen, writer } = releases.baseHead;
    return { seen: seen !== null, writer };
  };
  assert.deepEqual(base(), { seen: false, writer: 7 });
  await releases.release(COMMIT, 1, -1);
  assert.deepEqual(base(), { seen: true, writer: undefined });
  token.replica = 8; // its site has taken another number
  assert.deepEqual(base(), { seen: true, writer: 7 });
});
