/** How long a stateful session that called `end()` is still there (functions/sessions/serve/ending.ts). */
import assert from "node:assert/strict";
import { Ending } from "../../../../functions/sessions/serve/ending.ts";
import { HandClock } from "../attach/peer_pair.ts";

/** One with so many answers that nobody has heard. */
async function ending(requests: readonly string[]) {
  const clock = new HandClock();
  const end = new Ending(requests.map((request) => ({ request, bytes: new Uint8Array(1) })), clock);
  let isOver = false;
  void end.over.then(() => isOver = true);
  const overNow = async () => {
    await Promise.resolve();
    return isOver;
  };
  await Promise.resolve();
  return { end, clock, overNow };
}

Deno.test("it is over when all have heard their answers, at once where nobody waits (EN1)", async () => {
  assert.equal(await (await ending([])).overNow(), true);
  const { end, overNow } = await ending(["a", "b"]);
  end.heard("a");
  end.heard("a");
  end.heard("who is it");
  assert.equal(await overNow(), false);
  assert.deepEqual([...end.unheard.keys()], ["b"]);
  end.heard("b");
  assert.equal(await overNow(), true);
});

Deno.test("it is over after a while, or where somebody wants it to begin anew, with what nobody has heard (EN2)", async () => {
  for (const isAsked of [true, false]) {
    const { end, clock, overNow } = await ending(["a", "b"]);
    clock.turn(14_999);
    end.heard("a");
    assert.equal(await overNow(), false);
    if (isAsked) end.now();
    else clock.turn(1);
    assert.equal(await overNow(), true);
    assert.deepEqual([...end.unheard.keys()], ["b"]);
  }
});
