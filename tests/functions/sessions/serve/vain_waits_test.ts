/** A stateful session whose answer rests on what its site's owners do not have: who asks is told that, wherever it is waited for. */
import assert from "node:assert/strict";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { Problem } from "../../../../functions/vocabulary/problem.ts";
import { refusalResponse } from "../../../../runtime/gateway/link_requests.ts";
import { StatefulCalls, type StatefulCallsUse } from "../../../../runtime/gateway/stateful_calls.ts";
import { replyOf } from "../../../../functions/sessions/serve/router.ts";
import { StoreUnavailable } from "../../../../store/api/api.ts";
import { Durability } from "../../../../store/session/durability.ts";
import { memoryHost } from "./memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };
const SILENT = new StoreUnavailable("owners_unreachable", "its owners are silent");

class Robot extends Session {
  steps = 0;
  step(): number {
    return ++this.steps;
  }
}

/** Runs it while nothing is at the owners of this site, and none of them answers. */
async function withoutOwners<T>(run: () => Promise<T>): Promise<T> {
  const { safe, isSafe } = Durability.prototype;
  Durability.prototype.safe = () => Promise.reject(SILENT);
  Durability.prototype.isSafe = () => false;
  try {
    return await run();
  } finally {
    Object.assign(Durability.prototype, { safe, isSafe });
  }
}

const thrown = (run: Promise<unknown>): Promise<unknown> =>
  run.then(() => assert.fail("it was to fail"), (error) => error);

/** As a client is told, here and by the home over a link. */
async function isTold(error: unknown): Promise<void> {
  const reply = replyOf(error);
  assert.ok(reply.kind === "problem");
  const problem = new Problem(reply.code as "owners_unreachable", reply.message);
  for (const answer of [refusalResponse(error), refusalResponse(problem)]) {
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
    assert.equal((await answer.json()).code, "owners_unreachable");
  }
}

Deno.test("a session that answers in vain tells its caller so, and goes on from its log", async () => {
  await using host = await memoryHost(() => new Robot() as unknown as SessionObject);
  const bytes = encodeCall({ kind: "rpc", method: "step", args: encodeValue([]) });
  const step = (request: string) => host.host.request(NAME, { request, chain: [], bytes, token: null });
  const first = await step("first");
  await isTold(await withoutOwners(() => thrown(step("second"))));
  // It was not appended: asked again it is run, once.
  const again = await step("second");
  assert.deepEqual(again.answer, (await step("second")).answer);
  assert.notDeepEqual(again.answer, first.answer);
});

Deno.test("a request that calls a session, or attaches to one, is told where what it saw is not safe (SFC3)", async () => {
  const asked: string[] = [];
  const use = {
    caller: {
      call: () => Promise.reject(asked.push("call")),
      attach: () => Promise.reject(asked.push("attach")),
    },
    version: { app: "shop", manifest: { sessions: { robot: {} } } },
    session: {
      token: () => ({}),
      see: () => Promise.resolve(),
      isDurable: false,
      durable: () => Promise.reject(SILENT),
    },
    once: null,
    seen: () => {},
  } as unknown as StatefulCallsUse;
  const calls = new StatefulCalls(use);
  const target = { class: "robot", id: "r" };
  await isTold(await thrown(calls.call(target, new Uint8Array())));
  await isTold(await thrown(calls.attach(target, [])));
  assert.deepEqual(asked, [], "nothing leaves before");
});
