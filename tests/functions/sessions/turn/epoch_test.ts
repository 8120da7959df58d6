/** When the entry of a new epoch leaves: with the first commit, which comes at once where the log leaves marks (CM5). */
import assert from "node:assert/strict";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { readEntries } from "../../../../functions/sessions/turn/log_entry.ts";
import { packKey } from "../../../../store/model/key.ts";
import { inMacrotask } from "./run.ts";
import { Solo, type SoloEnv } from "./solo.ts";

const key = packKey(["kv", "x"]);

class Writer extends Session<SoloEnv> {
  override async onMessage(message: string | Uint8Array): Promise<void> {
    const { store } = this.env, value = Uint8Array.of(1);
    if (message === "sum") await store.commit([], [{ kind: "sum", key, value }]);
    if (message === "check") await store.commit([{ key, versionstamp: null }], [{ kind: "set", key, value }]);
    if (message === "set") await store.commit([], [{ kind: "set", key, value }]);
    if (message === "sum and end") {
      await store.commit([], [{ kind: "sum", key, value }]);
      this.end();
    }
  }
}

const solo = () => new Solo(Writer as unknown as new () => SessionObject);
const written = (what: string): Uint8Array => {
  const peer = { kind: "client", id: "p" } as const;
  const one = solo().open().deliver({ kind: "attach", peer });
  return one.deliver({ kind: "message", peer: "p", message: what }).entries;
};
const epochsIn = (entries: Uint8Array) =>
  readEntries(entries).flatMap((entry) =>
    entry.kind === "turn" && entry.input.kind === "epoch" ? [entry.input.epoch] : []
  );

for (const [what, isPoint] of [["sum", true], ["check", false], ["sum and end", true]] as const) {
  Deno.test(`a log that leaves marks is given the entry of the next epoch at once: ${what} (CM5)`, () =>
    inMacrotask(() => {
      const log = written(what), next = solo().open({ entries: log, epoch: 2 });
      assert.equal(next.commits.length, 1);
      assert.deepEqual([epochsIn(next.entries), next.commits[0]?.isPoint], [[2], isPoint]);
      const both = Uint8Array.from([...log, ...next.entries]);
      const third = solo().open({ entries: both, epoch: 3 });
      assert.deepEqual([third.parked, epochsIn(third.entries)], [null, [3]], "and goes on from it");
      assert.deepEqual(third.opened?.effects, next.opened?.effects);
      assert.deepEqual(third.opened?.calls, next.opened?.calls);
      assert.equal(third.opened?.isEnded, next.opened?.isEnded);
      const again = solo().open({ entries: both, epoch: 2 }); // another isolate of the same home
      assert.deepEqual(again.commits.map(({ count }) => count), [0], "it is in the log");
    }));
}

Deno.test("a log that leaves none is given the entry of the next epoch with what comes next (CM5)", () =>
  inMacrotask(() => {
    const log = written("set");
    const next = solo().open({ entries: log, epoch: 2 });
    assert.deepEqual(next.commits, []);
    assert.deepEqual(solo().open({ entries: written("sum"), epoch: 2, effectsApplied: 1 }).commits, []);
    next.deliver({ kind: "message", peer: "p", message: "set" });
    assert.deepEqual(epochsIn(next.entries), [2]);
  }));
