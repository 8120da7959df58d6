/** Recorded logs and checkpoints of every form (tests/golden/sessions/): today's executor does what wrote them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import { encodeCall } from "../../functions/calls/call.ts";
import type { KeptCheckpoint, OpenSession, Output } from "../../functions/sessions/turn/mod.ts";
import { encodeValue } from "../../functions/values/value.ts";
import { keptAfter } from "../functions/sessions/turn/kept_checkpoint.ts";
import { inMacrotask } from "../functions/sessions/turn/run.ts";
import { Solo } from "../functions/sessions/turn/solo.ts";
import { Ledger } from "./sessions/ledger.ts";

const Recorded = z.strictObject({
  format: z.number(),
  checkpoint: z.strictObject({ at: z.number(), bytes: z.string(), state: z.array(z.string()) }),
  commits: z.array(z.strictObject({
    ...{ first: z.number(), count: z.number(), entries: z.string(), isAfter: z.boolean() },
  })),
  outputs: z.array(z.strictObject({ to: z.string(), sequence: z.number(), bytes: z.string() })),
  state: z.looseObject({ lines: z.array(z.unknown()) }),
});
const FORMATS = [1, 2, 3, 4];

const unhex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "hex"));
/** By receiver: each has its own order. */
const byReceiver = <T extends { readonly to: string; readonly sequence: number }>(
  outputs: readonly T[],
): T[] => [...outputs].sort((a, b) => a.to < b.to ? -1 : a.to > b.to ? 1 : a.sequence - b.sequence);
const shown = (outputs: readonly Output[]) =>
  byReceiver(outputs).map(({ to, sequence, bytes }) => ({
    ...{ to, sequence, bytes: Buffer.from(bytes).toString("hex") },
  }));

async function recorded(format: number) {
  const path = new URL(`./sessions/format-${format}.json`, import.meta.url);
  const { checkpoint, commits, ...rest } = Recorded.parse(JSON.parse(await Deno.readTextFile(path)));
  assert.equal(rest.format, format);
  const entriesOf = (isWanted: (commit: typeof commits[number]) => boolean) =>
    unhex(commits.filter(isWanted).map(({ entries }) => entries).join(""));
  const { at, bytes, state } = checkpoint;
  return {
    ...rest,
    checkpoint: { at, bytes: unhex(bytes), state: state.map(unhex) },
    all: entriesOf(() => true),
    after: entriesOf(({ isAfter }) => isAfter),
  };
}

const opened = (options: Partial<OpenSession>): Solo =>
  new Solo(Ledger as never).open({ code: "golden", epoch: 2, ...options });
const stateOf = (solo: Solo): unknown => (solo.object as unknown as Ledger).state();

for (const format of FORMATS) {
  Deno.test(`a recorded log of format ${format} is replayed to what wrote it, from its begin and from its checkpoint`, async () => {
    const golden = await recorded(format);
    await inMacrotask(() => {
      for (const solo of [opened({ entries: golden.all }), opened({ ...golden, entries: golden.after })]) {
        assert.equal(solo.parked, null, solo.parked?.message);
        assert.deepEqual(stateOf(solo), golden.state);
        assert.deepEqual(shown(solo.opened?.outputs ?? []), byReceiver(golden.outputs));
        assert.deepEqual(solo.opened?.timers.map(({ name }) => name), ["remind"]);
        assert.deepEqual(solo.opened?.peers.map(({ id, sent }) => [id, sent]), [["p1", 4]]);
      }
    });
  });

  Deno.test(`a session of format ${format} goes on, and what is written of it then is read again`, async () => {
    const golden = await recorded(format);
    await inMacrotask(() => {
      const solo = opened({ ...golden, entries: golden.after });
      let kept: KeptCheckpoint = golden.checkpoint;
      for (const who of ["eve", "ada"]) {
        const bytes = encodeCall({ kind: "rpc", method: "pay", args: encodeValue([who, 1]) });
        solo.deliver({ kind: "request", request: `to ${who}`, chain: [], bytes });
        solo.loop.checkpointNow(1);
        solo.run();
        const checkpoint = solo.checkpoints.at(-1);
        assert.ok(checkpoint !== undefined && solo.parked === null);
        assert.equal(checkpoint.bytes[0], Math.max(...FORMATS), "in the form of today");
        kept = keptAfter(kept, checkpoint);
      }
      assert.deepEqual(stateOf(opened({ checkpoint: kept })), stateOf(solo));
      assert.equal((stateOf(solo) as { lines: unknown[] }).lines.length, golden.state.lines.length + 2);
    });
  });
}
