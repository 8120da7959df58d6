import assert from "node:assert/strict";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import { AgentDoor } from "../../../runtime/origins/agent_door.ts";
import { AgentHub } from "../../../runtime/origins/agent_hub.ts";
import { localWay } from "../../../functions/sessions/attach/frame_way.ts";
import { type MessageSocket, SocketQueue } from "../../../runtime/gateway/message_socket.ts";

const TILLS = { app: "shop", class: "till" };

/** What the door says: the code of a refusal, or "in". */
async function asked(
  door: AgentDoor,
  path: string,
  scope: { app: string; class: string | null } | null,
): Promise<string> {
  const [name = "", query = ""] = path.split("?");
  const upgrade = { headers: { upgrade: "websocket" } };
  try {
    await door.handle(new Request(`http://cloud/_sojourn/agent/${name}?${query}`, upgrade), name, scope);
    return "in";
  } catch (error) {
    if (error instanceof Problem) return error.code;
    if (!(error instanceof TypeError)) throw error;
    return "in"; // it went on to the upgrade, which a made-up request has not
  }
}

Deno.test("a token of agents is good for its app and class, and for no other agent's ways (AD1)", async () => {
  let drawn = 0;
  const hub = new AgentHub(() => `ticket-${++drawn}`);
  const door = new AgentDoor({
    ...{ hub, root: () => "cloud", lacking: () => null },
    open: () => Promise.reject(new Error("none")),
  });
  const queue = new SocketQueue();
  const line: MessageSocket = { next: () => queue.next(), send: () => Promise.resolve(), close: () => {} };
  const serving = hub.serve(TILLS, line);
  const [way] = localWay();
  assert.ok(hub.offer({ ...TILLS, id: "a", version: "v1" }, way));
  const rows: [string, { app: string; class: string | null } | null, string][] = [
    ["check?app=shop&class=till", null, "in"],
    ["check?app=shop&class=till", { app: "shop", class: null }, "in"],
    ["check?app=shop&class=till", { app: "shop", class: "till" }, "in"],
    ["check?app=shop&class=till", { app: "shop", class: "cart" }, "admin_role"],
    ["check?app=shop&class=till", { app: "bank", class: null }, "admin_role"],
    ["origin?app=shop&class=till", { app: "bank", class: null }, "admin_role"],
    ["attach?app=shop&class=till&id=a", { app: "shop", class: "cart" }, "admin_role"],
    ["way?ticket=ticket-1", { app: "shop", class: "cart" }, "admin_role"],
    ["way?ticket=ticket-9", { app: "shop", class: "cart" }, "not_found"],
    ["way?ticket=ticket-1", { app: "shop", class: "till" }, "in"],
    ["way?ticket=ticket-1", { app: "shop", class: "till" }, "not_found"],
  ];
  for (const [path, scope, expected] of rows) {
    assert.equal(await asked(door, path, scope), expected, `${path} with ${JSON.stringify(scope)}`);
  }
  queue.push({ kind: "close", code: 1000, reason: "" });
  await serving;
  door.close();
});
