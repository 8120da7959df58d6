/** Calls that a stateful session makes, without a session. */
import { strict as assert } from "node:assert";
import type { Call } from "../../../../functions/sessions/turn/mod.ts";
import { encodeGet } from "../../../../functions/sessions/turn/call_bytes.ts";
import { Problem } from "../../../../functions/vocabulary/problem.ts";
import { type CallingSession, makeCall } from "../../../../functions/sessions/serve/made_calls.ts";

const making = { signal: new AbortController().signal, kept: () => {} };

Deno.test("a call ends with an outcome, whatever happens (M1)", async () => {
  const error = (thrown: unknown) =>
    ({ store: { get: () => Promise.reject(thrown) } }) as unknown as CallingSession;
  const call: Call = { call: 3, kind: "get", bytes: new Uint8Array(0), effect: null };
  const nonsense = await makeCall(error(null), call, making);
  assert.deepEqual(nonsense.ok || nonsense.code, "internal", "bytes that are no call");
  const broken = error(new Error("no disk"));
  const failed = await makeCall(broken, { ...call, bytes: encodeGet([], "session") }, making);
  assert.deepEqual(failed, { ok: false, code: "call_failed", message: "no disk" });
  const refuses = { fetch: () => Promise.reject(new Problem("overloaded", "too much")) };
  const outside = { outside: refuses } as unknown as CallingSession;
  const refused = await makeCall(outside, { ...call, kind: "fetch" }, making);
  assert.deepEqual(refused, { ok: false, code: "overloaded", message: "too much" });
});
