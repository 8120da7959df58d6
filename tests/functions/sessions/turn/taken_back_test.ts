import assert from "node:assert/strict";
import { decodeCheckpoint } from "../../../../functions/sessions/turn/checkpoint.ts";
import { Program } from "../../../../functions/sessions/turn/program.ts";
import { checkpointHead, withoutLog } from "../../../../functions/sessions/turn/taken_back.ts";

interface Golden {
  readonly checkpoint: { readonly at: number; readonly bytes: string };
}

/** A checkpoint of the form that is written now, or was. */
async function golden(format: number): Promise<Uint8Array> {
  const url = new URL(`../../../golden/sessions/format-${format}.json`, import.meta.url);
  return Uint8Array.fromHex((JSON.parse(await Deno.readTextFile(url)) as Golden).checkpoint.bytes);
}

/** Where the stream of `Math.random` stands. */
function drawn(bytes: Uint8Array): number {
  const program = new Program({ make: () => ({}), envOf: () => null, aside: (_, work) => work() }, "", "");
  decodeCheckpoint(bytes, program);
  return program.math.position;
}

for (const format of [1, 2, 3]) {
  Deno.test(`no number is given again when the log after a checkpoint of format ${format} is taken back (TB1)`, async () => {
    const before = await golden(format), after = withoutLog(before);
    const [was, is] = [checkpointHead(before), checkpointHead(after)];
    for (const counter of ["call", "local", "effect"] as const) {
      assert.equal(is.next[counter], was.next[counter] + 2 ** 32, counter);
    }
    assert.equal(drawn(after), drawn(before) + 2 ** 32, "Math.random");
    for (const [i, peer] of is.peers.entries()) assert.ok(peer.sent >= 2 ** 32, `${i}`);
    assert.ok(!is.outputs.some(({ to }) => was.peers.some(({ id }) => id === to)), "TB2");
  });
}
