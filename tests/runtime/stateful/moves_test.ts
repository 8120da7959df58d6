/** Why a stateful session is not moved, over real homes, logs and replays, without processes. */
import assert from "node:assert/strict";
import { encodeCall } from "../../../functions/calls/call.ts";
import { OpenHome } from "../../../functions/sessions/home/open_home.ts";
import { Session } from "../../../functions/class/session.ts";
import { SessionState } from "../../../functions/tracked/mod.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { memoryHost } from "./memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };

class Robot extends Session {
  kept: unknown = { deep: [() => {}] };
  look(): void {}
}

Deno.test("a session whose state can't be written down is not moved, and it is said why", async () => {
  await using host = await memoryHost(() => new Robot() as unknown as SessionObject);
  const bytes = encodeCall({ kind: "rpc", method: "look", args: encodeValue([]) });
  const { check } = SessionState.prototype;
  SessionState.prototype.check = () => {}; // as before it was looked for at the end of each handler
  try {
    await host.host.request(NAME, { request: "first", chain: [], bytes, token: null });
  } finally {
    SessionState.prototype.check = check;
  }
  const { prepareMove } = OpenHome.prototype;
  OpenHome.prototype.prepareMove = () => Promise.resolve(); // there is no other site here
  try {
    await assert.rejects(host.host.move(NAME, "edge-2", 5_000), {
      code: "move_refused",
      message: /stands still: state_invalid: can't keep kept\.deep\[0\]/,
    });
  } finally {
    OpenHome.prototype.prepareMove = prepareMove;
  }
});
