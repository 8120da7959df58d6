/** What a site's memory has of stateful sessions that nobody uses: as little after the hundredth opening as after the first. */
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { type MemoryHost, memoryHost } from "./memory_host.ts";

class Count extends Session {
  n = 0;

  add(): number {
    return ++this.n;
  }
  close(): void {
    this.end();
  }
}

const SESSIONS = 20;
let requests = 0;

function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

/** Asks each of them. */
async function askAll({ host }: MemoryHost, method: string): Promise<void> {
  for (let n = 0; n < SESSIONS; n++) {
    const name = { app: "shop", class: "robot", id: `${n}` }, request = `request-${requests++}`;
    const bytes = encodeCall({ kind: "rpc", method, args: encodeValue([]) });
    const { answer } = await host.request(name, { request, chain: [], bytes, token: null });
    assert.equal(decodeAnswer(answer).kind, "value");
    host.received(name, request);
  }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const endMs = Date.now() + 60_000; !holds();) {
    assert.ok(Date.now() < endMs, what);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

Deno.test("nothing holds what a session had open when it rests or has ended, however often it was opened", async () => {
  const gc = collector();
  await using host = await memoryHost(() => new Count() as unknown as SessionObject, { idleMs: 0 });
  const held = () => {
    gc();
    return host.runs.filter((run) => run.deref() !== undefined).length;
  };
  for (let round = 0; round < 3; round++) {
    await askAll(host, "add");
    await until("they rest", () => host.host.counts.open === 0);
  }
  assert.ok(host.runs.length >= 3 * SESSIONS);
  assert.equal(host.homes.status().resting, SESSIONS);
  // The last may still be on the stack of what let it go.
  await until("runs are let go of", () => held() <= 1);
  await askAll(host, "close");
  await until("they have ended", () => host.homes.status().resting + host.homes.status().open === 0);
  await until("runs are let go of", () => held() <= 1);
});
