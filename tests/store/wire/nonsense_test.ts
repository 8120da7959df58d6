/** Messages that decode and mean nothing, from a child and from a stranger: whom they can't stop. */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { packKey } from "../../../store/model/key.ts";
import { encodeMessage } from "../../../store/wire/message.ts";
import { CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { Tree } from "../owners/tree.ts";
import { anyMessage } from "./message_arbitrary.ts";

/** The last two are seeds at which a site hung, and stopped. */
const SEEDS = [...Array.from({ length: 20 }, (_, seed) => seed), 96, 534];
const MESSAGES = 25;
/** Between two messages: some are answered, some meet what the one before has changed. */
const PAUSE_MS = 20;

/** A site goes on: what is written there comes to its disk, and its clock has gone no further than the time. */
async function serves(tree: Tree, what: string): Promise<void> {
  const root = tree.replicas.get("root");
  assert.ok(root !== undefined);
  const session = await root.attach(null);
  await session.write([{ kind: "set", key: packKey(["a", what]), value: new Uint8Array([1, 1]) }]);
  let isDurable = false;
  session.durable().then(() => isDurable = true);
  await tree.pass(100);
  assert.ok(isDurable, `${what}: a write stays where it is`);
}

async function clockOf(tree: Tree): Promise<number> {
  const session = await tree.replicas.get("root")?.attach(null);
  await session?.write([{ kind: "set", key: packKey(["clock"]), value: new Uint8Array([1, 1]) }]);
  return session?.token(false).clock ?? 0;
}

for (const from of ["e1", "stranger"]) {
  Deno.test(`a site goes on whatever a ${from === "e1" ? "child" : "stranger"} says`, async () => {
    for (const seed of SEEDS) {
      const tree = new Tree();
      const root = await tree.start("root", null);
      await tree.start("e1", null);
      await tree.pass(1_000);
      const messages = fc.sample(anyMessage, { numRuns: MESSAGES, seed });
      const [beganMs, began] = [tree.world.nowMs, await clockOf(tree)];
      for (const message of messages) {
        // With a clock that is ahead the whole of it is refused: here the rest is to be looked at.
        root.receive(from, encodeMessage("clock" in message ? { ...message, clock: 1 } : message));
        await tree.pass(PAUSE_MS);
      }
      const kinds = messages.map(({ kind }) => kind).join();
      await serves(tree, `seed ${seed}: ${kinds}`);
      const passedMs = (await clockOf(tree) - began) / CLOCK_TICKS_PER_MS;
      assert.ok(
        passedMs <= tree.world.nowMs - beganMs + 60_000,
        `seed ${seed}: its clock went on by ${passedMs} ms`,
      );
    }
  });
}
