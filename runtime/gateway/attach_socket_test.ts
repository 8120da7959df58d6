import assert from "node:assert/strict";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { attachSocket } from "./attach_socket.ts";
import type { RequestHead } from "./request_head.ts";
import type { StatefulCalls } from "./stateful_calls.ts";

const TARGET = { class: "room", id: "a" };
const TOKEN: [string, string][] = [["sojourn-session", "token"], ["set-cookie", "a=1"], [
  "set-cookie",
  "b=2",
]];

Deno.test("where a socket can't be attached the answer is a problem, with the token of what was written before (ATS1)", async () => {
  const refuses = {
    attach: () => Promise.reject(new Problem("stateful_unreachable", "its home is away")),
  } as unknown as StatefulCalls;
  for (
    const [upgrade, sessions, status] of [[false, refuses, 404], [true, undefined, 404], [
      true,
      refuses,
      503,
    ]] as const
  ) {
    const head = { upgrade, headers: [], offers: [] } as unknown as RequestHead;
    const outcome = await attachSocket(TARGET, sessions, head, TOKEN);
    assert.ok(outcome.kind === "response");
    const { headers } = outcome.response;
    assert.deepEqual([outcome.response.status, headers.get("sojourn-session"), headers.getSetCookie()], [
      status,
      "token",
      ["a=1", "b=2"],
    ]);
  }
});
