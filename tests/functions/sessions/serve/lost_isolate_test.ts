/** Events that were on their way to an isolate, or had come there, when it was lost (hosted.ts, H5). */
import assert from "node:assert/strict";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { type MemoryHost, memoryHost, sleep } from "./memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };

/** How often that handler was begun: what is said of events that had come is not so, for the test to know when they had. */
const slow = { begun: 0 };

class Counter extends Session {
  n = 0;
  add(): number {
    return ++this.n;
  }
  async slow(): Promise<number> {
    slow.begun++;
    await sleep(500);
    return ++this.n;
  }
}

/** Waits for the next such handler, and loses its isolate. */
async function lose(host: MemoryHost, received: number): Promise<void> {
  const before = slow.begun;
  while (slow.begun === before) await new Promise((resolve) => setTimeout(resolve, 1));
  host.loseIsolates("r", received);
}

const host = (): Promise<MemoryHost> => memoryHost(() => new Counter() as unknown as SessionObject);

async function ask(host: MemoryHost, method: "add" | "slow"): Promise<unknown> {
  const bytes = encodeCall({ kind: "rpc", method, args: encodeValue([]) });
  const request = { request: crypto.randomUUID(), chain: [], bytes, token: null };
  const answer = decodeAnswer((await host.host.request(NAME, request)).answer);
  if (answer.kind === "value") return decodeValue(answer.value);
  throw Object.assign(new Error(answer.kind), answer);
}

Deno.test("an event that an isolate had not begun when it was lost runs in the next, each time (H5)", async () => {
  await using robot = await host();
  assert.equal(await ask(robot, "add"), 1);
  for (let i = 0; i < 2; i++) {
    const asked = ask(robot, "slow");
    await lose(robot, i === 0 ? 1 : 2); // of those that were delivered to it before
    assert.equal(await asked, 2 + 2 * i);
    assert.equal(await ask(robot, "add"), 3 + 2 * i);
  }
  assert.doesNotMatch(robot.lines.join(), /stands still/);
});

Deno.test("an event that is lost twice before it is begun is what isolates end for (H5)", async () => {
  await using robot = await host();
  assert.equal(await ask(robot, "add"), 1);
  const culprit = ask(robot, "slow");
  await lose(robot, 1);
  await lose(robot, 0);
  await assert.rejects(culprit, { code: "isolate_killed" });
  assert.equal(await ask(robot, "add"), 2);
});

Deno.test("the one event that had come to an isolate is what it ended for, whatever is on its way (H4)", async () => {
  await using robot = await host();
  assert.equal(await ask(robot, "add"), 1);
  const culprit = ask(robot, "slow"), behind = ask(robot, "add");
  await lose(robot, 2);
  await assert.rejects(culprit, { code: "isolate_killed" });
  assert.equal(await behind, 2);
});
