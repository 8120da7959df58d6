/**
 * The examples, walked as their READMEs tell it: over sites that work, and over sites without handoffs, where each
 * walk has to fail, or it would show nothing.
 */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { chaos, walkAccess } from "./access_walk.ts";
import { walkBoard } from "./board_walk.ts";
import { walkChat } from "./chat_walk.ts";
import { startCluster } from "./cluster.ts";
import { walkEditor } from "./editor_walk.ts";
import { namesApp, walkNames } from "./names_walk.ts";

/** With its operator's routes open, and cheap passwords. */
const BOARD = resolve(import.meta.dirname ?? ".", "..", "examples", "board", "operated_app.ts");
const NO_HANDOFF = join(import.meta.dirname ?? "", "no_handoff_main.ts");

Deno.test("the examples keep their promises over several sites, one of them killed", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-names-" });
  await using cluster = await startCluster({
    apps: ["access", "editor", "chat", BOARD, await namesApp(folder)],
  });
  await Deno.remove(folder, { recursive: true });
  await t.step(
    "names: of those who claim one at several sites at once one gets it, as the first guide has it",
    () => walkNames(cluster),
  );
  await t.step("board: it works for people who move between edges", (step) => walkBoard(cluster, step));
  await t.step(
    "chat: people at three edges miss nothing when they move and when an edge is killed",
    () => walkChat(cluster),
  );
  await t.step("editor: a ride over three edges keeps every step", () => walkEditor(cluster));
  await t.step("access: login and logout hold everywhere at once", () => walkAccess(cluster));
});

Deno.test("the examples break their promises where sites hand nothing over", async (t) => {
  await using cluster = await startCluster({ apps: ["access", "editor", "chat"], main: NO_HANDOFF });
  await t.step("access", () => assert.rejects(walkAccess(cluster), /after the logout, edge-1 refuses/));
  // However slow this machine is, the feed to edge-3 is slower.
  await chaos(cluster, { action: "delay", a: "cloud", b: "core-2", rttMs: 1000 });
  await t.step("editor", () => assert.rejects(walkEditor(cluster), /stands behind all others/));
  await t.step("chat", () => assert.rejects(walkChat(cluster), /is missing at the next site/));
});
